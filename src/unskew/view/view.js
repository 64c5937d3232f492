"use strict";
// Everything that comes from the data is put in as text, never as markup.
const $ = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => { const node = Object.assign(document.createElement(tag), properties); node.append(...children); return node; };
const of = (path, values) => path + "?" + new URLSearchParams(values);
const numbers = new Intl.NumberFormat("en");
const filters = $("filters"), grid = $("grid"), detail = $("detail");
let about, page = 0, pages = 0, shown = [], opened = -1, asked = 0;

// Corrections that could not be saved stay here, and over a reload, until they are.
const shelf = "unskew pending " + location.pathname;
const pending = new Map(JSON.parse(sessionStorage.getItem(shelf) || "[]"));
const keep = () => sessionStorage.setItem(shelf, JSON.stringify([...pending]));

async function ask(path, options) {
  let answer;
  try { answer = await fetch(path, options); } catch { throw new Error("unskew view does not answer: has it been closed?"); }
  const given = await answer.json().catch(() => ({ error: answer.statusText || "refused" }));
  if (!answer.ok) throw new Error(given.error);
  return given;
}

function wanted() {
  const values = Object.fromEntries([...new FormData(filters)].filter(([name, value]) => value !== "" && !(name === "order" && value === "certain")));
  return page ? { ...values, page } : values;
}

async function load(focus) {
  const turn = ++asked;
  history.replaceState(null, "", "#" + new URLSearchParams(wanted()));
  try {
    const given = await ask(of("samples", wanted()));
    if (turn !== asked) return;
    ({ page, pages } = given);
    shown = given.samples;
    draw(given.total);
    tally(given.corrected);
    if (focus !== undefined) grid.querySelectorAll(".card")[Math.min(focus < 0 ? shown.length - 1 : focus, shown.length - 1)]?.focus();
  } catch (error) { trouble(error.message); }
}

function draw(total) {
  $("count").textContent = total === 1 ? "1 sample" : numbers.format(total) + " samples";
  $("page").textContent = pages ? "page " + numbers.format(page + 1) + " of " + numbers.format(pages) : "";
  $("before").disabled = page <= 0;
  $("after").disabled = page >= pages - 1;
  grid.replaceChildren(...shown.map((sample, i) => make("li", {}, card(sample, i))));
  if (!shown.length) grid.append(make("li", { className: "empty", textContent: "No sample is like that. Reset shows all." }));
}

// The end of a path tells the most; the whole is in the tooltip and in the opened sample.
const brief = (id) => (id.length <= 18 ? id : "…" + id.slice(Math.max(id.lastIndexOf("/"), id.length - 17)));

function card(sample, i) {
  const node = make("button", { type: "button", className: "card" });
  node.dataset.place = i;
  const taken = sample.predicted !== null && sample.predicted !== sample.label ? " → " + sample.predicted : "";
  const bar = make("span", { className: "score " + (sample.conflicting ? "conflicting" : "aligned") }, make("i"));
  bar.firstChild.style.width = 100 * sample.score + "%";
  node.append(
    make("img", { src: of("thumbnail", { id: sample.id }), alt: "", loading: i < 24 ? "eager" : "lazy", width: 128, height: 128 }),
    make("span", { className: "what" }, make("b", { textContent: sample.label }), taken),
    make("span", { className: "id", textContent: brief(sample.id), title: sample.id }), bar,
    make("span", { className: "unseen", textContent: ", score " + sample.score + ", stage 1 says " + (sample.conflicting ? "conflicting" : "aligned") }));
  paint(node, sample);
  return node;
}

const markOf = (sample) => (pending.has(sample.id) ? pending.get(sample.id) : sample.mark);
const kindOf = (mark) => (mark === "label wrong" ? "wrong" : mark || "");
function paint(node, sample) {
  const mark = markOf(sample), waits = pending.has(sample.id);
  node.className = "card " + kindOf(mark);
  node.querySelector(".badge")?.remove();
  if (mark || waits) node.append(make("span", { className: "badge " + kindOf(mark) + (waits ? " pending" : ""), textContent: (mark || "no mark") + (waits ? ", not saved" : "") }));
}

function tally(corrected) {
  const all = Object.values(corrected).reduce((a, b) => a + b, 0);
  const parts = Object.entries(corrected).filter(([, count]) => count).map(([mark, count]) => numbers.format(count) + " " + mark);
  $("corrected").textContent = all ? "Corrected: " + parts.join(", ") : "Nothing corrected yet";
}

// One after another, in the order in which they were made.
let last = Promise.resolve();
const save = (id, mark) => (last = last.catch(() => {}).then(() => send(id, mark)));

async function send(id, mark) {
  const given = await ask("mark", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ id, mark }) });
  if (pending.get(id) === mark) pending.delete(id);
  keep();
  for (const sample of shown) if (sample.id === id) sample.mark = given.mark;
  tally(given.corrected);
}

async function mark(i, value) {
  const sample = shown[i];
  if (!sample) return;
  pending.set(sample.id, value);
  keep();
  repaint();
  try {
    await save(sample.id, value);
    $("status").textContent = $("d-saved").textContent = value ? "Saved: " + value : "Saved: no mark";
    if (!pending.size) $("trouble").hidden = true;
  } catch (error) {
    $("d-saved").textContent = "Not saved; kept on this page.";
    trouble(error.message + " " + kept());
  }
  repaint();
}

const kept = () => (pending.size === 1 ? "1 correction is" : pending.size + " corrections are") + " kept on this page until saving works.";
function trouble(text) { $("trouble-text").textContent = text; $("retry").hidden = false; $("trouble").hidden = false; }
$("retry").addEventListener("click", async () => {
  try {
    for (const [id, value] of [...pending]) await save(id, value);
    $("trouble").hidden = true;
    $("status").textContent = "Saved.";
    await load();
  } catch (error) { trouble(error.message + (pending.size ? " " + kept() : "")); }
  repaint();
});
addEventListener("beforeunload", (event) => { if (pending.size) event.preventDefault(); });

function repaint() {
  grid.querySelectorAll(".card").forEach((node) => paint(node, shown[node.dataset.place]));
  if (opened >= 0 && shown[opened]) for (const button of $("choices").children) button.setAttribute("aria-pressed", String((markOf(shown[opened]) || "") === button.dataset.mark));
}

// One sample, opened.
async function open(i) {
  if (!shown[i]) return;
  opened = i;
  const { id, label } = shown[i];
  $("d-id").textContent = id;
  $("d-image").src = $("d-link").href = of("image", { id });
  $("d-image").alt = label + ", " + id;
  $("d-before").disabled = i === 0 && page === 0;
  $("d-after").disabled = i === shown.length - 1 && page >= pages - 1;
  for (const place of ["d-facts", "d-history", "d-near"]) $(place).replaceChildren();
  $("d-saved").textContent = $("d-of").textContent = "";
  $("d-why").textContent = "Looking…";
  repaint();
  if (!detail.open) detail.showModal();
  try {
    const given = await ask(of("sample", { id }));
    if (shown[opened]?.id !== id) return;
    const facts = [["Label", given.label], ["Stage 1 says", (given.conflicting ? "conflicting" : "aligned") + ", score " + given.score]];
    if (given.predicted !== null) facts.push(["Mostly predicted", given.predicted]);
    const looked = (given.history || []).filter((epoch) => epoch.seen);
    if (looked.length > 1) facts.push(["Right", looked.filter((epoch) => epoch.right).length + " of " + looked.length + " epochs"]);
    $("d-facts").replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
    $("d-history-title").hidden = !given.history;
    $("d-history").replaceChildren(...(given.history || []).map((epoch, k) => {
      const said = "epoch " + (k + 1) + ": " + (!epoch.seen ? "not looked at" : epoch.right ? "right" : "wrong, " + epoch.said);
      return make("li", { className: !epoch.seen ? "unseen-epoch" : epoch.right ? "" : "no", title: said }, make("span", { textContent: !epoch.seen ? "·" : epoch.right ? "✓" : "✗", ariaHidden: "true" }), make("span", { className: "unseen", textContent: said }));
    }));
    await near(id);
  } catch (error) { $("d-why").textContent = error.message; }
}

async function near(id) {
  const given = await ask(of("near", { id }));
  if (!detail.open || shown[opened]?.id !== id) return;
  if (given.state === "working") {
    $("d-why").textContent = "Comparing images, once for all: " + Math.round(100 * given.done) + "%";
    setTimeout(() => near(id).catch((error) => { $("d-why").textContent = error.message; }), 400);
    return;
  }
  $("d-why").textContent = given.why || "";
  $("d-of").textContent = given.of || "";
  $("d-near").replaceChildren(...(given.near || []).map((other) => make("li", { title: other.id },
    make("img", { src: of("thumbnail", { id: other.id }), alt: other.label + ", " + other.id, width: 96, height: 96 }), make("b", { textContent: other.label }), " " + other.like.toFixed(2))));
}

async function step(by) {
  const next = opened + by;
  if (shown[next]) return open(next);
  if (page + by < 0 || page + by >= pages) return;
  page += by;
  await load();
  open(by > 0 ? 0 : shown.length - 1);
}

// Mouse and keys. Letters act only on a sample that is in focus or opened.
const letters = { c: "conflicting", a: "aligned", w: "label wrong", u: null };
grid.addEventListener("click", (event) => { const node = event.target.closest(".card"); if (node) open(+node.dataset.place); });
grid.addEventListener("keydown", (event) => {
  const node = event.target.closest(".card");
  if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
  const i = +node.dataset.place, wide = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
  const to = { ArrowRight: i + 1, ArrowLeft: i - 1, ArrowDown: i + wide, ArrowUp: i - wide, Home: 0, End: shown.length - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    if (shown[to]) grid.querySelectorAll(".card")[to].focus();
    else if (to >= shown.length && page < pages - 1) turn(1, 0);
    else if (to < 0 && page > 0) turn(-1, -1);
  } else if (event.key in letters) { event.preventDefault(); mark(i, letters[event.key]); }
});
detail.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in letters) { event.preventDefault(); mark(opened, letters[event.key]); }
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") { event.preventDefault(); step(event.key === "ArrowRight" ? 1 : -1); }
});
// Closed and back on the sample last seen in one go: the browser alone would go to the one that was opened first, and a
// key pressed meanwhile would mark that one.
function shut() {
  const i = opened;
  opened = -1;
  detail.close();
  grid.querySelectorAll(".card")[i]?.focus();
}
detail.addEventListener("cancel", (event) => { event.preventDefault(); shut(); });
$("choices").addEventListener("click", (event) => { const button = event.target.closest("button"); if (button) mark(opened, button.dataset.mark || null); });
$("d-close").addEventListener("click", shut);
$("d-before").addEventListener("click", () => step(-1));
$("d-after").addEventListener("click", () => step(1));
const turn = (by, focus) => { if (page + by >= 0 && page + by < pages) { page += by; scrollTo({ top: 0 }); load(focus); } };
$("before").addEventListener("click", () => turn(-1));
$("after").addEventListener("click", () => turn(1));
addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]") || event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); $("f-text").focus(); }
  if (event.key === "[") turn(-1, 0);
  if (event.key === "]") turn(1, 0);
});
for (const dialog of [$("command"), $("keys")]) dialog.querySelector(".close").addEventListener("click", () => dialog.close());
for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog === detail ? shut() : dialog.close(); });
$("how").addEventListener("click", () => $("command").showModal());
$("help").addEventListener("click", () => $("keys").showModal());
$("copy").addEventListener("click", async () => { try { await navigator.clipboard.writeText(about.command); $("copy").textContent = "Copied"; } catch { getSelection().selectAllChildren($("command-text")); } });

let waiting;
filters.addEventListener("input", (event) => { page = 0; clearTimeout(waiting); waiting = setTimeout(() => load(), event.target.matches("input") ? 180 : 0); });
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.matches("input")) { event.preventDefault(); clearTimeout(waiting); load(0); } });
filters.addEventListener("reset", () => { page = 0; setTimeout(() => load()); });
// Another viewer may have corrected something meanwhile.
addEventListener("visibilitychange", () => { if (!document.hidden && about && opened < 0 && !grid.contains(document.activeElement)) load(); });

async function start() {
  const before = new URLSearchParams(location.hash.slice(1));
  page = Math.max(0, Math.trunc(+before.get("page") || 0));
  try { about = await ask("about"); } catch (error) { trouble(error.message); return; }
  document.title = about.name + " · unskew view";
  $("name").textContent = about.name;
  $("facts").textContent = numbers.format(about.count) + " samples, " + numbers.format(about.conflicting) + " of them suspected · " + about.folder + (about.missing ? " · " + numbers.format(about.missing) + " are not in the data any longer" : "");
  $("command-text").textContent = about.command;
  if (about.small) document.body.classList.add("small");
  about.classes.forEach((one, k) => {
    $("f-label").append(make("option", { value: k, textContent: one.name + " (" + numbers.format(one.conflicting) + " of " + numbers.format(one.count) + ")" }));
    $("f-predicted").append(make("option", { value: k, textContent: one.name }));
  });
  $("by-prediction").hidden = !about.predicted;
  for (const field of filters.elements) if (field.name && before.has(field.name)) field.value = before.get(field.name);
  await load();
  if (pending.size) trouble(kept());
}
start();

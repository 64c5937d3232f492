"use strict";
// Light or dark by hand; by default as the system has it.
const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
const name = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", "Switch to " + (dark() ? "light" : "dark") + " colours"); };
theme.hidden = false;
theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; name(); });
system.addEventListener("change", name);
name();

// Sorting: every column head becomes a button.
const collator = new Intl.Collator(undefined, { numeric: true });
const keyOf = (row, column) => { const cell = row.cells[column]; return cell.dataset.value ?? cell.textContent.trim(); };
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (head.tagName !== "TH") return; // of images
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && !head.classList.contains("n")) ? "ascending" : "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
      rows.sort((a, b) => sign * collator.compare(a[0], b[0]));
      if (head.classList.contains("n")) rows.sort((a, b) => sign * (parseFloat(a[0].replaceAll(",", "")) - parseFloat(b[0].replaceAll(",", ""))));
      table.tBodies[0].append(...rows.map((pair) => pair[1]));
    });
  });
}

// Filtering the suspects.
const filter = document.getElementById("filter");
if (filter) {
  const chosen = document.getElementById("filter-class");
  const text = document.getElementById("filter-text");
  const rows = [...document.getElementById("suspect-table").tBodies[0].rows];
  const apply = () => {
    const wanted = text.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = (chosen.value !== "" && row.dataset.class !== chosen.value) || !row.textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    document.getElementById("filter-count").textContent = shown + " of " + rows.length;
  };
  filter.hidden = false;
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

// The section that is being read, in the list of sections.
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const link of links.values()) link.removeAttribute("aria-current");
    links.get(entry.target.id).setAttribute("aria-current", "true");
  }
}, { rootMargin: "-15% 0px -75% 0px" });
for (const id of links.keys()) watcher.observe(document.getElementById(id));

// All is open on paper.
addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("#made details")) each.open = true; });

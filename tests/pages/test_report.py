"""The page as text: what it says, what it leaves out, that it needs nothing else, and that names stay names."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch
from torch import nn

import unskew
from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.inference import predict_logits
from unskew.pages.accuracy import Cell, accuracy
from unskew.pages.attention import attention
from unskew.pages.mixing import density, mixing
from unskew.pages.verdict import verdict
from unskew.testing import TinyBackbone

NASTY = ["<script>alert(1)</script>", 'quote" onload="x', "ünïcode/…'../"]
QUICK = {"model": TinyBackbone(), "device": "cpu", "epochs": 2}


class Page(HTMLParser):
    """Tags, attributes and text, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.headings: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self._inside = tag
            self.headings.append("")

    def handle_endtag(self, tag):
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data):
        self.text += data
        if self._inside:
            self.headings[-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def written(path, data, partition, run, **more) -> tuple[str, Page]:
    unskew.report(data, partition, run, path / "report.html", **more)
    text = (path / "report.html").read_text(encoding="utf-8")
    return text, Page(text)


@pytest.fixture
def nasty(tiny) -> Dataset:
    ids = [f"{NASTY[i % 3]}/{i}" for i in range(len(tiny))]
    return replace(tiny, ids=ids, class_names=NASTY, name="<b>set</b>", notes=["a <i>note</i>"])


@pytest.fixture
def runs(nasty):
    partition = unskew.identify(nasty, **QUICK)
    return partition, [
        unskew.train(nasty, partition, method, test=nasty, **QUICK) for method in ("erm", "smix", "lmix")
    ]


def test_names_stay_names_and_nothing_is_fetched(nasty, runs, tmp_path):
    partition, trained = runs
    partition.save(tmp_path / "partition.csv")
    command = "unskew train '</script><script>alert(2)</script>'"
    text, page = written(tmp_path, nasty, partition, trained, test=nasty, command=command)
    assert not re.search(r"https?:|url\(", text.replace("http-equiv", ""))
    assert all(a["src"].startswith("data:image/") for a in page.all("img"))
    assert {a["href"] for a in page.all("a") if not a["href"].startswith("#")} == {"partition.csv"}
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text, "nothing but our script may run"
    assert len(page.all("script")) == 1
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    for name in (*NASTY, "<b>set</b>", "A <i>note</i>", command):
        assert name in page.text


def test_the_verdict_comes_first_and_sections_follow(nasty, runs, tmp_path):
    partition, trained = runs
    _, page = written(tmp_path, nasty, partition, trained, test=nasty)
    order = ["<b>set</b>", verdict(nasty, partition).headline, "How sure", "Accuracy on the test set", "By class",
             "By group", "Gallery", "Where the models look", "Stage 1, epoch", "Training", "Mixing in s-mix",
             "Mixing in l-mix", "Mixes, as l-mix", "Suspects", "How it was made"]  # fmt: skip
    places = [next(i for i, heading in enumerate(page.headings) if words in heading) for words in order]
    assert places == sorted(places)
    for chart in ("How often each sample was right", "Loss of the two sides", "Suspects after each epoch",
                  "How well they are found", "Learned α and β", "Mean of μ", "Belief in looks",
                  "Density of λ", "Density of μ"):  # fmt: skip
        assert chart in page.text
    scores = trained[2].result.scores
    assert f"{scores.unbiased:.1%}" in page.text
    assert f"{100 * (scores.unbiased - trained[0].result.scores.unbiased):+.1f}" in page.text
    assert all(image["alt"] for image in page.all("img"))
    assert len(page.all("h1")) == 1
    assert f"With l-mix, {scores.unbiased:.1%} of the images that break the shortcut are right; with plain" in page.text


def test_a_stage_1_that_was_told_the_truth_is_not_praised_for_finding_it(tiny, tmp_path):
    _, page = written(tmp_path, tiny, unskew.identify(tiny, "oracle"), None)
    assert "the true split" in page.text
    assert "was not told it" not in page.text


def test_the_accuracy_is_said_in_words_for_one_model_and_where_no_bias_is_known(tiny, tmp_path):
    erm = unskew.train(tiny, method="erm", test=tiny, **QUICK)
    scores = erm.result.scores
    assert accuracy([erm]).in_words == (
        f"With plain training (ERM), {scores.unbiased:.1%} of the images that break the shortcut are right, "
        f"and {scores.aligned:.1%} of those that follow it."
    )
    blind = replace(tiny, bias=None, aligned=None, group_weights=None)
    plain = unskew.train(blind, method="erm", test=blind, **QUICK)
    smix = unskew.train(blind, unskew.identify(tiny, "oracle"), "smix", test=blind, **QUICK)
    assert accuracy([plain, smix]).in_words == (
        f"With s-mix, {smix.result.scores.all:.1%} of all images are right; "
        f"with plain training (ERM), {plain.result.scores.all:.1%}."
    )


def test_what_chose_the_weights_is_said_as_it_was(tiny, tmp_path):
    partition = unskew.identify(tiny, "oracle")
    chosen = unskew.train(tiny, partition, "smix", test=tiny, select="val", **QUICK)
    _, page = written(tmp_path, tiny, partition, chosen, test=tiny)
    assert "with the weights of the epoch that validation chose" in page.text
    assert "last epoch;" not in page.text
    assert "points gained" not in page.text, "there is no plain training to compare with"


def test_no_gain_is_neither_good_nor_bad():
    assert [Cell(0.5, against=points).tone for points in ("+1.0", "-0.1", "+0.0", "-0.0", "")] == [
        "up",
        "down",
        "",
        "",
        "",
    ]


def test_without_plain_training_nothing_is_compared_with_it(nasty, runs, tmp_path):
    partition, trained = runs
    _, page = written(tmp_path, nasty, partition, trained[2])
    assert "l-mix" in page.text
    assert "(ERM)" not in page.text
    assert "training images that stage 1 calls conflicting" in page.text


def test_stage_1_alone_of_photos(tmp_path):
    images = torch.randint(0, 256, (20, 96, 96, 3), dtype=torch.uint8).permute(0, 3, 1, 2)
    data = Dataset(images, torch.arange(20) % 2, [str(i) for i in range(20)], ["a", "b"])
    config = {"data": "x", "identify": {"name": "random", "seed": 7}}
    text, page = written(
        tmp_path, data, unskew.identify(data, "random"), None, command="unskew identify x", config=config
    )
    assert "A coin called 10 of 20 samples conflicting." in page.headings[1]
    assert "Look before you trust" not in page.text, "nothing was learnt"
    assert "data:image/jpeg" in text
    assert "Accuracy on the test set" not in page.text
    assert "nothing was looked for" in page.text
    assert "unskew identify x" in page.text
    assert "seed: 7" in page.text
    assert not page.all("a") or "partition.csv" not in {a["href"] for a in page.all("a")}, "there is none beside it"


def test_fifty_thousand_samples_stay_below_three_megabytes(tmp_path):
    """Noise, which no codec makes small, in more classes than are shown, with long names."""
    n, classes, epochs = 50_000, 40, 10
    random = torch.Generator().manual_seed(0)
    few = torch.randint(0, 256, (64, 128, 128, 3), dtype=torch.uint8, generator=random)
    images = few[0].expand(n, -1, -1, -1).permute(0, 3, 1, 2)  # a view: it takes no memory
    labels = torch.arange(n) % classes
    data = Dataset(images, labels, [f"{'a long folder name/' * 4}{i:06d}.jpg" for i in range(n)],
                   [f"class number {k}" for k in range(classes)], aligned=torch.arange(n) % 20 > 0)  # fmt: skip
    conflicting = torch.arange(n) % 13 == 0
    predictions = torch.where(conflicting[:, None], (labels + 1)[:, None] % classes, labels[:, None])
    predictions = predictions.expand(-1, epochs).to(torch.int16)
    losses = torch.rand(n, epochs, generator=random).half()
    partition = Partition.of(data, conflicting, conflicting.float(), "ph", predictions=predictions, losses=losses)
    text, page = written(tmp_path, data, partition, None)
    assert len(text.encode()) < 3_000_000
    assert len(page.all("img")) > 200
    assert "15 more have some" in page.text
    assert "The 280 most certain of 3,847" in page.text


@pytest.mark.parametrize("size", [32, 64])
def test_noise_that_a_network_sees_whole_stays_below_three_megabytes_too(size, tmp_path):
    """Small images are kept exactly, but only where there is room."""
    n, classes, epochs = 900, 30, 40
    random = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (n, size, size, 3), dtype=torch.uint8, generator=random).permute(0, 3, 1, 2)
    labels = torch.arange(n) % classes
    data = Dataset(images, labels, [f"{i:06d}.jpg" for i in range(n)], [f"class {k}" for k in range(classes)])
    conflicting = torch.arange(n) < 450
    predictions = torch.where(conflicting[:, None], (labels + 1)[:, None] % classes, labels[:, None])
    predictions = predictions.expand(-1, epochs).to(torch.int16)
    losses = torch.rand(n, epochs, generator=random).half()
    partition = Partition.of(data, conflicting, conflicting.float(), "ph", predictions=predictions, losses=losses)
    text, page = written(tmp_path, data, partition, None)
    assert len(text.encode()) < 3_000_000
    assert len(page.all("img")) > 500, "in the gallery and in the table"


def test_nothing_conflicting_is_said_plainly(tiny, tmp_path):
    none = torch.zeros(len(tiny), dtype=torch.bool)
    predictions = tiny.labels[:, None].expand(-1, 3).to(torch.int16)
    partition = Partition.of(tiny, none, none.float(), "ph", predictions=predictions)
    _, page = written(tmp_path, tiny, partition, None)
    assert "No sign of a shortcut." in page.text
    assert "Look before you trust" not in page.text


def test_identify_of_data_without_a_shortcut_ends_well_and_says_so(run, tmp_path, monkeypatch):
    import numpy as np

    monkeypatch.chdir(tmp_path)
    images = np.zeros((400, 16, 16, 3), np.uint8)
    images[::2] = 255
    np.savez("plain.npz", images=images, labels=np.arange(400) % 2)
    options = ("--epochs", 2, "--batch-size", 16, "--lr", 0.01, "--model", "cnn", "--device", "cpu")
    run("identify", "plain.npz", *options, "--out", "out")
    text = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "No sign of a shortcut." in text
    assert "unskew identify plain.npz --epochs 2" in text


def test_a_network_without_a_map_of_features_is_told_of(tiny, tmp_path):
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 8), nn.ReLU())

        def forward(self, images):
            return self.layers(images)

    partition = unskew.identify(tiny, "oracle")
    run = unskew.train(tiny, partition, "smix", model=Flat(), device="cpu", epochs=1)
    _, page = written(tmp_path, tiny, partition, run)
    assert "ends in tokens or flat features" in page.text
    assert "where s-mix looks" not in str(page.tags)


def test_the_looks_are_on_samples_that_conflict_one_class_after_another(tiny, runs):
    _, trained = runs
    found = attention(tiny, None, tiny, trained)
    rows = [tiny.ids.index(row.id) for row in found.rows]
    assert not tiny.aligned[rows].any()
    assert {row.label for row in found.rows} == {tiny.class_names[int(k)] for k in tiny.labels[~tiny.aligned].unique()}
    assert found.methods == ["plain training (ERM)", "l-mix"]
    assert attention(tiny, None, None, trained) is None


def test_the_looks_are_at_what_the_network_sees(tiny):
    """Photos are kept larger than that, to crop from."""
    data = replace(tiny, input_size=10)
    run = unskew.train(data, unskew.identify(data, "oracle"), "smix", **QUICK)
    found = attention(data, None, data, [run])
    says = predict_logits(run.model, data, "cpu").argmax(1)
    for row in found.rows:
        assert row.looks[0].says == data.class_names[int(says[data.ids.index(row.id)])]
    shown = run.model
    seen: list[tuple[int, ...]] = []
    shown.register_forward_pre_hook(lambda module, given: seen.append(tuple(given[0].shape[2:])))
    attention(data, None, data, [run])
    assert seen == [(10, 10)]


def test_mixes_are_shown_with_the_looks_they_were_learnt_in(tiny):
    partition = unskew.identify(tiny, "oracle")
    made = [("smix", {}), ("smix", {"looks": 1.0}), ("lmix", {}), ("lmix", {"learns": "weight"})]
    runs = [unskew.train(tiny, partition, method, **options, **QUICK) for method, options in made]
    plain, drawn, learned, weights = (mixing(tiny, partition, run) for run in runs)
    assert "look" not in plain.about
    assert "takes up to 100% of the look" in drawn.about
    assert "a learned share μ of the look" in learned.about
    assert "α and β are learned" in weights.about
    for other in (drawn, learned):
        assert [mix.shares for mix in plain.mixes] == [mix.shares for mix in other.mixes], "the same pairs, the same λ"
        assert all(a.src != b.src for a, b in zip(plain.mixes, other.mixes))
    titles = [" ".join(str(chart) for chart in each.charts) for each in (plain, learned, weights)]
    assert ["Density of λ" in text for text in titles] == [True] * 3
    assert ["Density of μ" in text for text in titles] == [False, True, False]
    assert ["Mean of μ" in text for text in titles] == [False, True, False]
    assert ["Belief in looks" in text for text in titles] == [False, True, False]
    assert ["Mean of λ" in text for text in titles] == [False, False, True]


def test_the_density_of_a_beta_has_area_one():
    import numpy as np

    at = (np.arange(1000) + 0.5) / 1000
    for alpha, beta in ((1, 1), (2, 5), (100, 90)):
        assert density(alpha, beta, at).mean() == pytest.approx(1, abs=1e-3)

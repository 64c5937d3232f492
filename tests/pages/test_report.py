import re

import pytest
import torch

import unskew
from unskew.data.dataset import Dataset
from unskew.pages.chart import line_chart
from unskew.testing import TinyBackbone

NASTY = ["<script>alert(1)</script>", 'quote" onload="x', "ünïcode/…"]


@pytest.fixture
def nasty(tiny) -> Dataset:
    ids = [f"{NASTY[i % 3]}/{i}" for i in range(len(tiny))]
    return Dataset(tiny.images, tiny.labels, ids, NASTY, bias=tiny.bias, aligned=tiny.aligned, name="<b>set</b>")


def test_a_report_says_what_was_found_and_escapes_names(nasty, tmp_path):
    options = {"model": TinyBackbone(), "device": "cpu", "epochs": 2}
    partition = unskew.identify(nasty, **options)
    runs = [unskew.train(nasty, partition, method, test=nasty, **options) for method in ("erm", "lmix")]
    unskew.report(nasty, partition, runs, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert f"{int(partition.conflicting.sum())} of 48 samples" in page
    assert "<script" not in page
    assert 'onload="x' not in page
    assert "<b>set" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not re.search(r'(src|href)="https?:', page)
    assert page.count("data:image/png;base64,") > 6
    scores = runs[1].result.scores
    assert f"{scores.unbiased:.1%}" in page


def test_a_report_of_stage_1_alone_and_of_photos(tmp_path):
    images = torch.randint(0, 256, (20, 96, 96, 3), dtype=torch.uint8).permute(0, 3, 1, 2)
    data = Dataset(images, torch.arange(20) % 2, [str(i) for i in range(20)], ["a", "b"])
    partition = unskew.identify(data, "random")
    unskew.report(data, partition, None, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "10 of 20 samples" in page
    assert "data:image/jpeg" in page
    assert "Accuracy on the test set" not in page


def test_a_chart_spans_its_values_and_names_its_lines():
    chart = str(line_chart("Loss <of> it", {"a": [0.0, 1.0, 0.5], "b&b": [1.0, 1.0, 1.0]}))
    points = [
        [tuple(map(float, p.split(","))) for p in line.split()] for line in re.findall(r'points="([^"]*)"', chart)
    ]
    assert len(points) == 2
    (x0, y0), (x1, y1), (x2, y2) = points[0]
    assert x0 < x1 < x2
    assert y1 < y2 < y0, "larger is higher up"
    assert "b&amp;b" in chart
    assert "Loss &lt;of&gt; it" in chart

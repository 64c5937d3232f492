"""A new run set against one of an earlier command."""

import json
from pathlib import Path

import pytest

import unskew
from command_line import MODEL, QUICK, files
from unskew.earlier import earlier_run

pytestmark = pytest.mark.usefixtures("photos_here")
ERM = ("--method", "erm", "--epochs", 2, *MODEL)


def test_the_report_sets_both_runs_side_by_side(run):
    run("train", "photos", *ERM, "--out", "plain")
    outcome = run("train", "photos", *QUICK, "--method", "smix", "--against", "plain", "--out", "debiased")
    shown = [line.split()[0] for line in outcome.out.splitlines() if line.split()[:1] in (["erm"], ["smix"])]
    assert shown == ["erm", "smix"]
    page = Path("debiased/report.html").read_text(encoding="utf-8")
    assert page.count('<th scope="row">plain training (ERM)</th>') == 1
    assert '<th scope="row">s-mix</th>' in page
    assert "points gained on plain training" in page
    assert 'alt="where plain training (ERM) looks"' in page
    assert "of the first epoch&#39;s" in page, "both losses"
    assert len(Path("debiased/results.jsonl").read_text().splitlines()) == 1, "the run's own result stays alone"


def test_it_is_scored_on_the_images_of_the_new_run(run):
    run("train", "photos", *ERM, "--out", "plain")
    splits = unskew.load_splits("photos")
    found = earlier_run(Path("plain"), splits.train, splits.train, "cpu")
    assert found.result.scores == unskew.evaluate(found.model, splits.train, device="cpu")
    assert found.result.scores.count == len(splits.train)
    assert [row["epoch"] for row in found.metrics] == [1, 2]
    saved = json.loads(Path("plain/results.jsonl").read_text())
    assert (found.result.method, found.result.seed, found.result.config) == ("erm", saved["seed"], saved["config"])


def test_what_cannot_be_compared_with_is_told_before_anything_is_lost(cli, run, pictures):
    run("train", "photos", *ERM, "--out", "plain")
    pictures(Path("others"), "ant", "bee", "fly")
    run("train", "others", *ERM, "--out", "theirs")
    before = files("plain")
    broken = Path("broken")
    broken.mkdir()
    (broken / "results.jsonl").write_text('{"method": "erm"}\n')
    for folder, told in [
        ("nowhere", "compare with the --out of `unskew train`"),
        ("theirs", "it was trained on others (3 classes"),
        ("broken", "does not hold the result of a run"),
    ]:
        outcome = cli("train", "photos", *QUICK, "--against", folder, "--out", "plain")
        assert (outcome.status, told in outcome.err) == (2, True), outcome.err
    assert files("plain") == before

"""`unskew check-labels` on a run folder."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from command_line import files, rows
from unskew.data.corrections import WRONG, save_corrections
from unskew.engine.engine import Engine
from unskew.engine.method import Method


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run folder of a stage 1 that suspects just what is mislabelled: 20 of 320 zeros and ones."""
    monkeypatch.chdir(tmp_path)
    digits = load_digits()
    rows = np.flatnonzero(digits.target < 2)[:320]
    images = np.repeat((digits.images[rows] * 15).astype(np.uint8)[..., None], 3, 3).repeat(2, 1).repeat(2, 2)
    wrong = np.arange(len(rows)) < 20
    ids = np.array([f"digit {i}" for i in range(len(rows))])
    np.savez("digits.npz", images=images, labels=np.where(wrong, 1 - digits.target[rows], digits.target[rows]), ids=ids)
    folder = tmp_path / "audit"
    folder.mkdir()
    (folder / "config.yaml").write_text("data: digits.npz\nidentify: {name: ph, model: cnn, augment: crop}\n")
    lines = ["id,conflicting", *(f"{name},{int(bad)}" for name, bad in zip(ids, wrong))]
    (folder / "partition.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_the_command_proposes_marks_and_keeps_those_of_a_person(run, audit) -> None:
    save_corrections("audit/corrections.csv", {"digit 0": "conflicting"})
    screen = run("check-labels", "audit", "--epochs", 20, "--device", "cpu").out
    marks = {row["id"]: row["mark"] for row in rows("audit/corrections.csv")}
    assert marks.pop("digit 0") == "conflicting"
    assert set(marks.values()) == {WRONG}
    assert len(marks) > 10
    assert set(marks) <= {f"digit {i}" for i in range(20)}
    assert re.search(r"about \d+% \(± \d+\) of the 20 suspects have a wrong label", screen)
    assert f"{len(marks)} marks were added" in screen
    again = run("check-labels", "audit", "--epochs", 20, "--device", "cpu").out
    assert "; 0 marks were added" in again


def test_a_check_that_was_interrupted_goes_on(run, cli, audit, monkeypatch) -> None:
    given = ("check-labels", "audit", "--epochs", 3, "--seed", 1, "--device", "cpu")
    screen = run(*given).out
    assert "      1    " in screen
    whole = screen.splitlines()[-3:]
    marked = files("audit")
    (audit / "corrections.csv").unlink(missing_ok=True)
    ended = Engine._end_epoch

    def interrupted(self: Engine, method: Method, started: float) -> None:
        ended(self, method, started)
        if self.epoch == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "_end_epoch", interrupted)
        outcome = cli(*given)
    assert outcome.status == 130
    assert "--resume" in outcome.err
    resumed = run(*given, "--resume").out
    assert resumed.splitlines()[-3:] == whole
    assert "      1    " not in resumed  # the first epoch was not gone through again
    assert files("audit") == marked


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (("nowhere",), "no run folder"),
        ((".",), "has no partition.csv"),
        (("audit", "--data", "other.npz"), "have no sample in common"),
    ],
)
def test_what_is_no_run_or_of_other_data_is_refused(cli, audit, given, what) -> None:
    np.savez("other.npz", images=np.zeros((8, 16, 16, 3), np.uint8), labels=np.arange(8) % 2)
    outcome = cli("check-labels", *given)
    assert outcome.status == 2
    assert what in outcome.err
    assert "Traceback" not in outcome.err

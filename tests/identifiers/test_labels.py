"""Wrong labels among the suspects: found where there are some, not found where there are none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor

import unskew
from command_line import files, rows
from unskew.data.corrections import WRONG, save_corrections
from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.method import Method
from unskew.errors import UnskewError
from unskew.identifiers.labels import LabelJudge, _fits, two_groups
from unskew.testing import check_method


def mislabelled(data: Dataset, share: float) -> tuple[Dataset, Tensor]:
    random = torch.Generator().manual_seed(0)
    wrong = torch.rand(len(data), generator=random) < share
    other = (data.labels + torch.randint(1, data.num_classes, (len(data),), generator=random)) % data.num_classes
    return replace(data, labels=torch.where(wrong, other, data.labels)), wrong


def true_suspects(data: Dataset, wrong: Tensor) -> Partition:
    """What a stage 1 without a mistake would find: what breaks the shortcut, and what is mislabelled."""
    assert data.aligned is not None
    conflicting = ~data.aligned | wrong
    return Partition.of(data, conflicting, conflicting.float(), "test")


def test_the_judge_keeps_the_contract() -> None:
    check_method(LabelJudge)


@pytest.mark.parametrize("of_null", [0, 100, 300, 400])
def test_two_groups(of_null: int) -> None:
    random = torch.Generator().manual_seed(of_null)
    null = torch.randn(5000, generator=random)
    found = torch.cat([torch.randn(of_null, generator=random), 3 + torch.randn(400 - of_null, generator=random)])
    chance, share = two_groups(found, null)
    assert share == pytest.approx(of_null / 400, abs=0.08)
    assert ((chance >= 0) & (chance <= 1)).all()
    lower = found.argsort()  # the less it fits, the likelier a wrong label
    assert (chance[lower].diff() <= 1e-6).all()
    marked = chance > 0.5
    assert int(marked[of_null:].sum()) <= 0.1 * 400  # hardly any of the others
    assert int(marked[:of_null].sum()) >= 0.7 * of_null


def test_how_well_a_class_fits_is_its_lead_over_the_best_other() -> None:
    logits = torch.tensor([[1.0, 4.0, 2.0], [0.0, 0.0, -1.0]])
    expected = [[a - max(b, c), b - max(a, c), c - max(a, b)] for a, b, c in logits.tolist()]
    assert _fits(logits).tolist() == expected


def test_wrong_labels_are_told_from_samples_that_break_the_shortcut() -> None:
    data, wrong = mislabelled(unskew.load("digits"), 0.06)
    assert data.aligned is not None
    partition = true_suspects(data, wrong)
    check = unskew.check_labels(data, partition, progress=False)
    breaking = ~data.aligned & ~wrong
    marked = torch.tensor([name in check.marks for name in data.ids])
    assert set(check.marks.values()) == {WRONG}
    assert not (marked & ~partition.conflicting).any()
    assert check.share == pytest.approx(float(wrong.sum() / partition.conflicting.sum()), abs=0.25)
    # A coin would mark as large a share of either.
    assert (marked & wrong).sum() / wrong.sum() > 0.3 + (marked & breaking).sum() / breaking.sum()


def test_where_all_labels_are_right_hardly_any_is_marked() -> None:
    data = unskew.load("digits")
    partition = true_suspects(data, torch.zeros(len(data), dtype=torch.bool))
    check = unskew.check_labels(data, partition, progress=False)
    assert check.share < 0.25
    assert len(check.marks) < 0.15 * int(partition.conflicting.sum())


def test_few_suspects_or_no_aligned_samples_are_an_error(tiny: Dataset) -> None:
    for count, what in ((5, "5 suspects: too few"), (len(tiny), "too few aligned")):
        conflicting = torch.arange(len(tiny)) < count
        with pytest.raises(UnskewError, match=what):
            unskew.check_labels(tiny, Partition.of(tiny, conflicting, conflicting.float(), "test"), epochs=1)


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
    assert "of the 20 suspects have a wrong label" in screen
    assert f"{len(marks)} marks were added" in screen
    again = run("check-labels", "audit", "--epochs", 20, "--device", "cpu").out
    assert "; 0 marks were added" in again


def test_a_check_that_was_interrupted_goes_on(run, cli, audit, monkeypatch) -> None:
    given = ("check-labels", "audit", "--epochs", 3, "--seed", 1, "--device", "cpu")
    whole = run(*given).out.splitlines()[-3:]
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


@pytest.mark.parametrize(("folder", "what"), [("nowhere", "no run folder"), (".", "has no partition.csv")])
def test_what_is_no_run_is_refused(cli, audit, folder, what) -> None:
    outcome = cli("check-labels", folder)
    assert outcome.status == 2
    assert what in outcome.err
    assert "Traceback" not in outcome.err

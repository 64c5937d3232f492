"""Wrong labels among the suspects: found where there are some, not found where there are none."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import unskew
from unskew.data.corrections import WRONG
from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
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
    assert check.share == pytest.approx(float(wrong.sum() / partition.conflicting.sum()), abs=0.15)
    # A coin would mark as large a share of either.
    assert (marked & wrong).sum() / wrong.sum() > 0.3 + (marked & breaking).sum() / breaking.sum()


def test_where_all_labels_are_right_hardly_any_is_marked() -> None:
    data = unskew.load("digits")
    partition = true_suspects(data, torch.zeros(len(data), dtype=torch.bool))
    check = unskew.check_labels(data, partition, progress=False)
    assert check.share < 0.15
    assert len(check.marks) < 0.1 * int(partition.conflicting.sum())


def test_a_class_without_aligned_samples_is_not_judged() -> None:
    """Nothing was learnt of it, so that any label would fit as badly."""
    data = unskew.load("digits")
    conflicting = ~data.aligned | (data.labels == 3)  # type: ignore[operator]
    check = unskew.check_labels(data, Partition.of(data, conflicting, conflicting.float(), "test"), epochs=1)
    assert (check.wrong[data.labels == 3] == 0).all()
    assert len(check.wrong) == len(data)


def test_choosing_an_epoch_is_refused(tiny: Dataset) -> None:
    conflicting = torch.arange(len(tiny)) < 30
    with pytest.raises(UnskewError, match="select is for stage 2"):
        unskew.check_labels(tiny, Partition.of(tiny, conflicting, conflicting.float(), "test"), select="val")


def test_few_suspects_or_no_aligned_samples_are_an_error(tiny: Dataset) -> None:
    for count, what in ((5, "5 suspects: too few"), (len(tiny), "too few aligned")):
        conflicting = torch.arange(len(tiny)) < count
        with pytest.raises(UnskewError, match=what):
            unskew.check_labels(tiny, Partition.of(tiny, conflicting, conflicting.float(), "test"), epochs=1)

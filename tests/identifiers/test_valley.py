import pytest
import torch

from unskew.identifiers.valley import valley


def many(*counts: int) -> torch.Tensor:
    """So many values in each tenth."""
    return torch.cat([0.1 * k + 0.1 * torch.linspace(0.05, 0.95, n) for k, n in enumerate(counts)])


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((40, 10, 4, 2, 6, 20, 60, 100, 300, 900), 0.3, 0.4),
        ((400, 90, 20, 60, 100, 200, 300, 600, 900, 5000), 0.2, 0.3),
        ((2, 30, 60, 20, 3, 8, 20, 60, 200, 900), 0.4, 0.5),  # the first hill need not be at 0
        ((50, 5, 0, 0, 0, 0, 0, 0, 100, 900), 0.15, 0.3),  # the near end of a level stretch
    ],
)
def test_it_is_where_a_histogram_is_emptiest(counts, low, high):
    assert low <= valley(many(*counts)) <= high


@pytest.mark.parametrize(
    "counts",
    [
        (0, 0, 1, 2, 4, 8, 16, 64, 256, 999),
        (900, 80, 20, 9, 5, 4, 3, 2, 1, 1),
        (30, 44, 61, 84, 107, 91, 98, 117, 182, 383),  # a dent is no valley
    ],
)
def test_one_kind_is_not_cut(counts):
    assert not (many(*counts) < valley(many(*counts))).any()


def test_order_does_not_matter():
    values = many(40, 10, 4, 2, 6, 20, 60, 100, 300, 900)
    assert valley(values) == valley(values.flip(0))


def test_hills_that_smoothing_never_joins_are_no_valley() -> None:
    assert valley(torch.tensor([0.125, 0.375, 0.625, 0.875]).repeat_interleave(7)) == 0

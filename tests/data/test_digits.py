from typing import Any

import numpy as np
import pytest
import torch

from unskew.data import load, load_splits
from unskew.data.digits import COLOURS
from unskew.errors import UnskewError


def cells(data) -> torch.Tensor:
    return torch.bincount(data.labels * 10 + data.bias, minlength=100).reshape(10, 10)


@pytest.mark.parametrize("ratio", [0.5, 0.9, 0.95, 0.99])
def test_train_has_its_share_on_its_own_colour_and_the_rest_spread(ratio):
    train = load(f"digits:{ratio}")
    counts = cells(train)
    own, per_class = counts.diagonal(), counts.sum(1)
    assert ((own / per_class - ratio).abs() < 0.6 / per_class).all()
    for label in range(10):
        others = np.delete(counts[label].numpy(), label)
        assert others.max() - others.min() <= 1
    assert train.aligned is not None
    assert torch.equal(train.aligned, train.bias == train.labels)


def test_conflicting_colours_are_even_over_all_classes():
    counts = cells(load("digits"))
    conflicting = counts.sum(0) - counts.diagonal()
    assert conflicting.max() - conflicting.min() <= 1


def test_test_has_every_colour_equally_often_in_each_class():
    splits = load_splits("digits")
    assert (cells(splits.test) == 6).all()
    assert len(splits.train) == 1197
    assert not set(splits.train.ids) & set(splits.test.ids)
    per_class = torch.bincount(splits.train.labels)
    assert ((per_class / (per_class + 60) - 2 / 3).abs() < 0.015).all()


def test_the_ground_shows_the_colour_and_the_ink_the_digit():
    data = load("digits", split="test")
    assert data.bias is not None
    assert data.images.shape[1:] == (3, 24, 24)
    corner = data.pixels[:, 0, 0].numpy().astype(float)  # where hardly any digit has ink
    nearest = np.abs(corner[:, None] - COLOURS[None]).sum(-1).argmin(1)
    assert (nearest == data.bias.numpy()).mean() > 0.8
    from sklearn.datasets import load_digits

    raw: Any = load_digits()
    rows = [int(name.rsplit("/", 1)[1]) for name in data.ids]
    assert data.labels.tolist() == raw.target[rows].tolist()
    ink = data.pixels.numpy().mean(-1).reshape(-1, 8, 3, 8, 3).mean((2, 4)).reshape(len(data), -1)
    likeness = [np.corrcoef(one, other)[0, 1] for one, other in zip(ink, raw.data[rows])]
    assert np.median(likeness) > 0.8


def test_colours_are_far_apart():
    apart = np.linalg.norm(COLOURS[:, None] - COLOURS[None], axis=-1) + 1000 * np.eye(10)
    assert apart.min() > 60


def test_same_every_time_whatever_the_seeds():
    state = np.random.get_state()[1].copy()  # pyright: ignore
    one = load("digits")
    assert (np.random.get_state()[1] == state).all(), "the global generator is left alone"  # pyright: ignore
    np.random.seed(3)
    torch.manual_seed(3)
    other = load("digits:0.95")
    assert one.name == other.name == "digits:0.95"
    assert one.fingerprint == other.fingerprint
    assert torch.equal(one.images, other.images)
    assert one.ids[0].startswith("digits:0.95/train/0")


@pytest.mark.parametrize("ratio", ["0", "1", "1.5", "-0.5", "nan", "much"])
def test_bad_ratio(ratio):
    with pytest.raises(UnskewError, match=f"digits:{ratio}: the share"):
        load(f"digits:{ratio}")


def test_splits_that_are_not_there():
    with pytest.raises(UnskewError, match="has no val split; it has train and test"):
        load("digits", split="val")


def test_unlabelled_and_resized():
    data = load("digits", split="test", labelled=False, size=32)
    assert data.size == 32
    assert (data.labels == -1).all()

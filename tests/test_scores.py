from dataclasses import replace

import pytest
import torch

import unskew
from unskew.data.dataset import Dataset
from unskew.errors import UnskewError
from unskew.scores import score, wilson


def grid(**changes) -> Dataset:
    """Two classes × two biases, 10 samples in each of the four groups."""
    labels, bias = torch.arange(40) // 20, torch.arange(40) // 10 % 2
    images = torch.zeros(40, 8, 8, 3, dtype=torch.uint8).permute(0, 3, 1, 2)
    values = {"bias": bias, "aligned": labels == bias, "group_weights": torch.tensor([[0.4, 0.1], [0.2, 0.3]])}
    return Dataset(images, labels, [str(i) for i in range(40)], ["land", "water"], **(values | changes))


def predictions(*right: int) -> torch.Tensor:
    """So many of the ten are right in each group."""
    labels = torch.arange(40) // 20
    wrong = torch.cat([torch.arange(10) >= k for k in right])
    return torch.where(wrong, 1 - labels, labels)


def test_each_score_by_hand():
    s = score(predictions(10, 4, 2, 9), grid())
    assert s.all == pytest.approx(25 / 40)
    assert s.aligned == pytest.approx(19 / 20)
    assert s.unbiased == pytest.approx(6 / 20)
    assert s.gap == pytest.approx(25 / 40 - 6 / 20)
    assert s.worst_group == pytest.approx(0.2)
    assert s.minority_mean == pytest.approx(0.3)
    assert s.train_weighted == pytest.approx(0.4 * 1 + 0.1 * 0.4 + 0.2 * 0.2 + 0.3 * 0.9)
    assert s.worst_class == pytest.approx(11 / 20)
    assert s.groups == pytest.approx({"land/0": 1.0, "land/1": 0.4, "water/0": 0.2, "water/1": 0.9})
    assert s.classes == pytest.approx({"land": 0.7, "water": 0.55})


def test_what_is_not_known_is_none():
    s = score(predictions(10, 4, 2, 9), grid(bias=None, aligned=None, group_weights=None))
    assert s.all == pytest.approx(25 / 40)
    assert (s.unbiased, s.aligned, s.gap, s.worst_group, s.minority_mean, s.train_weighted) == (None,) * 6


def test_wilson_against_the_published_formula():
    low, high = wilson(torch.tensor([1.0] * 8 + [0.0] * 2))
    assert (low, high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(torch.ones(10))[1] == pytest.approx(1.0)


def test_evaluate_scores_the_model_it_is_given_and_restores_its_mode():
    class Says(torch.nn.Module):
        def __init__(self, which: int) -> None:
            super().__init__()
            self.logits = torch.nn.Parameter(torch.eye(2)[which])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert not self.training
            assert x.dtype == torch.float32
            return self.logits.expand(len(x), 2)

    model = Says(0).train()
    assert unskew.evaluate(model, grid(), device="cpu").classes == {"land": 1.0, "water": 0.0}
    assert model.training
    model.logits.data = torch.eye(2)[1]
    assert unskew.evaluate(model, grid(), device="cpu").classes == {"land": 0.0, "water": 1.0}


def test_a_model_of_another_number_of_classes_is_refused():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
    with pytest.raises(UnskewError, match="knows 5 classes and data has 2"):
        unskew.evaluate(model, grid(), device="cpu")


def test_unlabelled_data_cannot_be_scored():
    with pytest.raises(UnskewError, match="without labels"):
        unskew.evaluate(torch.nn.Identity(), replace(grid(), labels=torch.full((40,), -1)), device="cpu")


def test_labels_in_the_models_order_of_classes():
    data = grid()
    other = data.with_classes(["water", "sky", "land"])
    assert other.labels.tolist() == [2] * 20 + [0] * 20
    assert other.group_weights is not None
    assert other.group_weights.tolist() == [pytest.approx([0.2, 0.3]), [0.0, 0.0], pytest.approx([0.4, 0.1])]
    with pytest.raises(UnskewError, match="class 'water', which is not one of land, sky"):
        data.with_classes(["land", "sky"])


def test_printing_shows_names_and_intervals():
    text = str(score(predictions(10, 4, 2, 9), grid()))
    assert "unbiased" in text
    assert "30.0%" in text


def test_waterbirds_average_counts_groups_as_training_does():
    """The figure that papers call the average there: 3498, 184, 56 and 1057 of 4795 training photos."""
    train = torch.tensor([[3498, 184], [56, 1057]]) / 4795
    s = score(predictions(10, 7, 5, 9), grid(group_weights=train))
    assert s.train_weighted == pytest.approx((3498 * 1.0 + 184 * 0.7 + 56 * 0.5 + 1057 * 0.9) / 4795)
    assert s.all == pytest.approx(0.775)
    assert s.worst_group == pytest.approx(0.5)
    assert s.minority_mean == pytest.approx(0.6)

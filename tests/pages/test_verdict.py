"""The words and meters, on histories whose answer is known."""

from dataclasses import replace

import pytest
import torch

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.pages.gallery import certainty, gallery
from unskew.pages.verdict import verdict


def case(right: torch.Tensor, classes: int = 2, aligned: torch.Tensor | None = None) -> tuple[Dataset, Partition]:
    """Samples of classes in turn, right or wrong (then taken for the next class) in each epoch."""
    n = len(right)
    labels = torch.arange(n) % classes
    images = torch.zeros(n, 8, 8, 3, dtype=torch.uint8).permute(0, 3, 1, 2)
    data = Dataset(images, labels, [str(i) for i in range(n)], [f"k{i}" for i in range(classes)], aligned=aligned)
    predictions = torch.where(right, labels[:, None], (labels[:, None] + 1) % classes).to(torch.int16)
    never = ~right.cumsum(1).bool()
    score = 1 - right.float().mean(1)
    return data, Partition.of(data, never[:, -1], score, "ph", predictions=predictions, suspects=never)


def history(n: int, epochs: int = 8, never: int = 0, late: int = 0) -> torch.Tensor:
    right = torch.ones(n, epochs, dtype=torch.bool)
    right[:never] = False
    right[never : never + late, :-1] = False  # learnt in the last epoch only
    return right


def test_a_plain_case_is_quite_sure():
    found = verdict(*case(history(200, never=20)))
    assert found.headline.startswith("20 of 200 samples (10.0%) break the pattern")
    assert found.sure == "high"
    assert [meter.grade for meter in found.meters] == ["good"] * 3
    assert found.classes[0].mistaken == "k1"
    assert found.classes[0].mistaken_count == 10
    assert "They are in both classes" in found.sentences[0]


def test_a_list_that_still_shrinks_is_not_sure():
    found = verdict(*case(history(200, never=10, late=15)))
    stable = found.meters[2]
    assert stable.value == pytest.approx(10 / 25)
    assert stable.grade == "poor"
    assert found.sure == "low"


def test_a_list_whose_length_stays_and_whose_samples_change_is_not_stable():
    data, partition = case(history(200, never=20))
    partition.suspects[:10, :-1] = False
    partition.suspects[20:30, :-1] = True
    stable = verdict(data, partition).meters[2]
    assert stable.value == pytest.approx(10 / 30)
    assert stable.reading == "20 → 20 suspected in the last 2 epochs, 33% in common"


def test_a_class_that_was_never_learnt_is_told_apart_from_a_shortcut():
    right = history(200)
    right[::2] = False
    right[0] = True
    found = verdict(*case(right))
    assert found.meters[0].grade == "poor"
    assert "did not learn that class" in found.meters[0].means
    assert found.sentences[-1] == "All of them are in k0 (99, 99.0%)."
    assert found.headline == "Stage 1 learnt too little to tell."
    assert found.sure == "low"


def test_a_network_that_learnt_little_finds_no_shortcut_however_many_it_never_got_right():
    """Half of two classes right, in every epoch other ones: chance."""
    random = torch.Generator().manual_seed(0)
    right = torch.rand(400, 4, generator=random) < 0.6
    found = verdict(*case(right))
    assert found.headline == "Stage 1 learnt too little to tell."
    assert "was right on 6" in found.sentences[0]
    assert "is past 75%" in found.sentences[0]
    assert (found.clear, found.learnt, found.sure) == (False, False, "low")
    often = verdict(*case(torch.rand(400, 4, generator=random) < 0.8))
    assert often.learnt
    assert "break the pattern" in verdict(*case(history(200, never=20))).headline


def test_one_class_much_larger_than_the_other_is_not_learnt_by_always_naming_it():
    right = torch.ones(200, 4, dtype=torch.bool)
    data, partition = case(right)
    labels = (torch.arange(200) >= 180).long()
    everything_is_k0 = torch.zeros(200, 4, dtype=torch.int16)
    never = labels == 1
    data = Dataset(data.images, labels, data.ids, data.class_names)
    partition = Partition.of(data, never, never.float(), "ph", predictions=everything_is_k0)
    assert verdict(data, partition).headline == "Stage 1 learnt too little to tell."


def test_a_class_that_is_nearly_always_taken_for_the_same_other_one_is_named():
    data, partition = case(history(300, never=30), classes=3)
    found = verdict(data, partition)
    assert [(one.name, one.mistaken, one.one_sided) for one in found.classes] == [
        ("k0", "k1", True), ("k1", "k2", True), ("k2", "k0", True)
    ]  # fmt: skip
    scattered = partition.predictions.clone()
    scattered[0:30:6] = 2  # half of k0's for the other class
    other = verdict(data, replace(partition, predictions=scattered))
    assert [one.one_sided for one in other.classes] == [False, True, True]


def test_few_are_no_clear_sign():
    found = verdict(*case(history(200, never=3)))
    assert found.headline == "No clear sign of a shortcut."
    assert "Only 3 of 200" in found.sentences[0]
    assert found.sure == ""


def test_many_that_neither_a_single_look_nor_the_last_epochs_confirm_are_no_clear_sign():
    """6 are never learnt, 12 in the last epoch only, and at the first look 14 more are wrong."""
    late = history(200, never=6, late=12)
    late[40:54, 0] = False
    unsure = verdict(*case(late))
    assert [meter.grade for meter in unsure.meters[1:]] == ["poor", "poor"]
    assert unsure.headline == "No clear sign of a shortcut."
    assert "a single look names mostly others" in unsure.sentences[0]
    assert unsure.sure == ""


def test_none_is_no_sign():
    found = verdict(*case(history(200)))
    assert found.headline == "No sign of a shortcut."
    assert not found.meters


def test_the_truth_is_told_where_it_is_known():
    aligned = torch.arange(200) >= 40
    found = verdict(*case(history(200, never=20), aligned=aligned))
    assert (found.quality.precision, found.quality.recall) == (1, 0.5)


def test_without_a_history_no_meter_pretends():
    data, partition = case(history(40, never=4))
    plain = Partition.of(data, partition.conflicting, partition.score, "file.csv")
    found = verdict(data, plain)
    assert not found.meters
    assert found.sure == ""
    assert not found.trained


def test_a_single_look_is_never_called_sure():
    found = verdict(*case(history(200, epochs=1, never=20)))
    assert [meter.name for meter in found.meters] == ["Share of each class"]
    assert found.sure == ""
    assert found.clear
    assert not verdict(*case(history(200, epochs=1, never=3))).clear


def test_most_certain_first_and_equal_scores_by_loss():
    data, partition = case(history(40, never=6))
    losses = torch.zeros(40, 8).half()
    losses[:6] = torch.tensor([3, 1, 2, 5, 4, 6]).half()[:, None]
    partition = Partition.of(
        data, partition.conflicting, partition.score, "ph", predictions=partition.predictions, losses=losses
    )
    assert certainty(partition).argsort(descending=True)[:6].tolist() == [5, 3, 4, 0, 2, 1]
    (zero, one), others = gallery(data, partition)
    assert [picture.id for picture in zero.suspects] == ["4", "0", "2"]
    assert [picture.id for picture in one.suspects] == ["5", "3", "1"]
    assert all(picture.caption == "taken for k1" for picture in zero.suspects)
    assert len(zero.typical) == 10
    assert others == 0

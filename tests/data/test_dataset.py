import pytest
import torch

from unskew.data.dataset import Dataset, association, follows_shortcut
from unskew.data.partition import Partition
from unskew.errors import UnskewError
from unskew.testing import tiny_data


def made(n=6, **changes) -> Dataset:
    images = torch.arange(n * 48, dtype=torch.int64).remainder(256).to(torch.uint8).reshape(n, 4, 4, 3)
    given = {
        "images": images.permute(0, 3, 1, 2),
        "labels": torch.arange(n) % 2,
        "ids": [f"i{i}" for i in range(n)],
        "class_names": ("a", "b"),
    }
    return Dataset(**{**given, **changes})


def test_association_is_the_share_of_each_cell():
    cells = association(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1]), num_classes=2)
    assert cells.tolist() == [[0.5, 0.25], [0.0, 0.25]]


def test_association_has_room_for_biases_that_train_lacks():
    cells = association(torch.tensor([0, 1]), torch.tensor([0, 1]), num_classes=2, num_biases=4)
    assert cells.tolist() == [[0.5, 0, 0, 0], [0, 0.5, 0, 0]]


def test_follows_shortcut_where_one_bias_is_commonest_in_every_class():
    # As in CelebA: rows are not blond and blond, columns men and women. Both classes are mostly women, but
    # only blond is tied to them: women who are not blond break the shortcut, though they are many.
    counts = torch.tensor([[66874, 71629], [1387, 22880]])
    cells = counts.double() / counts.sum()
    labels, bias = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    assert follows_shortcut(labels, bias, cells).tolist() == [True, False, False, True]


def test_a_bias_unknown_to_train_does_not_follow_the_shortcut():
    cells = torch.tensor([[0.5, 0.0], [0.0, 0.5]])
    assert follows_shortcut(torch.tensor([1, 1]), torch.tensor([1, 7]), cells).tolist() == [True, False]


def test_subset_by_slice_is_a_view_and_by_rows_a_copy():
    data = made()
    view, copy = data.subset(slice(2, 5)), data.subset(torch.tensor([4, 2]))
    assert view.images.untyped_storage().data_ptr() == data.images.untyped_storage().data_ptr()
    assert copy.images.untyped_storage().data_ptr() != data.images.untyped_storage().data_ptr()
    assert view.ids == ["i2", "i3", "i4"]
    assert copy.ids == ["i4", "i2"]
    assert torch.equal(copy.images[0], data.images[4])


def test_fingerprint_follows_ids_labels_and_pixels():
    data = made()
    other_pixels = data.images.clone()
    other_pixels[3, 0, 0, 0] += 1
    others = [made(ids=list("abcdef")), made(labels=torch.zeros(6, dtype=torch.int64)), made(images=other_pixels)]
    assert made().fingerprint == data.fingerprint
    assert len({data.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_counts_must_agree():
    with pytest.raises(UnskewError, match="5 ids for 6 labels"):
        made(ids=list("abcde"))
    with pytest.raises(UnskewError, match="uint8"):
        made(images=torch.zeros(6, 3, 4, 4))


def test_data_and_partition_print_in_a_line():
    data = tiny_data(samples=1200, classes=3)
    assert data.aligned is not None
    conflicting = int((~data.aligned).sum())
    assert repr(data) == f"<Dataset {data.name}: 1,200 images, 16 px, 3 classes, {conflicting} known to conflict>"
    assert repr(Partition.of(data, ~data.aligned, data.aligned.float(), "oracle")) == (
        f"<Partition oracle: {conflicting} of 1,200 samples conflict>"
    )

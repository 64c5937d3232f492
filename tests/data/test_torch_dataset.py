import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import IterableDataset, TensorDataset

from unskew.data import load, load_splits
from unskew.errors import UnskewError


class Items(torch.utils.data.Dataset):
    def __init__(self, items, classes=None):
        self.items = items
        self.asked = []
        if classes:
            self.classes = classes

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        self.asked.append(index)
        if isinstance(self.items[index], Exception):
            raise self.items[index]
        return self.items[index]


def grey(size, value):
    return Image.new("L", size, value)


def test_tensors_keep_their_size(arrays):
    images, labels = arrays
    floats = torch.from_numpy(images.transpose(0, 3, 1, 2) / np.float32(255))
    data = load(TensorDataset(floats, torch.from_numpy(labels), torch.from_numpy(labels % 2)))
    assert np.array_equal(data.pixels.numpy(), images)
    assert data.labels.tolist() == labels.tolist()
    assert data.bias is not None
    assert data.bias.tolist() == (labels % 2).tolist()
    assert data.name == "TensorDataset"


def test_pillow_images_are_fitted_in_one_pass():
    source = Items([(grey((20, 40), 10 * i), i % 2) for i in range(10)], classes=["even", "odd"])
    data = load(source)
    assert source.asked == list(range(10))
    assert data.size == 32
    assert data.class_names == ("even", "odd")
    assert data.images[:, 0, 16, 16].tolist() == [10 * i for i in range(10)]


def test_one_large_image_makes_all_of_them_large():
    data = load(Items([(grey((20, 40), 50), 0), (grey((300, 100), 80), 1), (grey((8, 8), 90), 1)]))
    assert data.images.shape == (3, 3, 224, 224)
    assert data.images[:, 0, 100, 100].tolist() == [50, 80, 90]


def test_arrays_of_many_sizes_and_a_size_asked_for():
    ramp = [(np.full((n, n + 4, 3), n, np.uint8), n % 2) for n in (10, 11, 12)]
    assert load(Items(ramp)).images.shape == (3, 3, 32, 32)
    data = load(Items(ramp), size=16)
    assert data.images[:, 0, 8, 8].tolist() == [10, 11, 12]
    assert data.size == 16


def test_words_and_hold_out():
    splits = load_splits(Items([(grey((8, 8), i), "ab"[i % 2]) for i in range(20)]))
    assert splits.train.class_names == ("a", "b")
    assert len(splits.test) == 4


def test_unlabelled():
    assert load(Items([grey((8, 8), 1), grey((8, 8), 2)]), labelled=False).labels.tolist() == [-1, -1]


def test_broken_images():
    items = [(grey((8, 8), i), i % 2) for i in range(6)]
    source = Items([*items, OSError("image file is truncated")])
    with pytest.raises(UnskewError, match=r"1 of 7 images cannot be read, first sample 6 \(image file is truncated\)"):
        load(source)
    data = load(source, skip_bad=True)
    assert len(data) == 6
    assert "1 of 7" in data.notes[0]


class Stream(IterableDataset):
    def __iter__(self):
        yield from ()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Stream(), "map-style"),
        (Items([]), "holds no images"),
        (Items([grey((8, 8), 1)]), r"sample 0 is not \(image, label\)"),
        (Items([(grey((8, 8), 1), 0), (grey((8, 8), 1), "b")]), "words for some samples and numbers for others"),
        (Items([(grey((8, 8), 1), 0), (grey((8, 8), 1), 1, 2)]), "1 of 2 samples have a bias"),
        (Items([(torch.full((3, 8, 8), -2.0), 0)]), "sample 0: float images must lie between 0 and 1"),
        (Items([(grey((8, 8), 1), -1), (grey((8, 8), 1), 1)]), "must not be negative"),
        (Items([(grey((8, 8), 1), 0), (grey((8, 8), 1), 5)], ["a", "b"]), "names 2 classes but has label 5"),
    ],
)
def test_bad_datasets(source, message):
    with pytest.raises(UnskewError, match=message):
        load(source)

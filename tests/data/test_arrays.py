import numpy as np
import pytest
import torch

from unskew.data import load, load_splits
from unskew.errors import UnskewError


def test_native_size_and_order(arrays):
    images, labels = arrays
    data = load((images, labels))
    assert np.array_equal(data.pixels.numpy(), images)
    assert data.labels.tolist() == labels.tolist()
    assert data.ids == [str(i) for i in range(12)]
    assert data.class_names == ("0", "1", "2")
    assert data.images.untyped_storage().data_ptr() == images.ctypes.data, "nothing was copied"


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("layout", ["N×H×W×3", "N×3×H×W", "N×H×W", "N×H×W×1", "N×1×H×W"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_layouts_and_types(arrays, kind, layout, dtype):
    images, labels = arrays
    given = {
        "N×H×W×3": images,
        "N×3×H×W": images.transpose(0, 3, 1, 2),
        "N×H×W": images[..., 0],
        "N×H×W×1": images[..., :1],
        "N×1×H×W": images[:, None, :, :, 0],
    }[layout]
    given = given if dtype == "uint8" else (given / 255).astype(dtype)
    given = given if kind == "numpy" else torch.from_numpy(given.copy())
    assert np.array_equal(load((given, labels)).pixels.numpy(), images)


def test_size_and_shape_of_arrays(arrays):
    images, labels = arrays
    assert load((images, labels), size=16).images.shape == (12, 3, 16, 16)
    wide = np.concatenate([images * 0, images, images * 0], axis=2)
    assert np.array_equal(load((wide, labels)).pixels.numpy(), images)


def test_labels_with_gaps_are_named_by_their_number(arrays):
    data = load((arrays[0], np.array([3, 7, 10] * 4)))
    assert data.class_names == ("3", "7", "10")
    assert data.labels[:3].tolist() == [0, 1, 2]


def test_npz_with_everything(arrays, tmp_path):
    images, labels = arrays
    split = np.array(["train"] * 8 + ["validation"] + ["test"] * 3)
    aligned = np.arange(12) % 5 > 0
    np.savez(
        tmp_path / "set.npz",
        x=images, y=labels, bias=labels % 2, aligned=aligned, split=split,
        ids=[f"s{i}" for i in range(12)], class_names=["a", "b", "c"],
    )  # fmt: skip
    splits = load_splits(tmp_path / "set.npz")
    assert splits.val is not None
    assert splits.train.name == "set"
    assert splits.train.class_names == ("a", "b", "c")
    assert splits.val.ids == ["s8"]
    assert splits.test.ids == ["s9", "s10", "s11"]
    assert splits.train.aligned is not None
    assert splits.train.aligned.tolist() == aligned[:8].tolist(), "given, so not worked out from the bias"


def test_npz_in_parts(arrays, tmp_path):
    images, labels = arrays
    given = {"train_x": images[:8], "train_y": labels[:8], "train_bias": labels[:8]}
    given |= {"test_x": images[8:], "test_y": labels[8:], "test_bias": labels[8:]}
    np.savez(tmp_path / "set.npz", **given)
    for source in (given, tmp_path / "set.npz"):
        splits = load_splits(source)
        assert splits.val is None
        assert splits.test.ids == ["test/0", "test/1", "test/2", "test/3"]
        assert np.array_equal(splits.test.pixels.numpy(), images[8:])
        assert load(source).ids == splits.train.ids
    with pytest.raises(UnskewError, match="train has bias but test has not"):
        load_splits({key: values for key, values in given.items() if key != "test_bias"})
    with pytest.raises(UnskewError, match=r"train 8 px, test 4 px"):
        load_splits(given | {"test_x": images[8:, :4, :4]})


def test_splits_out_of_order_are_told_apart(arrays):
    images = arrays[0]
    split = np.array(["test", "train", "train"] * 4)
    splits = load_splits({"images": images, "labels": np.arange(12) // 3 % 2, "split": split})
    assert splits.test.ids == ["0", "3", "6", "9"]
    assert np.array_equal(splits.test.pixels.numpy(), images[::3])
    assert np.array_equal(splits.train.pixels.numpy(), images[split == "train"])


def test_unlabelled(arrays):
    assert load(arrays[0], labelled=False).labels.tolist() == [-1] * 12
    assert load({"images": arrays[0]}, labelled=False).class_names == ()


def spoiled(images, value):
    images = images / 255
    images[4, 2, 2, 1] = value
    return images


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (spoiled(x, np.nan), y), "image 4 has NaN"),
        (lambda x, y: (spoiled(x, 1.5), y), "between 0 and 1"),
        (lambda x, y: (spoiled(x, -0.1), y), "between 0 and 1"),
        (lambda x, y: (x.astype(np.int64), y), "not int64"),
        (lambda x, y: (x[0, 0], y), r"their shape is \(8, 3\)"),
        (lambda x, y: (x[..., :2], y), "their shape is"),
        (lambda x, y: (x[:0], y[:0]), "their shape is"),
        (lambda x, y: ([*x, x[0][:4]], y), "cannot be read as an array"),
        (lambda x, y: (x, y[:-1]), "11 labels for 12 images"),
        (lambda x, y: (x, y, y[:3]), "3 bias for 12 images"),
        (lambda x, y: (x, y - 1), "must not be negative, but number 0 is -1"),
        (lambda x, y: (x, y + 0.5), "whole numbers, but number 0 is 0.5"),
        (lambda x, y: (x, y.astype(str)), "whole number"),
        (lambda x, y: (x, np.eye(12)), "one whole number for each image"),
        (lambda x, y: (x,), "not 1 in all"),
        (lambda x, y: {"images": x, "lables": y}, "no labels or y; it has images, lables"),
        (lambda x, y: {"x": x, "y": y, "class_names": ["a", "b"]}, "names 2 classes but has label 2"),
        (lambda x, y: {"x": x, "y": y, "split": ["dev"] * 12}, "unknown split 'dev'"),
        (lambda x, y: {"x": x, "y": y, "ids": ["same"] * 12}, "'same' is the id of 12 samples"),
    ],
)
def test_bad_arrays(arrays, change, message):
    with pytest.raises(UnskewError, match=message):
        load(change(*arrays))


def test_pickles_in_npz_are_not_opened(tmp_path):
    np.savez(tmp_path / "set.npz", x=np.array([{"a": 1}], dtype=object), y=[1])
    with pytest.raises(UnskewError, match=r"cannot be read as \.npz"):
        load(tmp_path / "set.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(UnskewError, match=r"cannot be read as \.npz"):
        load(tmp_path / "text.npz")

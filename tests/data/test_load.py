"""``load`` and ``load_splits``: which samples come back, and what is held out."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from unskew.data import load, load_splits
from unskew.errors import UnskewError


def test_hold_out_is_a_fifth_of_each_class_and_is_told(photos):
    root = photos(cat=50, dog=23, eel=2)
    splits = load_splits(root)
    assert torch.bincount(splits.test.labels).tolist() == [10, 5, 1]
    assert torch.bincount(splits.train.labels).tolist() == [40, 18, 1]
    assert not set(splits.train.ids) & set(splits.test.ids)
    assert splits.val is None
    told = f"no test set in {root}/: 16 of 75 images (20% of each class) were held out as test"
    assert list(splits.notes) == [told]
    assert list(splits.train.notes) == [told]


def test_hold_out_hangs_on_ids_and_labels_alone(photos, tmp_path, save):
    root = photos(cat=30, dog=30)
    before = load_splits(root)
    torch.manual_seed(7)
    np.random.seed(7)
    moved = root.rename(tmp_path / "elsewhere")
    assert load_splits(moved).test.ids == before.test.ids
    save(moved / "dog/new.png")
    moves = set(before.test.ids) ^ set(load_splits(moved).test.ids)
    assert len(moves) <= 2, "one more image hardly changes what is held out"


def test_hold_out_does_not_follow_the_order_of_rows(arrays):
    images, labels = arrays
    ids = np.array([f"s{i}" for i in range(12)])
    turned = {"images": images[::-1].copy(), "labels": labels[::-1].copy(), "ids": ids[::-1].copy()}
    one, other = load_splits({"images": images, "labels": labels, "ids": ids}), load_splits(turned)
    assert set(one.test.ids) == set(other.test.ids)
    assert one.test.ids == [i for i in ids if i in set(one.test.ids)], "arrays keep their order"


def test_load_gives_everything_or_a_part_of_the_hold_out(photos):
    root = photos(cat=10, dog=10)
    splits = load_splits(root)
    everything = load(root)
    assert everything.ids == [*splits.train.ids, *splits.test.ids]
    assert everything.notes == []
    assert load(root, split="train").ids == splits.train.ids
    assert load(root, split="test").ids == splits.test.ids
    assert "held out" in load(root, split="test").notes[0]
    with pytest.raises(UnskewError, match="has no val split; it has none"):
        load(root, split="val")


def test_train_and_val_without_test(photos):
    root = photos("train", cat=10, dog=10)
    photos("val", cat=3, dog=3)
    splits = load_splits(root)
    assert splits.val is not None
    assert (len(splits.train), len(splits.val), len(splits.test)) == (16, 6, 4)
    assert all(name.startswith("train/") for name in [*splits.train.ids, *splits.test.ids])
    assert "4 of 20 images" in splits.notes[0]
    assert len(load(root)) == 20
    with pytest.raises(UnskewError, match="has no test split; it has train and val"):
        load(root, split="test")


def test_only_test(photos):
    root = photos("test", cat=2, dog=2)
    assert load(root, split="test").class_names == ("cat", "dog")
    with pytest.raises(UnskewError, match="has no train split; it has test"):
        load(root)
    with pytest.raises(UnskewError, match="has no train split; it has test"):
        load_splits(root)


def test_one_image_cannot_be_held_out(photos):
    root = photos(cat=5, dog=1)
    with pytest.raises(UnskewError, match="class dog has one image only"):
        load_splits(root)
    with pytest.raises(UnskewError, match="class dog has one image only"):
        load(root, split="train")
    assert len(load(root)) == 6


def test_one_image_of_every_class(photos, decodes):
    with pytest.raises(UnskewError, match="one image only"):
        load_splits(photos(cat=1, dog=1))
    assert decodes == [], "told before any work is done"


def test_class_that_only_test_has(photos):
    root = photos("train", cat=2, dog=2)
    photos("test", bird=1, cat=1)
    for ask in (load_splits, load, lambda source: load(source, split="test")):
        with pytest.raises(UnskewError, match=r"class bird has images outside train, such as test/bird/0\.png"):
            ask(root)


def test_class_that_only_train_has(photos):
    root = photos("train", ant=2, cat=2, dog=2)
    photos("test", dog=1)
    splits = load_splits(root)
    assert splits.test.class_names == ("ant", "cat", "dog")
    assert splits.test.labels.tolist() == [2]


def test_class_whose_readable_images_are_all_held_out(photos):
    root = photos(cat=10, dog=2, eel=10)
    (held,) = [name for name in load_splits(root).test.ids if name.startswith("dog")]
    other = {"dog/0.png": "dog/1.png", "dog/1.png": "dog/0.png"}[held]
    (root / other).write_bytes(b"")
    with pytest.raises(UnskewError, match="class dog has images outside train"):
        load_splits(root, skip_bad=True)


def test_shortcut_comes_from_train_alone(arrays):
    # In train, label = bias but once; test says the opposite, and must not have a say.
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1])
    bias = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    split = np.array(["train"] * 8 + ["test"] * 4)
    splits = load_splits({"images": arrays[0], "labels": labels, "bias": bias, "split": split})
    assert splits.train.aligned is not None
    assert splits.test.aligned is not None
    assert splits.test.group_weights is not None
    assert splits.train.aligned.tolist() == [True] * 3 + [False] + [True] * 4
    assert splits.test.aligned.tolist() == [False] * 4
    assert splits.test.group_weights.tolist() == [[3 / 8, 1 / 8], [0, 4 / 8]]


def test_unknown_split(photos):
    with pytest.raises(UnskewError, match="unknown split 'dev'"):
        load(photos(cat=2, dog=2), split="dev")


def test_importing_is_light():
    heavy = ["PIL", "sklearn", "pyarrow", "datasets", "pandas", "rich", "matplotlib"]
    code = f"import sys, unskew.data; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"

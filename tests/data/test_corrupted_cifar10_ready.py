"""Sets of Corrupted CIFAR-10 that were made elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from fake_cifar10 import fake, write_npz
from natural import natural
from PIL import Image

from unskew.data import cifar10, load, load_splits, sources
from unskew.errors import UnskewError

NAME = "corrupted-cifar10:0.95"


def attributes(count: int) -> np.ndarray:
    """Class i comes with corruption i, but for every seventh image."""
    label = np.arange(count) % 10
    return np.stack([label, np.where(np.arange(count) % 7, label, (label + 3) % 10)], axis=1)


def write_lff(folder: Path) -> Path:
    for split, count, seed in (("train", 60, 0), ("valid", 30, 1)):
        (folder / split).mkdir(parents=True)
        np.save(folder / split / "images.npy", natural(count, seed=seed))
        np.save(folder / split / "attrs.npy", attributes(count).astype(np.uint8))
    return folder


def write_disent(root: Path, percent: str) -> Path:
    for split, count in (("align", 20), ("conflict", 10), ("valid", 10), ("test", 30)):
        for i, (label, bias) in enumerate(attributes(60)):
            if (split == "align" and label != bias) or (split == "conflict" and label == bias) or i >= 3 * count:
                continue
            folder = root / (split if split == "test" else f"{percent}/{split}") / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            colour = np.full((32, 32, 3), [label, bias, i], np.uint8)
            Image.fromarray(colour).save(folder / f"{i}_{label}_{bias}.png")
    return root


@pytest.mark.parametrize("below", ["", "sets", "."])
def test_lff(tmp_path, below):
    name = "CorruptedCIFAR10-Type0-Skewed0.05-Severity4"
    folder = write_lff(tmp_path / "sets" / name)
    root = folder if below == "." else tmp_path / below
    write_npz(tmp_path / "cifar10.npz", fake(20))  # a set that is there already is not made again
    splits = load_splits(NAME, root)
    for part, count, seed, split in ((splits.train, 60, 0, "train"), (splits.test, 30, 1, "test")):
        assert (part.pixels.numpy() == natural(count, seed=seed)).all()
        assert part.labels.tolist() == attributes(count)[:, 0].tolist()
        assert part.bias.tolist() == attributes(count)[:, 1].tolist()
        assert part.aligned.tolist() == (part.labels == part.bias).tolist()
        assert part.ids[12] == f"{NAME}/{split}/00012"
    assert splits.val is None
    assert splits.train.class_names == cifar10.CLASSES
    assert splits.train.name == NAME
    assert any(name in note for note in splits.notes)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("CorruptedCIFAR10-Type0-Skewed0.02-Severity4", "corrupted-cifar10:0.98"),
        ("CorruptedCIFAR10-Type0-Skewed0.01-Severity4", "corrupted-cifar10:0.99"),
        ("CorruptedCIFAR10-Type1-Skewed0.005-Severity2", "corrupted-cifar10:0.995:type1:3"),
    ],
)
def test_lff_is_used_for_its_own_recipe_only(tmp_path, folder, name):
    write_lff(tmp_path / folder)
    assert len(load(name, tmp_path)) == 60
    with pytest.raises(UnskewError, match="CIFAR-10 was not found"):
        load(NAME, tmp_path)


@pytest.mark.parametrize("percent", ["0.5pct", "1pct", "2pct", "5pct"])
@pytest.mark.parametrize("below", ["", "cifar10c", "cifar10c/{}"])
def test_disent(tmp_path, percent, below):
    write_disent(tmp_path / "cifar10c", percent)
    name = f"corrupted-cifar10:{1 - float(percent[:-3]) / 100:g}"
    root = tmp_path / below.format(percent)
    splits = load_splits(name, root)
    assert set(sources.read(name, root, True, None).split) == {"train", "val", "test"}
    assert len(splits.train) == 51 + 5
    assert len(splits.val) == 30
    assert len(splits.test) == 60
    for part in (splits.train, splits.val, splits.test):
        assert part.size == 32
        assert (part.pixels[:, 0, 0, 0] == part.labels).all()
        assert (part.pixels[:, 0, 0, 1] == part.bias).all()
        assert part.aligned.tolist() == (part.labels == part.bias).tolist()
    assert 0 < int(splits.train.aligned.sum()) < len(splits.train)
    assert f"{percent}/align/1/1_1_1.png" in splits.train.ids
    assert "test/0/0_0_3.png" in splits.test.ids
    assert any(percent in note for note in splits.notes)
    with pytest.raises(UnskewError, match="CIFAR-10 was not found"):
        load(f"{name}:type1", root)
    with pytest.raises(UnskewError, match="CIFAR-10 was not found"):
        load(f"{name}:4", root)


def test_disent_without_valid(tmp_path):
    write_disent(tmp_path, "5pct")
    (tmp_path / "5pct/valid").rename(tmp_path / "elsewhere")
    assert set(sources.read(NAME, tmp_path, True, None).split) == {"train", "test"}


def test_unlabelled(tmp_path):
    write_lff(tmp_path / "CorruptedCIFAR10-Type0-Skewed0.05-Severity4")
    assert (load(NAME, tmp_path, labelled=False).labels == -1).all()


def test_bad_lff(tmp_path):
    folder = write_lff(tmp_path / "CorruptedCIFAR10-Type0-Skewed0.05-Severity4")
    np.save(folder / "train/attrs.npy", attributes(59))
    with pytest.raises(UnskewError, match=r"attrs\.npy N×2 .* not \(60, 32, 32, 3\) of uint8 and \(59, 2\)"):
        load(NAME, tmp_path)
    np.save(folder / "train/attrs.npy", attributes(60) + 1)
    with pytest.raises(UnskewError, match="go from 0 to 9, but there is 10"):
        load(NAME, tmp_path)
    np.save(folder / "train/attrs.npy", np.array([{}], dtype=object))
    with pytest.raises(UnskewError, match=r"train/attrs\.npy cannot be read"):
        load(NAME, tmp_path)
    np.save(folder / "train/attrs.npy", attributes(60))
    images = folder / "valid/images.npy"
    images.write_bytes(images.read_bytes()[:-10])
    with pytest.raises(UnskewError, match=r"valid/images\.npy cannot be read"):
        load(NAME, tmp_path)
    images.unlink()
    with pytest.raises(UnskewError, match=r"valid/images\.npy cannot be read .*No such file"):
        load(NAME, tmp_path)


def test_bad_disent(tmp_path):
    write_disent(tmp_path, "5pct")
    odd = tmp_path / "5pct/conflict/nameless.png"
    Image.new("RGB", (32, 32)).save(odd)
    with pytest.raises(UnskewError, match=r"nameless\.png: the name of an image must end"):
        load(NAME, tmp_path)
    odd.unlink()
    (tmp_path / "test").rename(tmp_path / "elsewhere")
    with pytest.raises(UnskewError, match="test/ holds no PNG files"):
        load(NAME, tmp_path)

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_cifar10 import fake, write_bin, write_npz, write_py

from unskew.data import cifar10, corrupted_cifar10, load, load_splits, parallel
from unskew.data.corrupted_cifar10 import TYPES, biases, parse
from unskew.data.corruptions import corrupt, frost
from unskew.errors import UnskewError

SMALL = fake()


@pytest.fixture(autouse=True)
def _drawn_frost(monkeypatch):
    """The same whether or not the photographs are installed."""
    monkeypatch.setattr(frost, "PACKAGE", "not_a_package")


@pytest.fixture
def root(tmp_path) -> Path:
    write_npz(tmp_path / "data/cifar10.npz", SMALL)
    return tmp_path / "data"


@pytest.fixture
def makings(monkeypatch) -> list:
    """Every chunk of images that is corrupted from now on."""
    seen = []
    real = corrupted_cifar10.corruptions.corrupt_numbered

    def making(images, name, *rest):
        seen.append(name)
        return real(images, name, *rest)

    monkeypatch.setattr(corrupted_cifar10.corruptions, "corrupt_numbered", making)
    return seen


def cells(labels, bias) -> np.ndarray:
    return np.bincount(np.asarray(labels) * 10 + np.asarray(bias), minlength=100).reshape(10, 10)


@pytest.mark.parametrize(
    ("ratio", "aligned", "conflicting"),
    [(0.95, 47500, 2500), (0.98, 49000, 1000), (0.99, 49500, 500), (0.995, 49750, 250)],
)
def test_cells_of_the_full_train_set(ratio, aligned, conflicting):
    labels = np.random.RandomState(0).permutation(np.arange(50_000) % 10)
    counts = cells(labels, biases(labels, ratio))
    assert counts.trace() == aligned
    assert counts.sum() - counts.trace() == conflicting
    assert (counts.diagonal() == aligned // 10).all()
    others = counts[~np.eye(10, dtype=bool)]
    assert others.min() == conflicting // 90
    assert others.max() == -(-conflicting // 90)


def test_cells_of_the_full_test_set():
    labels = np.random.RandomState(0).permutation(np.arange(10_000) % 10)
    assert (cells(labels, biases(labels, 0.1)) == 100).all()


def test_within_a_class_corruptions_come_in_file_order():
    labels = np.repeat(np.arange(10), 5000)
    bias = biases(labels, 0.95).reshape(10, 5000)
    assert (np.diff(bias) >= 0).all()
    assert np.searchsorted(bias[0], np.arange(1, 11)).tolist()[:3] == [4750, 4778, 4806]
    assert np.searchsorted(bias[2], np.arange(1, 11)).tolist()[:4] == [28, 56, 4806, 4833]


@pytest.mark.parametrize("ratio", [0.95, 0.3, 0.1])
@pytest.mark.parametrize("count", [1, 7, 150, 199])
def test_rule_for_any_number_of_images(count, ratio):
    labels = np.random.RandomState(1).permutation(np.repeat(np.arange(10), count))
    bias = biases(labels, ratio)
    for label in range(10):
        shares = [ratio if k == label else (1 - ratio) / 9 for k in range(10)]
        cuts = [round(count * sum(shares[: k + 1])) for k in range(10)]
        expected = [next(k for k in range(10) if cuts[k] > place) for place in range(count)]
        assert bias[labels == label].tolist() == expected


@pytest.mark.parametrize("source", ["corrupted-cifar10:0.9", "corrupted-cifar10:0.8:type1:2"])
def test_every_image_has_the_corruption_of_its_bias(root, source):
    recipe = parse(source.partition(":")[2])
    splits = load_splits(source, root)
    for part, start in ((splits.train, 0), (splits.test, 500)):
        assert part.bias is not None
        labels = SMALL.labels[start : start + len(part)]
        assert part.labels.tolist() == labels.tolist()
        assert part.bias.tolist() == biases(labels, recipe.ratio if start == 0 else 0.1).tolist()
        assert part.aligned.tolist() == (part.bias == part.labels).tolist()
        for i in range(0, len(part), 9):
            name, number = TYPES[recipe.type][int(part.bias[i])], start + i
            expected = corrupt(SMALL.images[number : number + 1], name, recipe.severity, start=number)
            assert (part.pixels[i].numpy() == expected[0]).all()
    assert (cells(splits.test.labels, splits.test.bias) == 1).all()
    assert splits.train.ids[12] == f"{source}/train/00012"
    assert splits.test.ids[99] == f"{source}/test/00099"
    assert splits.train.class_names == cifar10.CLASSES
    assert splits.train.name == source
    assert splits.val is None
    assert "made from cifar10.npz" in splits.notes
    assert ("frost: procedural" in splits.notes) == (recipe.type == "type0"), "type1 has no frost in it"


def test_type0_is_snow_for_airplanes_and_type1_leaves_trucks_alone(root):
    data = load("corrupted-cifar10:0.9:type1", root)
    trucks = np.flatnonzero((data.labels == 9).numpy() & data.aligned.numpy())
    assert (data.pixels.numpy()[trucks] == SMALL.images[trucks]).all()
    assert TYPES["type0"][0] == "snow"
    assert TYPES["type0"][8:] == ("pixelate", "saturate")
    assert TYPES["type1"][9] == "original"


def test_every_layout_cores_and_chunks_give_the_same(root, tmp_path, monkeypatch):
    first = load("corrupted-cifar10:0.9", root).images.clone()
    for cores, chunk, write in ((1, 7, write_bin), (3, 64, write_py)):
        monkeypatch.setattr(parallel, "_cores", lambda cores=cores: cores)
        monkeypatch.setattr(corrupted_cifar10, "CHUNK", chunk)
        write(tmp_path / write.__name__ / "cifar", SMALL, monkeypatch)
        assert torch.equal(load("corrupted-cifar10:0.9", tmp_path / write.__name__).images, first)


def test_same_whatever_the_seeds_and_the_spelling(root):
    one = load("corrupted-cifar10:0.9", root)
    np.random.seed(3)
    torch.manual_seed(3)
    other = load("corrupted-cifar10:0.90:type0:5", root)
    assert one.name == other.name == "corrupted-cifar10:0.9"
    assert one.fingerprint == other.fingerprint


def test_second_load_makes_and_reads_nothing(root, cache_folder, makings, monkeypatch):
    first = load_splits("corrupted-cifar10:0.9", root)
    assert len(makings) >= 10
    makings.clear()
    monkeypatch.setattr(cifar10, "_read_npz", None)
    again = load_splits("corrupted-cifar10:0.9", root)
    assert makings == []
    for part in ("train", "test"):
        one, other = getattr(first, part), getattr(again, part)
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.bias, other.bias)
        assert one.fingerprint == other.fingerprint
    assert first.notes == again.notes
    (kept,) = cache_folder.glob("*.npy")
    assert str(kept) in Path("/proc/self/maps").read_text(), "mapped, not read"
    told = json.loads(kept.with_suffix(".json").read_text())
    assert (told["ratio"], told["type"], told["severity"], told["frost"]) == (0.9, "type0", 5, "procedural")
    assert sorted(path.suffix for path in cache_folder.iterdir()) == [".json", ".npy"], "nothing half-written"


@pytest.mark.parametrize("change", ["ratio", "severity", "type", "source", "frost", "code", "corruptions"])
def test_what_is_kept_is_kept_by_recipe(root, makings, monkeypatch, change):
    name = "corrupted-cifar10:0.9"
    load(name, root)
    makings.clear()
    if change == "source":
        os.utime(root / "cifar10.npz", ns=(1, 1))
    elif change == "frost":
        monkeypatch.setattr(corrupted_cifar10.corruptions, "frost_source", lambda: "imagecorruptions")
    elif change == "code":
        monkeypatch.setattr(corrupted_cifar10, "VERSION", 0)
    elif change == "corruptions":
        monkeypatch.setattr(corrupted_cifar10.corruptions, "VERSION", 0)
    else:
        name = {"ratio": "corrupted-cifar10:0.8", "severity": f"{name}:4", "type": f"{name}:type1"}[change]
    load(name, root)
    assert makings


@pytest.mark.parametrize("damage", ["cut", "empty", "no sidecar", "bad sidecar", "fewer labels"])
def test_damaged_cache_is_made_anew(root, cache_folder, makings, damage):
    first = load("corrupted-cifar10:0.9", root).images.clone()
    (pixels,), (sidecar,) = cache_folder.glob("*.npy"), cache_folder.glob("*.json")
    if damage == "cut":
        pixels.write_bytes(pixels.read_bytes()[:-100])
    elif damage == "empty":
        pixels.write_bytes(b"")
    elif damage == "no sidecar":
        sidecar.unlink()
    elif damage == "bad sidecar":
        sidecar.write_text("[]")
    else:
        sidecar.write_text(json.dumps({"train": 500, "labels": "0123"}))
    makings.clear()
    assert torch.equal(load("corrupted-cifar10:0.9", root).images, first)
    assert makings


def test_unwritable_cache_warns_and_works_from_memory(root, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="corrupted-cifar10:0.9 is not kept for the next run"):
        assert len(load("corrupted-cifar10:0.9", root)) == 500


def test_a_bar_is_drawn(root, monkeypatch):
    bars = []
    monkeypatch.setattr(
        corrupted_cifar10, "watched", lambda results, total, doing: bars.append((total, doing)) or results
    )
    load("corrupted-cifar10:0.9", root)
    assert bars == [(10, "making corrupted-cifar10:0.9")]


def test_unlabelled(root):
    data = load("corrupted-cifar10:0.9", root, labelled=False)
    assert (data.labels == -1).all()
    assert data.bias is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("corrupted-cifar10", "corrupted-cifar10: the share .* between 0 and 1, as in corrupted-cifar10:0.95"),
        ("corrupted-cifar10:1", "between 0 and 1"),
        ("corrupted-cifar10:0", "between 0 and 1"),
        ("corrupted-cifar10:-0.5", "between 0 and 1"),
        ("corrupted-cifar10:nan", "between 0 and 1"),
        ("corrupted-cifar10:much", "corrupted-cifar10:much: the share"),
        ("corrupted-cifar10:0.95:type2", "unknown type 'type2'; did you mean type"),
        ("corrupted-cifar10:0.95:6", "severity, 1 to 5"),
        ("corrupted-cifar10:0.95:type1:0", "severity, 1 to 5"),
        ("corrupted-cifar10:0.95:type1:high", "severity, 1 to 5"),
        ("corrupted-cifar10:0.95:3:type1", "severity, 1 to 5, and then nothing"),
    ],
)
def test_bad_names(root, name, message):
    with pytest.raises(UnskewError, match=message):
        load(name, root)


def test_no_cifar(tmp_path):
    with pytest.raises(UnskewError, match=r"CIFAR-10 was not found in .*cifar\.html.*--data-dir"):
        load("corrupted-cifar10:0.95", tmp_path)
    with pytest.raises(UnskewError, match="no folder"):
        load("corrupted-cifar10:0.95", tmp_path / "absent")

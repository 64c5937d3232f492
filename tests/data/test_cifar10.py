import hashlib
import io
import os
import pickle

import numpy as np
import pytest
import torch
from fake_cifar10 import fake, write_bin, write_npz, write_py

from unskew.data import cifar10, load, load_splits
from unskew.errors import UnskewError


@pytest.fixture(scope="module")
def cifar():
    return fake()


@pytest.mark.parametrize("layout", ["py", "bin", "npz"])
@pytest.mark.parametrize("below", ["", "downloads"])
def test_every_layout_gives_the_same(tmp_path, cifar, monkeypatch, layout, below):
    root = tmp_path / "data"
    if layout == "npz":
        write_npz(root / below / "cifar10.npz", cifar)
    else:
        write = write_py if layout == "py" else write_bin
        write(root / below / f"cifar-10-batches-{layout}", cifar, monkeypatch)
    splits = load_splits("cifar10", root)
    assert (splits.train.pixels.numpy() == cifar.images[:500]).all()
    assert (splits.test.pixels.numpy() == cifar.images[500:]).all()
    assert splits.train.labels.tolist() == cifar.labels[:500].tolist()
    assert splits.test.labels.tolist() == cifar.labels[500:].tolist()
    assert splits.train.bias is None
    assert splits.train.class_names == cifar10.CLASSES
    assert splits.train.ids[12] == "cifar10/train/00012"
    assert splits.test.ids[0] == "cifar10/test/00000"
    assert "500 train and 100 test" in splits.notes[0]


def test_the_folder_itself(tmp_path, cifar, monkeypatch):
    folder = write_bin(tmp_path / "anything", cifar, monkeypatch)
    assert len(load("cifar10", folder, "test")) == 100


def test_found_in_data_and_in_the_cache(tmp_path, cifar, cache_folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnskewError, match=r"not found in \./data and .*cifar\.html, .*--data-dir"):
        load("cifar10")
    write_npz(cache_folder / "sets/cifar.npz", cifar)
    assert len(load("cifar10")) == 500
    other = fake(50)
    write_npz(tmp_path / "data/cifar.npz", other)
    assert len(load("cifar10")) == 250, "./data comes first"


def test_another_npz_beside_it_is_not_taken(tmp_path, cifar):
    write_npz(tmp_path / "cifar10.npz", cifar)
    np.savez(tmp_path / "a.npz", train_x=np.zeros((3, 28, 28)), train_y=[0], test_x=[0], test_y=[0])
    (tmp_path / "b.npz").write_bytes(b"nothing")
    assert len(load("cifar10", tmp_path)) == 500


def test_unlabelled(tmp_path, cifar):
    write_npz(tmp_path / "cifar10.npz", cifar)
    assert (load("cifar10", tmp_path, labelled=False).labels == -1).all()


def test_nothing_there(tmp_path):
    words = r"CIFAR-10 was not found in .*: download it with `unskew .*`, or from https://www\.cs\.toronto"
    with pytest.raises(UnskewError, match=words):
        load("cifar10", tmp_path)
    with pytest.raises(UnskewError, match=r"no folder .*absent.*--data-dir"):
        load("cifar10", tmp_path / "absent")
    with pytest.raises(UnskewError, match="cifar10:0.95: cifar10 takes nothing"):
        load("cifar10:0.95", tmp_path)


@pytest.mark.parametrize("damage", ["cut", "changed", "missing", "unreadable"])
def test_damaged_pickles(tmp_path, cifar, monkeypatch, damage):
    path = write_py(tmp_path / "cifar-10-batches-py", cifar, monkeypatch) / "data_batch_3"
    raw = path.read_bytes()
    if damage == "cut":
        path.write_bytes(raw[:-1000])
    elif damage == "changed":
        path.write_bytes(raw[:5000] + bytes([raw[5000] ^ 1]) + raw[5001:])
    else:
        path.unlink()
        if damage == "unreadable":
            path.mkdir()
    with pytest.raises(UnskewError, match=r"data_batch_3 (is cut short|cannot be read).*; download CIFAR-10 again"):
        load("cifar10", tmp_path)


class Harmful:
    def __reduce__(self):
        return os.system, ("touch harmed",)


@pytest.mark.parametrize("content", [Harmful(), {b"data": Harmful()}, {b"labels": [1]}, [1, 2], b"text"])
def test_pickles_run_no_code(tmp_path, cifar, monkeypatch, content):
    path = write_py(tmp_path / "cifar-10-batches-py", cifar, monkeypatch) / "test_batch"
    path.write_bytes(pickle.dumps(content, protocol=2))
    monkeypatch.setitem(cifar10.MD5, "test_batch", hashlib.md5(path.read_bytes()).hexdigest())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnskewError, match="test_batch does not hold what a file of CIFAR-10 does"):
        load("cifar10", tmp_path)
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("name", ["eval", "getattr", "__import__"])
def test_pickles_get_no_builtins(name):
    raw = b"c" + b"builtins\n" + name.encode() + b"\n."
    with pytest.raises(pickle.UnpicklingError, match=f"builtins.{name}"):
        cifar10._ArraysOnly(io.BytesIO(raw)).load()


def test_the_public_checksums_are_asked_for(tmp_path, cifar, monkeypatch):
    with monkeypatch.context() as patch:
        write_py(tmp_path / "cifar-10-batches-py", cifar, patch)
    with pytest.raises(UnskewError, match=r"data_batch_1 is cut short, or not CIFAR-10's \(by its MD5 sum\)"):
        load("cifar10", tmp_path)


def test_damaged_binary_files(tmp_path, cifar, monkeypatch):
    path = write_bin(tmp_path / "cifar-10-batches-bin", cifar, monkeypatch) / "data_batch_2.bin"
    raw = path.read_bytes()
    path.write_bytes(raw[:-1])
    with pytest.raises(UnskewError, match=r"data_batch_2\.bin has 307299 bytes instead of 307300; download"):
        load("cifar10", tmp_path)
    path.write_bytes(bytes([(raw[0] + 1) % 10]) + raw[1:])
    with pytest.raises(UnskewError, match="classes are not equally frequent"):
        load("cifar10", tmp_path)
    path.unlink()
    with pytest.raises(UnskewError, match=r"data_batch_2\.bin cannot be read"):
        load("cifar10", tmp_path)


def test_bad_npz(tmp_path, cifar):
    path = write_npz(tmp_path / "cifar10.npz", cifar)
    raw = path.read_bytes()
    path.write_bytes(raw[:-100_000])
    with pytest.raises(UnskewError, match=r"cifar10\.npz cannot be read"):
        load("cifar10", tmp_path)
    path.write_bytes(raw[:100_000] + bytes(100) + raw[100_100:])
    with pytest.raises(UnskewError, match=r"cifar10\.npz cannot be read as \.npz \(.*CRC"):
        load("cifar10", tmp_path)
    images, labels = cifar.images[:20], np.arange(20)
    np.savez(path, train_x=images, train_y=labels, test_x=images, test_y=labels)
    with pytest.raises(UnskewError, match="has label 19"):
        load("cifar10", tmp_path)
    small = images[:, :28, :28]
    np.savez(path, train_x=small, train_y=labels % 10, test_x=small, test_y=labels % 10)
    with pytest.raises(UnskewError, match="28×28 pixels; those of CIFAR-10 have 32×32"):
        load("cifar10", tmp_path)


def test_planes_are_red_green_blue(tmp_path, cifar, monkeypatch):
    folder = write_bin(tmp_path / "cifar-10-batches-bin", cifar, monkeypatch)
    record = np.fromfile(folder / "data_batch_1.bin", np.uint8)[:3073]
    image = load("cifar10", tmp_path).images[0]
    assert torch.equal(image.flatten(), torch.from_numpy(record[1:]))

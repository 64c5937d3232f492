"""A small CIFAR-10 in each of the layouts that the real one comes in."""

import hashlib
import io
import pickle
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from natural import natural

from unskew.data import cifar10
from unskew.data.cifar10 import Cifar10

BATCHES = list(cifar10.MD5)


def fake(records: int = 100) -> Cifar10:
    """Six batches; over all, each class is equally frequent in train and in test."""
    random = np.random.RandomState(2)
    train, test = random.permutation(np.arange(5 * records) % 10), random.permutation(np.arange(records) % 10)
    return Cifar10(natural(6 * records, seed=3), np.concatenate([train, test]), 5 * records)


class Python2(pickle._Pickler):  # pyright: ignore
    """Strings as Python 2 wrote them, which is how the real files have them, numpy's own included."""

    def save_string(self, obj):
        raw = obj.encode() if isinstance(obj, str) else obj
        self.write(pickle.BINSTRING + struct.pack("<i", len(raw)) + raw)

    dispatch: ClassVar = {**pickle._Pickler.dispatch, bytes: save_string, str: save_string}  # pyright: ignore


def write_py(folder: Path, cifar: Cifar10, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real files have public checksums; here the table gets those of the fake ones."""
    folder.mkdir(parents=True)
    sums = {}
    for name, (planes, labels) in zip(BATCHES, batches(cifar)):
        file = io.BytesIO()
        names = [b"some_s_%06d.png" % i for i in range(len(labels))]
        batch = {b"batch_label": b"a batch", b"labels": labels.tolist(), b"data": planes, b"filenames": names}
        Python2(file, protocol=2).dump(batch)
        # Where numpy kept this when the real files were written.
        raw = file.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        (folder / name).write_bytes(raw)
        sums[name] = hashlib.md5(raw).hexdigest()
    monkeypatch.setattr(cifar10, "MD5", sums)
    return folder


def write_bin(folder: Path, cifar: Cifar10, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir(parents=True)
    for name, (planes, labels) in zip(BATCHES, batches(cifar)):
        np.c_[labels.astype(np.uint8), planes].tofile(folder / f"{name}.bin")
    monkeypatch.setattr(cifar10, "RECORDS", len(cifar.labels) // 6)
    return folder


def write_npz(path: Path, cifar: Cifar10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    n = cifar.train
    images, labels = cifar.images, cifar.labels.astype(np.uint8)
    np.savez(path, train_x=images[:n], train_y=labels[:n], test_x=images[n:], test_y=labels[n:])
    return path


def batches(cifar: Cifar10) -> list[tuple[np.ndarray, np.ndarray]]:
    planes = cifar.images.transpose(0, 3, 1, 2).reshape(len(cifar.labels), -1)
    return list(zip(np.split(planes, 6), np.split(cifar.labels, 6)))

"""``cifar10``: CIFAR-10 as downloaded, in any of its layouts."""

import hashlib
import os
import pickle
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from unskew.data import arrays, cache
from unskew.data.listing import Listing
from unskew.errors import UnskewError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
SIDE = 32
MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
RECORDS = 10_000  # images in a binary file
NPZ_KEYS = ("train_x", "train_y", "test_x", "test_y")


@dataclass(frozen=True)
class Cifar10:
    """The images, N×32×32×3, and their labels: first those of train, which are ``train`` many, then those of test."""

    images: np.ndarray
    labels: np.ndarray
    train: int


@dataclass(frozen=True)
class Found:
    """CIFAR-10 on disk, not read yet."""

    where: Path
    files: Sequence[Path]
    reader: Callable[[Path], Cifar10]

    def read(self) -> Cifar10:
        cifar = self.reader(self.where)
        _check(cifar, self.where)
        return cifar

    def digest(self) -> str:
        """Names the files as they are now, without reading them."""
        digest = hashlib.sha256()
        for path in self.files:
            if path.exists():  # one that is not is told by read
                stat = path.stat()
                digest.update(f"{os.path.abspath(path)}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
        return digest.hexdigest()


def read(argument: str, data_dir: Path | None, labelled: bool) -> Listing:
    if argument:
        raise UnskewError(f"cifar10:{argument}: cifar10 takes nothing after its name.")
    found = find(data_dir)
    cifar = found.read()
    return Listing(
        name="cifar10",
        where=str(found.where),
        images=cifar.images,
        ids=numbered("cifar10", cifar),
        labels=cifar.labels if labelled else None,
        split=splits(cifar),
        class_names=CLASSES if labelled else None,
        notes=about(cifar, found.where),
    )


def numbered(name: str, cifar: Cifar10) -> list[str]:
    """An id for each image: the number it has in its split."""
    train = [f"{name}/train/{i:05d}" for i in range(cifar.train)]
    return train + [f"{name}/test/{i:05d}" for i in range(len(cifar.labels) - cifar.train)]


def splits(cifar: Cifar10) -> np.ndarray:
    return np.repeat(["train", "test"], [cifar.train, len(cifar.labels) - cifar.train])


def about(cifar: Cifar10, where: Path) -> list[str]:
    test = len(cifar.labels) - cifar.train
    if (cifar.train, test) == (50_000, 10_000):
        return []
    return [f"{where} holds {cifar.train} train and {test} test images, not the 50000 and 10000 of CIFAR-10"]


def places(data_dir: Path | None) -> list[Path]:
    """Where to look: ``data_dir``, or else ./data and the cache; and the folders directly in it."""
    data_dir = data_dir and data_dir.expanduser()
    if data_dir is not None and not data_dir.is_dir():
        raise UnskewError(f"there is no folder {data_dir} to look for data in (--data-dir).")
    roots = [Path("data"), cache.folder()] if data_dir is None else [data_dir]
    try:
        return [place for root in roots if root.is_dir() for place in (root, *_subfolders(root))]
    except OSError as error:
        raise UnskewError(f"{error.filename} cannot be read ({error.strerror}).") from error


def find(data_dir: Path | None) -> Found:
    for place in places(data_dir):
        for folder in (place, place / "cifar-10-batches-py", place / "cifar-10-batches-bin"):
            for suffix, reader in (("", _read_pickles), (".bin", _read_binary)):
                files = [folder / f"{name}{suffix}" for name in MD5]
                if any(path.is_file() for path in files):
                    return Found(folder, files, reader)
        # By name first: another set may have the same keys.
        for path in sorted(place.glob("*.npz"), key=lambda path: ("cifar" not in path.name.lower(), path)):
            if _may_be_ours(path):
                return Found(path, [path], _read_npz)
    looked = f"{data_dir}" if data_dir is not None else f"./data and {cache.folder()}"
    raise UnskewError(
        f"CIFAR-10 was not found in {looked}: download it with `unskew datasets download cifar10`, "
        f"or from {PAGE}, and name its folder with --data-dir."
    )


def _subfolders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and os.access(path, os.R_OK | os.X_OK))


def _read_pickles(folder: Path) -> Cifar10:
    batches = []
    for name, md5 in MD5.items():
        path = folder / name
        try:
            with open(path, "rb") as file:
                if hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() != md5:
                    raise UnskewError(f"{path} is cut short, or not CIFAR-10's (by its MD5 sum); {_again()}")
                file.seek(0)
                batch = _ArraysOnly(file, encoding="bytes").load()
            batches.append((np.asarray(batch[b"data"], np.uint8), np.asarray(batch[b"labels"], np.int64)))
        except OSError as error:
            raise UnskewError(f"{path} cannot be read ({error.strerror}); {_again()}") from error
        except (pickle.UnpicklingError, KeyError, TypeError, ValueError, AttributeError, IndexError, EOFError) as error:
            raise UnskewError(f"{path} does not hold what a file of CIFAR-10 does ({error}); {_again()}") from error
    return _joined(batches, folder)


class _ArraysOnly(pickle.Unpickler):
    """Plain values and numpy arrays: a pickle can name any function there is, and have it called."""

    def find_class(self, module: str, name: str):
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np.zeros(1).__reduce__()[0]  # numpy's own, wherever this version keeps it
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _read_binary(folder: Path) -> Cifar10:
    """One byte of label and 3072 of pixels for each image."""
    batches = []
    record = 1 + 3 * SIDE * SIDE
    for name in MD5:
        path = folder / f"{name}.bin"
        try:
            values = np.fromfile(path, np.uint8)
        except OSError as error:
            raise UnskewError(f"{path} cannot be read ({error.strerror}); {_again()}") from error
        if values.size != RECORDS * record:
            raise UnskewError(f"{path} has {values.size} bytes instead of {RECORDS * record}; {_again()}")
        values = values.reshape(RECORDS, record)
        batches.append((values[:, 1:], values[:, 0].astype(np.int64)))
    return _joined(batches, folder)


def _joined(batches: list[tuple[np.ndarray, np.ndarray]], folder: Path) -> Cifar10:
    """Rows of red, green and blue planes as images; the last batch is the test set."""
    planes = np.concatenate([data for data, _ in batches]).reshape(-1, 3, SIDE, SIDE)
    labels = np.concatenate([labels for _, labels in batches])
    train = len(labels) - len(batches[-1][1])
    for part in (labels[:train], labels[train:]):
        if len(set(np.bincount(part, minlength=len(CLASSES)))) != 1:
            raise UnskewError(f"{folder}: the classes are not equally frequent, as they are in CIFAR-10; {_again()}")
    return Cifar10(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels, train)


def _may_be_ours(path: Path) -> bool:
    try:
        with np.load(path, allow_pickle=False) as file:
            return set(NPZ_KEYS) <= set(file.files)
    except (OSError, ValueError, EOFError, BadZipFile):
        return "cifar" in path.name.lower()  # reading it will tell what is wrong with it


def _read_npz(path: Path) -> Cifar10:
    try:
        with np.load(path, allow_pickle=False) as file:
            given = {key: file[key] for key in NPZ_KEYS}
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise UnskewError(f"{path} cannot be read as .npz ({error}).") from error
    listing = arrays.read(given, True, "cifar10", str(path))
    assert isinstance(listing.images, np.ndarray)
    assert listing.labels is not None
    return Cifar10(listing.images, listing.labels, len(given["train_y"]))


def _check(cifar: Cifar10, where: Path) -> None:
    if cifar.images.shape[1:] != (SIDE, SIDE, 3):
        height, width = cifar.images.shape[1:3]
        raise UnskewError(f"{where} holds images of {height}×{width} pixels; those of CIFAR-10 have 32×32.")
    if cifar.labels.max() >= len(CLASSES):
        raise UnskewError(f"{where} has label {cifar.labels.max()}; those of CIFAR-10 go from 0 to 9.")


def _again() -> str:
    return f"download CIFAR-10 again from {PAGE}."

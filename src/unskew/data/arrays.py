"""Images that are arrays already: an .npz file, a dictionary, or a tuple of arrays or tensors."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from unskew.data.listing import Listing, joined
from unskew.data.pixels import as_array, pixels
from unskew.data.splits import SPELLINGS, split_names
from unskew.errors import UnskewError


def read_npz(path: Path, labelled: bool) -> Listing:
    try:
        with np.load(path, allow_pickle=False) as file:
            given = {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise UnskewError(f"{path} cannot be read as .npz ({error}).") from error
    return read(given, labelled, path.stem, str(path))


def read(source, labelled: bool, name: str = "arrays", where: str = "arrays") -> Listing:
    """One set (``images``, ``labels``), or one for each split (``train_x``, ``train_y``, ``test_x``...)."""
    if not isinstance(source, Mapping):
        fields = source if isinstance(source, tuple | list) else (source,)
        if len(fields) not in ((2, 3) if labelled else (1, 2, 3)):
            raise UnskewError(f"arrays come as (images, labels) or (images, labels, bias), not {len(fields)} in all.")
        source = dict(zip(("images", "labels", "bias"), fields))
    given = {str(key): as_array(values, f"{where}: {key}") for key, values in source.items()}
    prefixes = {
        split: f"{spelling}_"
        for spelling, split in SPELLINGS.items()
        if f"{spelling}_images" in given or f"{spelling}_x" in given
    }
    if not prefixes:
        return _part(given, "", labelled, name, where)
    parts = {split: _part(given, prefix, labelled, name, where) for split, prefix in prefixes.items()}
    return joined(parts, name, where)


def whole_numbers(values: np.ndarray, what: str) -> np.ndarray:
    """One whole number for each sample, as int64."""
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise UnskewError(
            f"{what} must be one whole number for each image, not {values.dtype} of shape {values.shape}."
        )
    wrong = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
    if len(wrong):
        raise UnskewError(f"{what} must be whole numbers, but number {wrong[0]} is {values[wrong[0]]}.")
    return values.astype(np.int64)


def class_indices(values: np.ndarray, what: str) -> np.ndarray:
    labels = whole_numbers(values, what)
    if len(labels) and labels.min() < 0:
        raise UnskewError(f"{what} must not be negative, but number {labels.argmin()} is {labels.min()}.")
    return labels


def _part(given: Mapping[str, np.ndarray], prefix: str, labelled: bool, name: str, where: str) -> Listing:
    def find(*keys: str) -> np.ndarray | None:
        return next((given[prefix + key] for key in keys if prefix + key in given), None)

    def needed(*keys: str) -> np.ndarray:
        found = find(*keys)
        if found is None:
            wanted = " or ".join(prefix + key for key in keys)
            raise UnskewError(f"{where} has no {wanted}; it has {', '.join(given) or 'nothing'}.")
        return found

    def checked(what: str, values: np.ndarray | None, numbers=whole_numbers) -> np.ndarray | None:
        if values is None:
            return None
        if values.ndim and len(values) != len(images):
            raise UnskewError(f"{where}: {len(values)} {prefix}{what} for {len(images)} images.")
        return numbers(values, f"{where}: {prefix}{what}")

    def texts(values: np.ndarray, what: str) -> np.ndarray:
        return values.astype(str)

    images = pixels(needed("images", "x"), where)
    ids = checked("ids", find("ids"), texts)
    if ids is None:
        ids = [f"{prefix.replace('_', '/')}{i}" for i in range(len(images))]
    split = None if prefix else checked("split", find("split"), texts)
    listing = Listing(
        name=name,
        where=where,
        images=images,
        ids=[str(i) for i in ids],
        split=None if split is None else split_names(split, where),
    )
    if not labelled:
        return listing
    aligned = checked("aligned", find("aligned"))
    return replace(
        listing,
        labels=checked("labels", needed("labels", "y"), class_indices),
        bias=checked("bias", find("bias")),
        aligned=None if aligned is None else aligned.astype(bool),
        class_names=[str(c) for c in given["class_names"]] if "class_names" in given else None,
    )

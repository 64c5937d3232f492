"""Train, val and test: how sources spell them, and the hold-out made where there is no test set."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.data.dataset import Dataset
from unskew.data.listing import Listing
from unskew.errors import UnskewError

SPELLINGS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
HELD_OUT = "held-out"
ORDER = ("train", HELD_OUT, "val", "test")
SHARE = 0.2


@dataclass(frozen=True)
class Splits:
    """What training needs; ``notes`` say what a reader of the results should know."""

    train: Dataset
    val: Dataset | None
    test: Dataset
    notes: Sequence[str] = ()


def split_name(spelling: str) -> str | None:
    """``"train"``, ``"val"`` or ``"test"``, or None for any other word."""
    return SPELLINGS.get(spelling.strip().lower())


def split_names(spellings: Iterable[str], where: str, first_row: int = 0) -> np.ndarray:
    """The same for a column, in which every word must be one."""
    names = []
    for row, spelling in enumerate(spellings, first_row):
        names.append(split_name(spelling))
        if names[-1] is None:
            raise UnskewError(
                f"{where}: unknown split {str(spelling)!r} in row {row}; use one of {', '.join(SPELLINGS)}."
            )
    return np.array(names)


def parts(listing: Listing) -> np.ndarray:
    """The part that each sample belongs to, one of ``ORDER``.

    Where the source has no test set, a share of each class in train is "held-out". Each user then decides
    whether that is a part of train or the test set.
    """
    part = np.full(len(listing), "train", dtype="<U8") if listing.split is None else listing.split.astype("<U8")
    if listing.labels is None or "test" in part:
        return part
    train = np.flatnonzero(part == "train")
    part[train[_held_out([listing.ids[i] for i in train.tolist()], listing.labels[train])]] = HELD_OUT
    return part


def refuse_single_images(listing: Listing, part: np.ndarray) -> None:
    """A class that cannot be held out in part is told before anything is decoded."""
    if listing.labels is None:
        return
    classes, counts = np.unique(listing.labels[np.isin(part, ("train", HELD_OUT))], return_counts=True)
    if counts.min() == 1:
        single = classes[counts.argmin()]
        name = listing.class_names[int(single)] if listing.class_names else single
        raise UnskewError(
            f"{listing.where} has no test set, and class {name!s} has one image only, so none of it can be held"
            " out: add images of that class, or a test split."
        )


def _held_out(ids: Sequence[str], labels: np.ndarray) -> np.ndarray:
    """Rows of a fifth of each class, at least one, chosen by a digest of their ids.

    The choice hangs on nothing else: not on a seed, nor on the order of the rows, and an image that is added
    moves hardly any other.
    """
    digest = np.array([int.from_bytes(hashlib.sha256(i.encode()).digest()[:8]) for i in ids], dtype=np.uint64)
    held = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) > 1:
            held.append(rows[np.argsort(digest[rows])][: max(1, round(SHARE * len(rows)))])
    return np.sort(np.concatenate(held)) if held else np.empty(0, np.int64)

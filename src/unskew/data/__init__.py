"""Read labelled images from wherever they are: ``load`` one split, or ``load_splits`` for training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from unskew.data import sources
from unskew.data.assemble import assemble
from unskew.data.dataset import Dataset, association, follows_shortcut
from unskew.data.listing import Listing
from unskew.data.splits import HELD_OUT, SHARE, Splits, parts, refuse_single_images, split_name
from unskew.errors import UnskewError

__all__ = ["Dataset", "Splits", "load", "load_splits"]


def load(
    source,
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    size: int | None = None,
    skip_bad: bool = False,
    labelled: bool = True,
    mapped: bool = False,
) -> Dataset:
    """Load one split of a source.

    Parameters
    ----------
    source
        A folder of class folders, with or without train/ val/ test/ above them; a ``.csv`` or ``.parquet``
        table (path, label[, bias][, split]); an ``.npz`` file; (images, labels[, bias]) or a dictionary of
        arrays; a torch Dataset; a Hugging Face dataset, ``hf:owner/name``, or a folder it was saved to; or a
        name such as ``digits:0.95``, ``waterbirds``, ``celeba`` or ``bar``.
    data_dir : path, optional
        Where the sets that go by name keep their files.
    split : {"train", "val", "test"}, optional
        By default train, or everything where the source has no splits. Such a source still gives "train" and
        "test": a fixed fifth of each class is held out as test.
    size : int, optional
        What a network is to see. By default arrays keep their size, and files are seen at 32 pixels if no side is
        longer than 64, else at 224. Above 64, photos are kept a seventh larger, to crop from.
    skip_bad : bool
        Leave out images that cannot be read, and say so in the notes, instead of raising.
    labelled : bool
        False to load images for prediction: no labels are needed, and all are −1.
    mapped : bool
        Leave images that were decoded before on the disk, for a reader who looks at few of them.
    """
    listing = sources.read(source, data_dir, labelled, size)
    has = _splits_of(listing)
    wanted = "train" if split is None else split_name(split)
    if wanted is None:
        raise UnskewError(f"unknown split {split!r}; it must be train, val or test.")
    held_out = not has and split is not None
    if (has and wanted not in has) or (held_out and (wanted == "val" or not labelled)):
        raise UnskewError(f"{listing.where} has no {wanted} split; it has {' and '.join(has) or 'none'}.")
    data, part = _prepared(listing, size, skip_bad, held_out, mapped)
    if held_out and wanted == "test":
        return data.subset(_rows(part, HELD_OUT))
    return data.subset(_rows(part, wanted, *([HELD_OUT] if wanted == "train" and not held_out else [])))


def load_splits(
    source, data_dir: str | Path | None = None, *, size: int | None = None, skip_bad: bool = False
) -> Splits:
    """Load all that training needs; the parameters are those of `load`.

    Where the source has no test set, a fifth of each class in train is held out as test. It is the same fifth
    on every run, and ``notes`` say so.
    """
    listing = sources.read(source, data_dir, True, size)
    has = _splits_of(listing)
    if has and "train" not in has:
        raise UnskewError(f"{listing.where} has no train split; it has {' and '.join(has)}.")
    held_out = "test" not in has
    data, part = _prepared(listing, size, skip_bad, held_out)
    val = data.subset(_rows(part, "val")) if "val" in part else None
    test = data.subset(_rows(part, HELD_OUT if held_out else "test"))
    return Splits(data.subset(_rows(part, "train")), val, test, data.notes)


def _splits_of(listing: Listing) -> list[str]:
    return [] if listing.split is None else [name for name in ("train", "val", "test") if name in listing.split]


def _prepared(
    listing: Listing, size: int | None, skip_bad: bool, held_out: bool, mapped: bool = False
) -> tuple[Dataset, np.ndarray]:
    """All samples, and the part of each; ``held_out`` tells whether that part serves as test, or as train."""
    part = parts(listing)
    if held_out:
        refuse_single_images(listing, part)
    data, part = assemble(listing, part, size, skip_bad, mapped)
    if listing.labels is None:
        return data, part
    train = torch.from_numpy(np.isin(part, ["train"] if held_out else ["train", HELD_OUT]))
    if not train.any():  # a test set by itself
        train[:] = True
    _refuse_unseen_classes(data, train, listing.where)
    if data.bias is not None:
        biases = int(data.bias.max()) + 1
        cells = association(data.labels[train], data.bias[train], data.num_classes, biases)
        aligned = follows_shortcut(data.labels, data.bias, cells) if data.aligned is None else data.aligned
        data = replace(data, group_weights=cells, aligned=aligned)
    if held_out:
        held, of = int((part == HELD_OUT).sum()), int(np.isin(part, ["train", HELD_OUT]).sum())
        note = (
            f"no test set in {listing.where}: {held} of {of} images ({SHARE:.0%} of each class) were held out as test"
        )
        data = replace(data, notes=[*data.notes, note])
    return data, part


def _refuse_unseen_classes(data: Dataset, train: torch.Tensor, where: str) -> None:
    learned = torch.bincount(data.labels[train], minlength=data.num_classes) > 0
    unseen = ~learned[data.labels]
    if unseen.any():
        row = int(unseen.int().argmax())
        raise UnskewError(
            f"{where}: class {data.class_names[int(data.labels[row])]} has images outside train, such as"
            f" {data.ids[row]}, but none in train."
        )


def _rows(part: np.ndarray, *names: str) -> torch.Tensor | slice:
    """A slice where the samples lie side by side, so that taking them copies nothing."""
    rows = np.flatnonzero(np.isin(part, names))
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return torch.from_numpy(rows)

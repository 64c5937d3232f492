"""From a listing to a Dataset: decode, leave out what cannot be read, number classes and biases."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unskew.data import cache
from unskew.data.dataset import Dataset
from unskew.data.listing import Listing
from unskew.data.pixels import resized
from unskew.data.splits import ORDER
from unskew.errors import UnskewError


def assemble(
    listing: Listing, part: np.ndarray, size: int | None, skip_bad: bool, mapped: bool = False
) -> tuple[Dataset, np.ndarray]:
    """Every readable sample, and its part.

    Samples that are decoded come in the order of their parts, so that each part is a view of one slice, and
    images that are memory-mapped stay so. Arrays keep their order.
    """
    _refuse_equal_ids(listing)
    if isinstance(listing.images, np.ndarray):
        images = listing.images if size is None else resized(listing.images, size)
        unreadable = dict(listing.unreadable)
        total = len(listing) + len(unreadable)
    else:
        order = np.argsort([ORDER.index(p) for p in part], kind="stable")
        items = [listing.images[i] for i in order]
        listing, part = listing.take(order), part[order]
        found = cache.decoded(items, size, listing.name, listing.framing, mapped)
        images, reasons, size = found.pixels, found.unreadable, found.size
        unreadable = {_called(listing, row): reason for row, reason in reasons.items()}
        total = len(listing)
        readable = np.delete(np.arange(total), list(reasons))
        listing, part = listing.take(readable), part[readable]
    notes = [*listing.notes, *_about_unreadable(unreadable, total, skip_bad)]
    labels, class_names = _classes(listing)
    dataset = Dataset(
        images=torch.from_numpy(images).permute(0, 3, 1, 2),
        labels=labels,
        ids=listing.ids,
        class_names=class_names,
        bias=None if listing.bias is None else torch.from_numpy(np.unique(listing.bias, return_inverse=True)[1]),
        aligned=None if listing.aligned is None else torch.from_numpy(listing.aligned),
        name=listing.name,
        notes=notes,
        input_size=size,
    )
    return dataset, part


def _classes(listing: Listing) -> tuple[Tensor, Sequence[str]]:
    """Labels as indices: numbers sort as numbers, words as words."""
    if listing.labels is None:
        return torch.full((len(listing),), -1), ()
    if listing.class_names is not None:
        if len(listing) and listing.labels.max() >= len(listing.class_names):
            raise UnskewError(
                f"{listing.where} names {len(listing.class_names)} classes but has label {listing.labels.max()}."
            )
        return torch.from_numpy(listing.labels), tuple(listing.class_names)
    names, labels = np.unique(listing.labels, return_inverse=True)
    return torch.from_numpy(labels), tuple(str(name) for name in names)


def _about_unreadable(unreadable: dict[str, str], total: int, skip_bad: bool) -> list[str]:
    if not unreadable:
        return []
    what, why = next(iter(unreadable.items()))
    told = f"{len(unreadable)} of {total} images cannot be read, first {what} ({why})"
    if len(unreadable) == total:
        raise UnskewError(f"{told}: there is nothing to work with.")
    if not skip_bad:
        raise UnskewError(f"{told}: remove them or pass --skip-bad.")
    return [f"{told}: they were skipped"]


def _refuse_equal_ids(listing: Listing) -> None:
    if len(set(listing.ids)) < len(listing):
        (name, count), *_ = Counter(listing.ids).most_common(1)
        raise UnskewError(f"{listing.where}: {name!r} is the id of {count} samples; ids must tell samples apart.")


def _called(listing: Listing, row: int) -> str:
    image = listing.images[row]
    return str(image) if isinstance(image, Path) else f"{listing.where} {listing.ids[row]}"

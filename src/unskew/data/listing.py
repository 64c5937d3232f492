"""What a source holds, before any image is decoded: every reader gives one of these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from unskew.errors import UnskewError

SMALL_SIDE = 64  # up to this side an image is small, and every pixel of it is seen


@dataclass(frozen=True)
class Encoded:
    """The bytes of one image file that does not lie in a folder; ``identity`` changes when they do."""

    identity: str
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Framing:
    """How photos become squares of one size.

    Parameters
    ----------
    fit : {"centre", "squash"}
        The largest square in the middle, or all of the photo, pressed into a square.
    size : int, optional
        What a network sees by default; None: by the files' own sizes.
    largest : int, optional
        What the photos have, where they all have it: they are kept as they are, and enlarged when they are seen.
    """

    fit: str = "centre"
    size: int | None = None
    largest: int | None = None

    def kept(self, size: int) -> int:
        """The side at which photos are kept for a network that sees ``size``: a seventh more, to crop from."""
        if self.largest is not None:
            return min(size, self.largest)
        return size if size <= SMALL_SIDE else round(size * 256 / 224)


@dataclass(frozen=True)
class Listing:
    """The samples of a source, in its own order.

    Parameters
    ----------
    name : str
        A short name of the source, for tables.
    where : str
        How messages call it: ``photos/``, ``labels.csv``.
    images : uint8 array N×H×W×3, or sequence of Path or Encoded
        Pixels that need no decoding, or where to find each image.
    ids : sequence of str
    labels : array of str or int, optional
        The name of each sample's class, or its index where ``class_names`` are given; absent for prediction.
    bias, aligned, split : array, optional
        ``split`` holds "train", "val" and "test", and is absent where the source knows no splits.
    framing : Framing
        How files are decoded.
    unreadable : dict
        Images that the reader met, could not read and left out: what to call them, and why.
    """

    name: str
    where: str
    images: np.ndarray | Sequence[Path | Encoded]
    ids: Sequence[str]
    labels: np.ndarray | None = None
    bias: np.ndarray | None = None
    aligned: np.ndarray | None = None
    split: np.ndarray | None = None
    class_names: Sequence[str] | None = None
    framing: Framing = Framing()
    unreadable: dict[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: np.ndarray) -> "Listing":
        """The samples at ``rows``, in that order; images that are arrays already stay as they are."""

        def picked(values: np.ndarray | None):
            return None if values is None else values[rows]

        images = self.images
        return replace(
            self,
            images=images if isinstance(images, np.ndarray) else [images[i] for i in rows],
            ids=[self.ids[i] for i in rows],
            labels=picked(self.labels),
            bias=picked(self.bias),
            aligned=picked(self.aligned),
            split=picked(self.split),
        )


def joined(parts: dict[str, Listing], name: str, where: str, notes: Sequence[str] = ()) -> Listing:
    """One listing of the splits in ``parts``, in the order they come in."""
    listings = list(parts.values())

    def column(what: str) -> np.ndarray | None:
        missing = [split for split, part in parts.items() if getattr(part, what) is None]
        if len(missing) == len(parts):
            return None
        if missing:
            has = next(split for split in parts if split not in missing)
            raise UnskewError(f"{where}: {has} has {what} but {missing[0]} has not; give it for all splits or none.")
        return np.concatenate([getattr(part, what) for part in listings])

    def images() -> np.ndarray | list:
        arrays = [part.images for part in listings if isinstance(part.images, np.ndarray)]
        if not arrays:
            return [image for part in listings for image in part.images]
        if len({array.shape[1:] for array in arrays}) > 1:
            sizes = ", ".join(f"{split} {array.shape[1]} px" for split, array in zip(parts, arrays))
            raise UnskewError(f"{where}: the splits hold images of different sizes ({sizes}); resize them to one.")
        return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]

    names = {split: part.class_names and tuple(part.class_names) for split, part in parts.items()}
    if len(set(names.values())) > 1:
        raise UnskewError(f"{where}: the splits name their classes differently ({names}).")
    return Listing(
        name=name,
        where=where,
        images=images(),
        ids=[i for part in listings for i in part.ids],
        labels=column("labels"),
        bias=column("bias"),
        aligned=column("aligned"),
        split=np.repeat(list(parts), [len(part) for part in listings]),
        class_names=listings[0].class_names,
        unreadable={what: why for part in listings for what, why in part.unreadable.items()},
        notes=[*notes, *(note for part in listings for note in part.notes)],
    )

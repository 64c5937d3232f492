"""A map-style torch Dataset of (image, label) or (image, label, bias), read in one pass."""

import numpy as np
import torch

from unskew.data.arrays import class_indices, whole_numbers
from unskew.data.listing import Listing
from unskew.data.parallel import watched
from unskew.data.pixels import as_array, pixels
from unskew.errors import UnskewError


def read(source: torch.utils.data.Dataset, labelled: bool, size: int | None) -> Listing:
    where = type(source).__name__
    if isinstance(source, torch.utils.data.IterableDataset) or not hasattr(source, "__len__"):
        raise UnskewError(f"{where} cannot be indexed: give a map-style Dataset, one with a length.")
    squares = _Squares(size)
    rows, labels, biases, unreadable = [], [], [], {}
    total = len(source)  # pyright: ignore[reportArgumentType]
    for row in watched(range(total), total, f"reading {where}"):
        try:
            item = source[row]
        except (OSError, SyntaxError) as error:  # what Pillow raises for a broken file
            unreadable[f"sample {row}"] = str(error)
            continue
        fields = list(item) if isinstance(item, tuple | list) else [item]
        if len(fields) not in ((2, 3) if labelled else (1, 2, 3)):
            raise UnskewError(f"{where}: sample {row} is not (image, label) or (image, label, bias).")
        squares.add(fields[0], f"{where}: sample {row}")
        rows.append(row)
        if labelled:
            labels.append(_plain(fields[1]))
            biases += [_plain(fields[2])] if len(fields) == 3 else []
    if not rows:
        raise UnskewError(f"{where} holds no images that can be read.")
    if biases and len(biases) != len(rows):
        raise UnskewError(f"{where}: {len(biases)} of {len(rows)} samples have a bias; give it for all or none.")
    classes = getattr(source, "classes", None)
    return Listing(
        name=where,
        where=where,
        images=squares.stacked(),
        ids=[str(row) for row in rows],
        labels=_names(labels, f"{where}: labels", class_indices) if labelled else None,
        bias=_names(biases, f"{where}: bias", whole_numbers) if biases else None,
        class_names=[str(c) for c in classes] if labelled and classes is not None and _are_numbers(labels) else None,
        unreadable=unreadable,
    )


class _Squares:
    """Collects images of any size without holding large ones, before the working size can be known.

    Arrays that all have one size keep it, as the dataset's transforms chose it. Otherwise the working size
    follows the rule for files.
    """

    def __init__(self, size: int | None) -> None:
        self.size = size
        self.images: list[np.ndarray] = []
        self.longest = 0
        self.files = False  # whether any came as a Pillow image, at the size of its file

    def add(self, image, where: str) -> None:
        from PIL import Image

        from unskew.data.decode import LARGE, SMALL_SIDE, rgb, square

        if isinstance(image, Image.Image):
            self.files = True
            self.longest = max(self.longest, *image.size)
            if self.size or max(image.size) > SMALL_SIDE:
                self.images.append(square(image, self.size or LARGE))
                return
            image = rgb(image)
        array = as_array(image, where)
        self.longest = max(self.longest, *array.shape)
        array = pixels(array[None], where)[0]
        self.images.append(square(Image.fromarray(array), self.size) if self.size else array)

    def stacked(self) -> np.ndarray:
        from PIL import Image

        from unskew.data.decode import LARGE, SMALL, SMALL_SIDE, square

        if self.size is None and (self.files or len({image.shape for image in self.images}) > 1):
            self.size = SMALL if self.longest <= SMALL_SIDE else LARGE
            self.images = [square(Image.fromarray(image), self.size) for image in self.images]
        return np.stack(self.images)


def _plain(value):
    """A label as Python has it: datasets give 0-dimensional tensors and numpy numbers too."""
    return value.item() if hasattr(value, "item") else value


def _are_numbers(values: list) -> bool:
    return not any(isinstance(value, str) for value in values)


def _names(values: list, what: str, numbers) -> np.ndarray:
    if all(isinstance(value, str) for value in values):
        return np.array(values)
    if not _are_numbers(values):
        raise UnskewError(f"{what} are words for some samples and numbers for others.")
    return numbers(as_array(values, what), what)

"""What a person may point at, and which reader understands it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

from unskew.data import (
    arrays,
    bar,
    celeba,
    cifar10,
    corrupted_cifar10,
    digits,
    folder,
    huggingface,
    table,
    torch_dataset,
    waterbirds,
)
from unskew.data.listing import Listing
from unskew.errors import UnskewError, nearest

# Sets known by name. Each reader takes what follows the colon ("" if nothing), data_dir, and ``labelled``.
NAMES: dict[str, Callable[[str, Path | None, bool], Listing]] = {
    "bar": bar.read,
    "celeba": celeba.read,
    "cifar10": cifar10.read,
    "corrupted-cifar10": corrupted_cifar10.read,
    "digits": digits.read,
    "hf": huggingface.read_name,
    "waterbirds": waterbirds.read,
}
TABLES = {".csv": table.read, ".parquet": table.read, ".npz": arrays.read_npz}


def read(source, data_dir: str | Path | None, labelled: bool, size: int | None) -> Listing:
    """List what ``source`` holds."""
    if isinstance(source, str):
        name, _, argument = source.partition(":")
        if name in NAMES:
            return NAMES[name](argument, None if data_dir is None else Path(data_dir), labelled)
    if isinstance(source, str | os.PathLike):
        return _read_path(Path(source).expanduser(), str(source), labelled)
    if huggingface.is_object(source):
        return huggingface.read(source, labelled)
    if isinstance(source, torch.utils.data.Dataset):
        return torch_dataset.read(source, labelled, size)
    if isinstance(source, Mapping | tuple | list | np.ndarray | torch.Tensor):
        return arrays.read(source, labelled)
    raise UnskewError(
        f"cannot load images from a {type(source).__name__}: give a folder, a table, a name, arrays, a torch"
        " Dataset, or a Hugging Face dataset."
    )


def _read_path(path: Path, given: str, labelled: bool) -> Listing:
    if path.is_dir():
        return (huggingface.read_saved if huggingface.is_saved(path) else folder.read)(path, labelled)
    if path.is_file():
        if not labelled and folder.is_image(path.name):
            return folder.read_one(path)
        reader = TABLES.get(path.suffix.lower())
        if reader is None:
            raise UnskewError(f"{path} is of an unknown type; a file must be one of {', '.join(TABLES)}.")
        return reader(path, labelled)
    raise UnskewError(
        f"there is no file or folder {given}, and no data set of that name: {nearest(given.partition(':')[0], NAMES)}"
    )

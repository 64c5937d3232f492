"""Hugging Face datasets: an object, ``hf:owner/name``, or a folder that ``save_to_disk`` wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unskew.data.arrays import class_indices
from unskew.data.listing import Encoded, Listing, joined
from unskew.data.splits import split_name
from unskew.errors import UnskewError


def read_name(repository: str, data_dir, labelled: bool) -> Listing:
    """From the hub, or from where an earlier download left it."""
    datasets = _package()
    if not repository:
        raise UnskewError("hf: needs the name of a dataset, as in hf:owner/name.")
    try:
        found = datasets.load_dataset(repository)
    except Exception as error:  # the hub, the network, a file system: each has errors of its own
        reason = str(error).strip().partition("\n")[0]
        raise UnskewError(f"hf:{repository} cannot be loaded ({reason or type(error).__name__}).") from error
    return read(found, labelled, repository.rstrip("/").rpartition("/")[2])


def is_saved(folder: Path) -> bool:
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def read_saved(folder: Path, labelled: bool) -> Listing:
    return read(_package().load_from_disk(str(folder)), labelled, folder.resolve().name)


def is_object(source) -> bool:
    return any(kind.__module__.partition(".")[0] == "datasets" for kind in type(source).__mro__)


def read(source: Any, labelled: bool, name: str = "dataset") -> Listing:
    datasets = _package()
    if isinstance(source, datasets.Dataset):
        return _part(source, "", labelled, name)
    if not isinstance(source, datasets.DatasetDict) or not source:
        raise UnskewError(f"{name}: a {type(source).__name__} cannot be used; load it whole, without streaming.")
    splits = {split: spelling for spelling in source if (split := split_name(str(spelling)))}
    if not splits:
        if len(source) > 1:
            raise UnskewError(f"{name} has none of the splits train, val and test; it has {', '.join(source)}.")
        return _part(next(iter(source.values())), "", labelled, name)
    others = [str(spelling) for spelling in source if spelling not in splits.values()]
    notes = [f"splits of {name} that were left out: {', '.join(others)}"] if others else []
    parts = {split: _part(source[spelling], f"{split}/", labelled, name) for split, spelling in splits.items()}
    return joined(parts, name, name, notes)


def _part(part: Any, prefix: str, labelled: bool, name: str) -> Listing:
    datasets = _package()
    features = part.features
    image = next((column for column, kind in features.items() if isinstance(kind, datasets.Image)), None)
    if image is None:
        raise UnskewError(f"{name} has no image column; its columns are {', '.join(features)}.")
    labels = bias = class_names = None
    if labelled:
        kinds = [column for column, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
        label = next((column for column in ("label", "labels", *kinds) if column in features), None)
        if label is None:
            raise UnskewError(f"{name} has no label column; its columns are {', '.join(features)}.")
        labels = _names(part, label, name, prefix)
        if isinstance(features[label], datasets.ClassLabel):
            class_names = features[label].names
            labels = class_indices(labels, f"{name}: {prefix}{label}")
        bias = _names(part, "bias", name, prefix) if "bias" in features else None
    return Listing(
        name=name,
        where=name,
        images=_images(part, image),
        ids=[f"{prefix}{i}" for i in range(len(part))],
        labels=labels,
        bias=bias,
        class_names=class_names,
    )


def _names(part: Any, column: str, name: str, prefix: str) -> np.ndarray:
    values = list(part.with_format(None)[column])
    if None in values:
        raise UnskewError(f"{name}: sample {prefix}{values.index(None)} has no {column}.")
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biuU":
        raise UnskewError(f"{name}: {column} must be one whole number or word for each image.")
    return array.astype(np.int64) if array.dtype.kind in "biu" else array


def _images(part: Any, column: str) -> Sequence[Path | Encoded]:
    """Where each image lies: in the dataset's own tables, or in a file that they point to."""
    datasets = _package()
    encoded = part.with_format(None).select_columns([column]).cast_column(column, datasets.Image(decode=False))
    fingerprint = part._fingerprint  # what datasets itself keys its caches by; there is no public name for it

    def reader(row: int):
        def read() -> bytes:
            value = encoded[row][column]
            if value is None:
                raise ValueError("no image")
            return value["bytes"] or Path(value["path"]).read_bytes()

        return read

    first = encoded[0][column] if len(encoded) else None
    if first and first["bytes"] is None:
        return [Path(row[column]["path"]) for row in encoded]
    return [Encoded(f"{fingerprint}/{column}/{row}", reader(row)) for row in range(len(encoded))]


def _package() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise UnskewError("Hugging Face datasets need a package: pip install 'unskew[hf]'.") from error
    return datasets

"""A run folder as arrays that can be filtered: its partition, matched with the images it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import unskew
from unskew.config import Loading
from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.data.partition_file import read_partition
from unskew.data.sources import read as listing_of
from unskew.errors import UnskewError
from unskew.options import names
from unskew.pages.gallery import certainty
from unskew.run_folder import CONFIG, PARTITION, saved_config
from unskew.view.originals import Originals

CHUNK = 20_000


@dataclass(frozen=True)
class Samples:
    """Everything is in the order of the partition; ``rows`` says where each image lies in ``pixels``."""

    partition: Partition
    pixels: Tensor
    rows: np.ndarray
    name: str
    source: str
    missing: int  # samples of the partition that the data has no longer
    size: int  # of what a network sees
    loading: Mapping[str, Any]  # how the images were loaded, but for their source
    originals: Originals

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ids(self) -> Sequence[str]:
        return self.partition.ids

    @property
    def class_names(self) -> Sequence[str]:
        return self.partition.class_names

    @cached_property
    def place(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.ids)}

    @cached_property
    def lowered(self) -> Sequence[str]:
        return [name.casefold() for name in self.ids]

    @cached_property
    def labels(self) -> np.ndarray:
        return self.partition.labels.numpy()

    @cached_property
    def score(self) -> np.ndarray:
        return self.partition.score.numpy()

    @cached_property
    def conflicting(self) -> np.ndarray:
        return self.partition.conflicting.numpy()

    @cached_property
    def by_certainty(self) -> np.ndarray:
        """The most surely conflicting first."""
        return certainty(self.partition).argsort(descending=True).numpy()

    @cached_property
    def predicted(self) -> np.ndarray | None:
        """The class that each sample was mostly predicted as; −1 where it was never looked at."""
        found = self.partition.predictions
        if found is None:
            return None
        usual = torch.empty(len(found), dtype=torch.int64)
        for start in range(0, len(found), CHUNK):
            part = found[start : start + CHUNK].long()
            counts = torch.zeros(len(part), len(self.class_names), dtype=torch.int16)
            counts.scatter_add_(1, part.clamp(min=0), (part >= 0).to(torch.int16))
            most, which = counts.max(1)
            usual[start : start + CHUNK] = torch.where(most > 0, which, -1)
        return usual.numpy()

    def ready(self) -> None:
        """Compute now what the first page would wait for."""
        _ = self.place, self.lowered, self.labels, self.score, self.conflicting, self.by_certainty, self.predicted


def open_run(folder: Path, data: str | None = None, data_dir: Path | None = None) -> Samples:
    """Read what ``unskew identify``, ``train`` or ``demo`` left, and load the images as they did."""
    images, partition, source, loading = read_run(folder, data, data_dir)
    return matched(partition, images, source, loading)


def read_run(
    folder: Path, data: str | None = None, data_dir: Path | None = None
) -> tuple[Dataset, Partition, str, dict[str, Any]]:
    """All images, the partition as its file has it, the name of the source, and how else it was loaded."""
    if not folder.is_dir():
        raise UnskewError(f"there is no run folder {folder}: give the --out of `unskew identify` or `unskew train`.")
    path = folder / PARTITION
    if not path.is_file():
        raise UnskewError(
            f"{folder} has no {PARTITION}, so there is nothing to look at: it is no run folder, its stage 1 has not "
            "ended, or its method needed none."
        )
    config = saved_config(folder)
    given = {name: config[name] for name in names(Loading) if config.get(name) is not None}
    if data is not None:
        given["data"] = data
    if data_dir is not None:
        given["data_dir"] = str(data_dir)
    if not given.get("data"):
        raise UnskewError(f"{folder} has no {CONFIG} that says which data it is about: say it with --data SOURCE.")
    source = str(given.pop("data"))
    try:
        images = unskew.load(source, **given, mapped=True)
    except UnskewError as error:
        raise UnskewError(f"the images of {folder} cannot be loaded (another place? --data SOURCE): {error}") from error
    return images, read_partition(path, images), source, given


def in_both(partition: Partition, data: Dataset) -> tuple[Tensor, Tensor]:
    """Which rows of the partition the data still has, and where they lie there."""
    row = {name: i for i, name in enumerate(data.ids)}
    found = torch.tensor([row.get(name, -1) for name in partition.ids], dtype=torch.int64)
    keep = (found >= 0).nonzero().flatten()
    if not len(keep):
        raise UnskewError(
            f"the partition and {data.name} have no sample in common: say which data it was made from (--data SOURCE)."
        )
    return keep, found[keep]


def matched(partition: Partition, data: Dataset, source: str, loading: Mapping[str, Any]) -> Samples:
    """The samples that are in both; no image is copied."""
    keep, rows = in_both(partition, data)
    missing = len(partition) - len(keep)
    if missing:
        partition = partition.at(keep)
    return Samples(
        partition=partition,
        pixels=data.pixels,
        rows=rows.numpy(),
        name=data.name,
        source=source,
        missing=missing,
        size=data.size,
        loading=loading,
        originals=Originals(lambda: listing_of(source, loading.get("data_dir"), True, loading.get("size"))),
    )

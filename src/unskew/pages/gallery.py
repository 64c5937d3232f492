"""A gallery class by class: typical aligned images beside the suspected conflicting ones, most certain first."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.pages.images import encoder_for

IMAGES = 300  # in the whole gallery
EACH = 10  # of a kind, in a class
CLASSES = 25
BUDGET = 1_500_000  # bytes


@dataclass(frozen=True)
class Picture:
    src: str
    id: str
    caption: str


@dataclass(frozen=True)
class ClassGallery:
    name: str
    index: int
    conflicting: int
    typical: Sequence[Picture]
    suspects: Sequence[Picture]


def gallery(data: Dataset, partition: Partition) -> tuple[list[ClassGallery], int]:
    """The classes with the most suspects, in the order of the data set; and how many others have some."""
    counts = torch.bincount(partition.labels[partition.conflicting], minlength=data.num_classes)
    hit = counts.nonzero().flatten()
    shown = list(map(int, hit[counts[hit].argsort(descending=True, stable=True)][:CLASSES].sort().values))
    each = max(2, min(EACH, IMAGES // (2 * max(len(shown), 1))))
    order = certainty(partition)
    picks = {}
    for k in shown:
        inside = partition.labels == k
        picks[k] = (
            first(order, inside & ~partition.conflicting, each, most=False),
            first(order, inside & partition.conflicting, each, most=True),
        )
    rows = [row for both in picks.values() for kind in both for row in kind]
    encode = encoder_for(data.pixels, rows, BUDGET)

    def pictures(some: Sequence[int]) -> list[Picture]:
        return [Picture(encode(data.pixels[row].numpy()), data.ids[row], caption(data, partition, row)) for row in some]

    made = [ClassGallery(data.class_names[k], k, int(counts[k]), *(pictures(some) for some in picks[k])) for k in shown]
    return made, len(hit) - len(shown)


def certainty(partition: Partition) -> Tensor:
    """Rank by score, then by mean loss: N places, the highest the most surely conflicting."""
    second = torch.zeros(len(partition)) if partition.losses is None else partition.losses.float().nanmean(1)
    by_loss = second.argsort(stable=True)
    order = by_loss[partition.score[by_loss].argsort(stable=True)]
    place = torch.empty(len(partition), dtype=torch.int64)
    place[order] = torch.arange(len(partition))
    return place


def first(place: Tensor, inside: Tensor, count: int, most: bool) -> list[int]:
    rows = inside.nonzero().flatten()
    return rows[place[rows].argsort(descending=most)[:count]].tolist()


def caption(data: Dataset, partition: Partition, row: int) -> str:
    """What stage 1 mostly took it for, if not for what it is."""
    wrong = partition.usual_wrong_class
    if partition.times_right is None or partition.predictions is None or wrong is None:
        return ""
    right, times = int(partition.times_right[row]), partition.predictions.shape[1]
    return f"taken for {data.class_names[int(wrong[row])]}" if int(wrong[row]) >= 0 and right * 2 < times else ""

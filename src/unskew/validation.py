"""Choosing without bias labels: a held-out part of the training set, with the sides that stage 1 found in it."""

from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.random import generator
from unskew.errors import UnskewError
from unskew.scores import evaluate


@dataclass(frozen=True)
class Validation:
    """Accuracies on the held-out part; what is called aligned or conflicting there is stage 1's word.

    Attributes
    ----------
    balanced : float
        Mean of the two: what to choose by. Plain accuracy would choose the shortcut, which most samples follow.
    """

    balanced: float
    aligned: float
    conflicting: float
    count: int

    def to_dict(self) -> dict:
        return asdict(self)


def hold_out(data: Dataset, partition: Partition, share: float, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Split off ``share`` of every class and side for validation; returns what is left, and the held-out part.

    Stage 1 has seen all of it; a model of stage 2 that is trained on what is left has not.

    Examples
    --------
    >>> import unskew
    >>> data = unskew.load("digits")
    >>> rest, held = hold_out(data, unskew.identify(data, "oracle"), share=0.2)
    >>> round(len(held) / len(data), 2), bool(held.aligned.all())
    (0.2, False)
    """
    partition = partition.matched_to(data)
    order = torch.randperm(len(data), generator=generator(seed, "hold out"))
    taken = torch.zeros(len(data), dtype=torch.bool)
    cell = 2 * data.labels + partition.conflicting
    for each in cell.unique():
        inside = order[cell[order] == each]
        taken[inside[: round(share * len(inside))]] = True
    held = _rows(taken)
    if not bool(partition.conflicting[held].any()) or bool(partition.conflicting[held].all()):
        raise UnskewError(
            f"{share:g} of {data.name} holds no sample of one side ({int(partition.conflicting.sum())} of {len(data)} "
            "are called conflicting): hold out more."
        )
    sides = replace(data.subset(held), aligned=~partition.conflicting[held], bias=None)
    return data.subset(_rows(~taken)), sides


def validate(model: nn.Module, held: Dataset, device: str = "auto") -> Validation:
    """Score a model on what :func:`hold_out` split off."""
    scores = evaluate(model, held, device=device)
    assert scores.aligned is not None
    assert scores.unbiased is not None
    return Validation((scores.aligned + scores.unbiased) / 2, scores.aligned, scores.unbiased, scores.count)


def _rows(mask: Tensor) -> Tensor:
    return mask.nonzero().flatten()

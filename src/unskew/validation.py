"""A held-out part of the training set to choose on, with the sides that stage 1 found in it."""

import torch
from torch import Tensor, nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.inference import predict_logits
from unskew.engine.random import generator
from unskew.errors import UnskewError
from unskew.selection import Validation, validation_of, with_sides

__all__ = ["Validation", "hold_out", "hold_out_rows", "validate"]


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
    rest, held = hold_out_rows(data, partition, share, seed)
    return data.subset(rest), with_sides(data.subset(held), partition.conflicting[held])


def hold_out_rows(data: Dataset, partition: Partition, share: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Which rows are left, and which are held out."""
    order = torch.randperm(len(data), generator=generator(seed, "hold out"))
    taken = torch.zeros(len(data), dtype=torch.bool)
    cell = 2 * data.labels + partition.conflicting
    for each in cell.unique():
        inside = order[cell[order] == each]
        taken[inside[: round(share * len(inside))]] = True
    rest, held = (mask.nonzero().flatten() for mask in (~taken, taken))
    if not bool(partition.conflicting[held].any()) or bool(partition.conflicting[held].all()):
        raise UnskewError(
            f"{share:g} of {data.name} holds no sample of one side ({int(partition.conflicting.sum())} of {len(data)} "
            "are called conflicting): hold out more."
        )
    return rest, held


def validate(model: nn.Module, held: Dataset, device: str = "auto", truth: Dataset | None = None) -> Validation:
    """Score a model on what :func:`hold_out` split off; ``truth`` is the same samples with their true bias."""
    return validation_of(predict_logits(model, held, device).argmax(1), held, truth)

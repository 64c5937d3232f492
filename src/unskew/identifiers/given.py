"""Partitions that need no training: the true one, a coin's, and that of other samples by a trained model."""

import torch
from torch import nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.inference import predict_logits
from unskew.engine.random import generator
from unskew.errors import UnskewError


def oracle(data: Dataset) -> Partition:
    """The true partition, where it is known."""
    if data.aligned is None:
        raise UnskewError(f"the oracle needs bias labels, and {data.name} has none: use --identify ph.")
    conflicting = ~data.aligned
    if not conflicting.any() or conflicting.all():
        which = "no" if not conflicting.any() else "only"
        raise UnskewError(f"{data.name} has {which} conflicting samples: there is nothing to tell apart.")
    return Partition.of(data, conflicting, conflicting.float(), "oracle")


def judged_sides(model: nn.Module, data: Dataset, how: str, device: str) -> Partition:
    """The sides of samples that stage 1 did not train on: what its model gets wrong is conflicting."""
    probabilities = predict_logits(model, data, device).softmax(1)
    score = 1 - probabilities.gather(1, data.labels[:, None])[:, 0]
    return Partition.of(data, probabilities.argmax(1) != data.labels, score, how)


def coin(data: Dataset, seed: int) -> Partition:
    """Half of the samples, at random."""
    order = torch.randperm(len(data), generator=generator(seed, "random partition"))
    conflicting = torch.zeros(len(data), dtype=torch.bool)
    conflicting[order[: len(data) // 2]] = True
    return Partition.of(data, conflicting, conflicting.float(), "random")

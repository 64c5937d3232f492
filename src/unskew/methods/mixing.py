"""What the mixing methods share: which samples are paired, how, and the loss of a mixed pair."""

from typing import Literal

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.method import losses
from unskew.engine.streams import Stream
from unskew.methods.sampling import sample_beta

Donors = Literal["aligned", "other"]
Pairing = Literal["aligned+conflicting", "aligned+aligned", "conflicting+conflicting", "all+all"]


def pools(partition: Partition) -> dict[str, Tensor]:
    """Indices of the samples that ``x1`` and ``x2`` may come from."""
    conflicting = partition.conflicting
    return {
        "aligned": (~conflicting).nonzero().flatten(),
        "conflicting": conflicting.nonzero().flatten(),
        "all": torch.arange(len(conflicting)),
    }


def pair_streams(partition: Partition, pairing: Pairing, replace: bool, noise: int) -> dict[str, Stream]:
    """Streams ``x1`` and ``x2``, each drawn from its subset: the paper's mixing ablation."""
    pool = pools(partition)
    first, second = pairing.split("+")
    return {"x1": Stream(pool[first], replace, noise=noise), "x2": Stream(pool[second], replace)}


def mix(lam: Tensor, x1: Tensor, x2: Tensor) -> Tensor:
    """x_mix = λ·x1 + (1 − λ)·x2, with one λ a pair."""
    lam = lam.view(-1, 1, 1, 1).to(x1.dtype)
    return lam * x1 + (1 - lam) * x2


def fixed_beta(a: float, b: float, uniforms: Tensor) -> Tensor:
    """λ ~ Beta(a, b) for each pair."""
    alpha = torch.full((len(uniforms),), a, device=uniforms.device)
    return sample_beta(alpha, torch.full_like(alpha, b), uniforms)


def donors(both: Tensor, side: Donors) -> Tensor:
    """Of x1 and x2 one after the other: for each of them one of another pair, whose look it is lent.

    Were it of the same pair, x1's look could go to x2 and be in the mix all the same, beside its label. The label of an
    aligned donor says which class its look stands for. From the other side, x1 is lent a conflicting one's, x2 an
    aligned one's.
    """
    one, two = both.chunk(2)
    return torch.cat([one.roll(1, 0), one.roll(2, 0)] if side == "aligned" else [two.roll(1, 0), one.roll(1, 0)])


def mixed_losses(logits: Tensor, y1: Tensor, y2: Tensor, lam: Tensor) -> Tensor:
    """Cross-entropy with the soft label λ·y1 + (1 − λ)·y2, which is linear in the label."""
    return lam * losses(logits, y1) + (1 - lam) * losses(logits, y2)

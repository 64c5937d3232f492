"""What the mixing methods share: which samples are paired, how, and the loss of a mixed pair."""

from typing import Literal

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.method import losses
from unskew.engine.streams import Stream

FAINT = 1e-6  # an amplitude below is rounding, and has no phase to speak of
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


def swap_looks(x1: Tensor, x2: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """x1 with the amplitude spectrum A1^(1−μ)·A2^μ and x2 with A2^(1−ν)·A1^ν, for one (μ, ν) a pair: N×2.

    The phases stay, and so the shapes: what follows a shortcut of brightness, colour or grain takes on the looks of
    the other, and is still of its class.
    """
    with torch.autocast(x1.device.type, enabled=False):
        one, two = (torch.fft.rfft2(x.float().contiguous()) for x in (x1, x2))
        ratio = two.abs().clamp(min=FAINT) / one.abs().clamp(min=FAINT)
        mu, nu = shares.float()[..., None, None, None].unbind(1)
        images = (torch.fft.irfft2(each, s=x1.shape[-2:]).clamp(0, 1) for each in (one * ratio**mu, two * ratio**-nu))
        first, second = (each.to(x1.dtype).contiguous(memory_format=torch.channels_last) for each in images)
    return first, second


def mixed_losses(logits: Tensor, y1: Tensor, y2: Tensor, lam: Tensor) -> Tensor:
    """Cross-entropy with the soft label λ·y1 + (1 − λ)·y2, which is linear in the label."""
    return lam * losses(logits, y1) + (1 - lam) * losses(logits, y2)

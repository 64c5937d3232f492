"""Mixup (Zhang et al., 2018, arXiv 1710.09412): mixing without knowing what is biased."""

from dataclasses import dataclass

import torch

from unskew.engine.method import Batch, Loss, Method
from unskew.engine.streams import Stream, Streams
from unskew.methods.mixing import mix, mixed_losses
from unskew.methods.sampling import NUMBERS, sample_beta
from unskew.options import option


class Mixup(Method):
    """Each batch is mixed with a permutation of itself, with one λ ~ Beta(a, a) a batch."""

    @dataclass(frozen=True)
    class Config:
        mix_alpha: float = option(1.0, "λ ~ Beta(a, a)", least=0.1)

    config: Config
    recordable = True
    source = "Zhang et al. 2018"

    def streams(self) -> Streams:
        everything = torch.arange(len(self.data))
        pair = {"x1": Stream(everything), "x2": Stream(shuffle_of="x1")}
        return Streams(pair, samples=len(self.data), noise=NUMBERS)

    def forward(self, batch: Batch) -> Loss:
        x1, x2 = batch["x1"], batch["x2"]
        a = torch.full((1,), self.config.mix_alpha, device=x1.x.device)
        lam = sample_beta(a, a, batch.noise[None])
        logits = self.model(mix(lam.expand(len(x1.y)), x1.x, x2.x))
        return mixed_losses(logits, x1.y, x2.y, lam).mean(), {}

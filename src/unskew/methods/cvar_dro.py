"""CVaR DRO (Levy et al., NeurIPS 2020, arXiv 2010.05893): only the largest losses of a batch count."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.engine.method import Batch, Loss, Method, losses
from unskew.options import option


class CVaRDRO(Method):
    """The mean of the worst α of each batch: of m losses the ⌊αm⌋ largest weigh 1/(αm), the next one the rest."""

    @dataclass(frozen=True)
    class Config:
        share: float = option(0.1, "α, the share of a batch that counts", above=0, most=1)

    config: Config
    source = "Levy et al. 2020"
    cost = "1"
    recordable = True
    coupled = True

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        each = losses(self.model(samples.x), samples.y)
        weights = worst_weights(len(each), self.config.share, each.device)
        return (each.sort(descending=True).values * weights).sum(), {}


def worst_weights(count: int, share: float, device: torch.device | None = None) -> Tensor:
    """Weights of ``count`` losses in descending order; they add up to 1."""
    return (share * count - torch.arange(count, device=device)).clamp(0, 1) / (share * count)

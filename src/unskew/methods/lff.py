"""Learning from failure (Nam et al., NeurIPS 2020, arXiv 2007.02561): what a biased network fails on weighs more."""

from dataclasses import dataclass
from typing import Any

import torch

from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, gce_losses, losses
from unskew.methods.smoothing import SmoothedLosses
from unskew.options import option


class LfF(Method):
    """A biased network learns by generalised cross-entropy; the debiased one by CE weighted w = b / (b + d), where b
    and d are the two networks' losses, smoothed for each sample and divided by the largest of its class.

    Departures: both networks learn in one backward pass (they share no weight); the release multiplies the
    generalised loss by q once more, its paper does not, and neither do we; with several processes the maximum is
    over what a process has seen until the epoch ends.
    """

    @dataclass(frozen=True)
    class Config:
        q: float = option(
            0.7, "q of the generalised cross-entropy: how much easy samples are favoured", above=0, most=1
        )
        decay: float = option(0.7, "weight of the past in the smoothed losses", least=0, below=1)

    config: Config
    source = "Nam et al. 2020"
    cost = "2"
    recordable = True
    coupled = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.biased = self.make_model()
        smoothed = (SmoothedLosses(self.data.labels, self.data.num_classes, self.config.decay) for _ in range(2))
        self.smoothed_biased, self.smoothed_debiased = smoothed

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        logits = self.biased(samples.x)
        each = losses(self.model(samples.x), samples.y)
        with torch.no_grad():
            b, b_max = self.smoothed_biased.update(samples.index, losses(logits, samples.y))
            d, d_max = self.smoothed_debiased.update(samples.index, each)
            b, d = b / b_max.clamp(min=1e-8), d / d_max.clamp(min=1e-8)
            weight = b / (b + d + 1e-8)
        biased = gce_losses(logits, samples.y, self.config.q).mean()
        return biased + (weight * each).mean(), {"weight": weight.mean()}

    def epoch_end(self, engine: Engine) -> None:
        self.smoothed_biased.share(engine)
        self.smoothed_debiased.share(engine)

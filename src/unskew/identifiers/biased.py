"""Stage 1 by a network that is biased on purpose, by a loss that favours what is easy."""

from dataclasses import dataclass
from typing import ClassVar

from unskew.engine.method import Batch, Loss, gce_losses
from unskew.identifiers.judged import Judged, Suspects
from unskew.options import option


class Biased(Judged):
    """Conflicting is what the network has wrong in the end (Zhang and Sabuncu 2018 for the loss; BiaSwap's stage 1)."""

    @dataclass(frozen=True)
    class Config(Suspects):
        q: float = option(0.7, "q of the generalised cross-entropy", above=0, most=1)

    config: Config
    how = "gce"
    defaults: ClassVar = {"epochs": 10}
    recordable = True

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        return gce_losses(self.model(samples.x), samples.y, self.config.q).mean(), {}

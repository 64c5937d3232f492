"""Stage 1 by a network that is biased on purpose, by a loss that favours what is easy."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unskew.data.partition import Partition, at_least
from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, gce_losses
from unskew.identifiers.history import log_truth
from unskew.options import option


class Biased(Method):
    """Conflicting is what the network has wrong in the end (Zhang and Sabuncu 2018 for the loss; BiaSwap's stage 1)."""

    @dataclass(frozen=True)
    class Config:
        q: float = option(0.7, "q of the generalised cross-entropy", above=0, most=1)
        fewest: int = option(
            2, "fewer conflicting samples a class, on average, and the next suspects are taken", least=1
        )

    config: Config
    defaults: ClassVar = {"epochs": 10}
    recordable = True
    found: Tensor | None = None

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        return gce_losses(self.model(samples.x), samples.y, self.config.q).mean(), {}

    def epoch_end(self, engine: Engine) -> None:
        judged = engine.judge(self.model)
        self.found = torch.stack([judged.predictions.float(), judged.losses], 1).cpu()
        wrong = self.found[:, 0].long() != self.data.labels
        engine.log(train_accuracy=1 - wrong.float().mean().item(), conflicting=int(wrong.sum()))
        log_truth(engine, wrong, wrong, self.found[:, 1])

    def result(self) -> Partition:
        assert self.found is not None
        predictions, score = self.found[:, 0].to(torch.int16), 1 - torch.exp(-self.found[:, 1])
        wrong = predictions != self.data.labels
        conflicting, note = at_least(wrong, score, minimum=self.config.fewest * self.data.num_classes)
        notes = (note,) if note else ()
        return Partition.of(self.data, conflicting, score, "gce", predictions=predictions[:, None], notes=notes)

    def get_extra_state(self) -> dict[str, Any]:
        return {"found": self.found}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.found = state["found"]

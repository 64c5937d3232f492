"""JTT's stage 1 (Liu et al., ICML 2021): what plain training gets wrong in its last epoch."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.identifiers.judged import Suspects, errors_partition, log_errors


class ErrorSet(Method):
    """Plain training for T = ``epochs`` epochs; conflicting is what was wrong when the last one came to it.

    As in the release, the answer is the one given in training, just before the step that learns it: no pass over the
    data is needed. A sample that an incomplete last batch left out keeps its answer of the epoch before.
    """

    Config = Suspects
    config: Suspects
    defaults: ClassVar = {"epochs": 5}
    recordable = True
    found: Tensor
    now: Tensor

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        unseen = torch.tensor([-1.0, 0.0, -1.0]).repeat(len(self.data), 1)
        self.register_buffer("found", unseen)  # predicted class, loss and epoch; −1 where there was none
        self.register_buffer("now", torch.zeros(1))

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        logits = self.model(samples.x)
        each = losses(logits, samples.y)
        with torch.no_grad():
            answers = (logits.argmax(1).float(), each.float(), self.now.expand(len(each)))
            self.found[samples.index] = torch.stack(answers, 1)
        return each.mean(), {}

    def epoch_end(self, engine: Engine) -> None:
        every = engine.gather(self.found[None])  # each process knows the samples that were its own
        latest = every[:, :, 2].argmax(0)
        self.found.copy_(every[latest, torch.arange(len(latest), device=latest.device)])
        self.now += 1
        log_errors(engine, self.found[:, :2].cpu())

    def result(self) -> Partition:
        return errors_partition(self.data, self.found[:, :2].cpu(), self.config.fewest, "jtt")

"""JTT's stage 1 (Liu et al., ICML 2021): what plain training gets wrong in its last epoch."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unskew.data.partition import Partition, at_least
from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.identifiers.history import log_truth
from unskew.options import option


class ErrorSet(Method):
    """Plain training for T = ``epochs`` epochs; conflicting is what was wrong when the last one came to it.

    As in the release, the answer is the one given in training, just before the step that learns it: no pass over the
    data is needed. A sample that an incomplete last batch left out keeps its answer of the epoch before.
    """

    @dataclass(frozen=True)
    class Config:
        fewest: int = option(
            2, "fewer conflicting samples a class, on average, and the next suspects are taken", least=1
        )

    config: Config
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
        wrong, each = self._wrong(), self.found[:, 1].cpu()
        engine.log(train_accuracy=1 - wrong.float().mean().item(), conflicting=int(wrong.sum()))
        log_truth(engine, wrong, wrong, each)

    def _wrong(self) -> Tensor:
        predicted = self.found[:, 0].cpu().long()
        return (predicted != self.data.labels) & (predicted >= 0)

    def result(self) -> Partition:
        wrong, each = self._wrong(), self.found[:, 1].cpu()
        score = 1 - torch.exp(-each)  # 1 − p(label)
        conflicting, note = at_least(wrong, score, minimum=self.config.fewest * self.data.num_classes)
        predictions = self.found[:, :1].cpu().to(torch.int16)
        notes = (note,) if note else ()
        return Partition.of(self.data, conflicting, score, "jtt", predictions=predictions, notes=notes)

"""Single prediction (SP): train until the shortcut is learnt, and look once at what is still wrong."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unskew.data.partition import FEWEST, Partition, at_least
from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.engine.streams import Stream, Streams
from unskew.identifiers.history import log_truth
from unskew.options import option


class SP(Method):
    """Plain training until the training accuracy reaches γ: right is aligned, wrong is conflicting.

    The whole set is looked at ``checks`` times an epoch (epochs here are those fractions), and training ends at
    the first look at or above γ; the real share is what the partition has, not γ.
    """

    @dataclass(frozen=True)
    class Config:
        gamma: float = option(0.85, "γ: training accuracy at which to look", above=0, most=1)
        checks: int = option(4, "looks an epoch", least=1)
        fewest: int = option(
            FEWEST, "fewer conflicting samples a class, on average, and the next suspects are taken", least=1
        )

    config: Config
    defaults: ClassVar = {"epochs": 30}
    recordable = True
    found: Tensor | None = None

    def streams(self) -> Streams:
        everything = Stream(torch.arange(len(self.data)))
        return Streams({"all": everything}, samples=len(self.data), parts=self.config.checks)

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        return losses(self.model(samples.x), samples.y).mean(), {}

    def epoch_end(self, engine: Engine) -> None:
        judged = engine.judge(self.model)
        self.found = torch.stack([judged.predictions.float(), judged.losses], 1).cpu()
        wrong = self.found[:, 0].long() != self.data.labels
        accuracy = 1 - wrong.float().mean().item()
        engine.log(train_accuracy=accuracy, conflicting=int(wrong.sum()))
        log_truth(engine, wrong, wrong, self.found[:, 1])
        if accuracy >= self.config.gamma:
            engine.stop()

    def result(self) -> Partition:
        assert self.found is not None
        predictions, each = self.found[:, 0].to(torch.int16), self.found[:, 1]
        wrong = predictions != self.data.labels
        score = 1 - torch.exp(-each)  # 1 − p(label)
        conflicting, note = at_least(wrong, score, minimum=self.config.fewest * self.data.num_classes)
        notes = [note] if note else []
        accuracy = 1 - wrong.float().mean().item()
        if accuracy < self.config.gamma:
            notes.append(f"training accuracy ended at {accuracy:.3f}, below γ = {self.config.gamma:g}")
        return Partition.of(self.data, conflicting, score, "sp", predictions=predictions[:, None], notes=tuple(notes))

    def get_extra_state(self) -> dict[str, Any]:
        return {"found": self.found}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.found = state["found"]

"""Single prediction (SP): train until the shortcut is learnt, and look once at what is still wrong."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, losses
from unskew.engine.streams import Stream, Streams
from unskew.identifiers.judged import Judged, Suspects, errors_partition, wrong_in
from unskew.options import option


class SP(Judged):
    """Plain training until the training accuracy reaches γ: right is aligned, wrong is conflicting.

    The whole set is looked at ``checks`` times an epoch (epochs here are those fractions), and training ends at
    the first look at or above γ; the real share is what the partition has, not γ.
    """

    @dataclass(frozen=True)
    class Config(Suspects):
        gamma: float = option(0.85, "γ: training accuracy at which to look", above=0, most=1)
        checks: int = option(4, "looks an epoch", least=1)

    config: Config
    how = "sp"
    defaults: ClassVar = {"epochs": 30}
    recordable = True

    def streams(self) -> Streams:
        everything = Stream(torch.arange(len(self.data)))
        return Streams({"all": everything}, samples=len(self.data), parts=self.config.checks)

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        return losses(self.model(samples.x), samples.y).mean(), {}

    @property
    def accuracy(self) -> float:
        assert self.found is not None
        return 1 - wrong_in(self.found, self.data.labels).float().mean().item()

    def epoch_end(self, engine: Engine) -> None:
        super().epoch_end(engine)
        if self.accuracy >= self.config.gamma:
            engine.stop()

    def result(self) -> Partition:
        assert self.found is not None
        short = self.accuracy < self.config.gamma
        notes = [f"training accuracy ended at {self.accuracy:.3f}, below γ = {self.config.gamma:g}"] if short else []
        return errors_partition(self.data, self.found, self.config.fewest, self.how, notes)

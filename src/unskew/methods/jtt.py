"""Just train twice (Liu et al., ICML 2021, arXiv 2107.09044): what plain training gets wrong is seen more often."""

from dataclasses import dataclass

import torch

from unskew.data.partition import Partition
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.engine.streams import Stream, Streams
from unskew.options import option


class JTT(Method):
    """Plain training on all samples and ``up`` more copies of the conflicting ones: upsampled, not weighted.

    An epoch is a pass over all of that. Its own stage 1 is ``jtt``, the errors of plain training; any other will do.
    """

    @dataclass(frozen=True)
    class Config:
        up: int = option(20, "λ_up: copies of each conflicting sample that are added", least=0)

    config: Config
    partition: Partition
    needs = frozenset({"partition"})
    stage1 = "jtt"
    source = "Liu et al. 2021"
    cost = "1 + up × conflicting share"
    recordable = True

    def streams(self) -> Streams:
        conflicting = self.partition.conflicting.nonzero().flatten()
        pool = torch.cat([torch.arange(len(self.data)), conflicting.repeat(self.config.up)])
        return Streams({"all": Stream(pool)}, samples=len(pool))

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        return losses(self.model(samples.x), samples.y).mean(), {}

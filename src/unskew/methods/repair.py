"""REPAIR (Li and Vasconcelos, CVPR 2019, arXiv 1904.07911): train on what is left when biased samples are left out."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.engine.random import generator
from unskew.engine.streams import Stream, Streams
from unskew.errors import UnskewError
from unskew.options import option


class Repair(Method):
    """Plain training on samples drawn by their weight w, the partition's score, or on those whose w is large.

    Its own stage 1 is ``repair``, which learns w from bias labels; the score of any other will do.
    """

    @dataclass(frozen=True)
    class Config:
        keep: Literal["draw", "threshold", "rank", "class-rank", "sample"] = option(
            "draw",
            "draw: all, in proportion to w; threshold: w above .5; rank: the upper half; class-rank: of each class; "
            "sample: each with probability w, once for all",
        )
        coin: int = option(0, "seed of `sample`")

    config: Config
    partition: Partition
    needs = frozenset({"partition"})
    stage1 = "repair"
    source = "Li and Vasconcelos 2019"
    cost = "1, or the share kept"
    recordable = True

    def streams(self) -> Streams:
        if self.config.keep == "draw" and bool((self.partition.score > 0).any()):
            everything = Stream(torch.arange(len(self.data)), replace=True, weights=self.partition.score)
            return Streams({"all": everything}, samples=len(self.data))
        kept = self._kept().nonzero().flatten()
        if len(kept) == 0:
            raise UnskewError(f"the partition ({self.partition.how}) gives no sample the weight to be kept.")
        return Streams({"all": Stream(kept)}, samples=len(kept))

    def _kept(self) -> Tensor:
        w = self.partition.score
        if self.config.keep in ("draw", "threshold"):
            return w > 0.5
        if self.config.keep == "sample":
            return torch.rand(len(w), generator=generator(self.config.coin, "repair")) < w
        parts = [torch.arange(len(w))]
        if self.config.keep == "class-rank":
            parts = [(self.data.labels == k).nonzero().flatten() for k in range(self.data.num_classes)]
        kept = torch.zeros(len(w), dtype=torch.bool)
        for part in parts:
            kept[part[w[part].argsort(descending=True, stable=True)[: round(len(part) / 2)]]] = True
        return kept

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        return losses(self.model(samples.x), samples.y).mean(), {}

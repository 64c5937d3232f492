"""Group DRO (Sagawa et al., ICLR 2020, arXiv 1911.08731): the groups that are worst off weigh most."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.engine.streams import Stream, Streams
from unskew.options import option


class GroupDRO(Method):
    """Loss = Σ q_g · L_g over the (label, bias) groups, with q_g ← q_g·exp(η·(L_g + C/√n_g)), normalised each step.

    Samples are drawn with replacement, every group equally often. Departure: with several processes each has its own
    q during an epoch, and their mean after it.
    """

    @dataclass(frozen=True)
    class Config:
        step: float = option(0.01, "η, step of the group weights", above=0)
        adjustment: float = option(
            0.0, "C: C/√(size of the group) is added to its loss when groups are weighed", least=0
        )

    config: Config
    needs = frozenset({"bias"})
    source = "Sagawa et al. 2020"
    cost = "1"
    recordable = True
    coupled = True
    group: Tensor
    q: Tensor
    size: Tensor

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        assert self.data.bias is not None
        pairs = torch.stack([self.data.labels, self.data.bias], 1)
        _, group, size = pairs.unique(dim=0, return_inverse=True, return_counts=True)
        self.register_buffer("group", group, persistent=False)
        self.register_buffer("size", size.float(), persistent=False)
        self.register_buffer("q", torch.full((len(size),), 1 / len(size)))

    def streams(self) -> Streams:
        everything = Stream(torch.arange(len(self.data)), replace=True, weights=1 / self.size.cpu()[self.group.cpu()])
        return Streams({"all": everything}, samples=len(self.data))

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        each = losses(self.model(samples.x), samples.y)
        every = torch.arange(len(self.q), device=each.device)
        inside = (self.group[samples.index][:, None] == every).to(each.dtype)
        group_losses = (each[:, None] * inside).sum(0) / inside.sum(0).clamp(min=1)
        with torch.no_grad():
            adjusted = group_losses + self.config.adjustment / self.size.sqrt()
            raised = self.q * torch.exp(self.config.step * adjusted)
            self.q.copy_(raised / raised.sum())
        return (group_losses * self.q.clone()).sum(), {"largest_q": self.q.max()}

    def epoch_end(self, engine: Engine) -> None:
        self.q.copy_(engine.gather(self.q[None]).mean(0))

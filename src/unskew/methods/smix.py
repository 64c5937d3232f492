"""s-mix: mixing aligned with conflicting samples at a fixed Beta (Morerio et al., arXiv 2408.04955)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.looks import with_looks
from unskew.engine.method import Batch, Loss, Method, Samples, losses
from unskew.engine.streams import Stream, Streams
from unskew.methods.mixing import (
    Donors,
    Pairing,
    donors,
    fixed_beta,
    mix,
    mixed_losses,
    pair_streams,
    pools,
)
from unskew.methods.sampling import NUMBERS
from unskew.options import option


class SMix(Method):
    """Loss = (1 − γ)·L(aligned) + γ·L(conflicting) + ζ·L(mix), with λ ~ Beta(α, β) weighing the aligned sample.

    Departures and readings: the weighted part and the mix see the same images of a step; the three batches go
    through the network in one pass, so BatchNorm sees them together. ``looks`` is not in the paper.
    """

    @dataclass(frozen=True)
    class Config:
        beta_a: float = option(1.0, "α of λ ~ Beta(α, β); λ weighs the aligned sample", least=0.1)
        beta_b: float = option(1.0, "β", least=0.1)
        zeta: float = option(10.0, "ζ, weight of the mix; 0 is weighted ERM", least=0)
        gamma: float | None = option(
            None, "γ, weight of the conflicting part; by default the aligned share", least=0, most=1
        )
        weighted_erm: bool = option(True, "keep the two weighted terms; without them only the mix is learnt")
        pairing: Pairing | Literal["single"] = option(
            "aligned+conflicting", "which subsets are mixed; single: none, ζ·CE of any sample"
        )
        looks: float = option(
            0.0, "before they are mixed, each takes U(0, this) of the look of another sample", least=0, most=1
        )
        donors: Donors = option("aligned", "whose looks are lent: aligned samples' of other pairs, or the other side's")
        with_replacement: bool = option(True, "draw x1 and x2 with replacement; else in turn, where they suffice")

    config: Config
    partition: Partition
    needs = frozenset({"partition"})
    recordable = True
    changed = True
    source = "Morerio et al. 2024"
    cost = "3, or 1 if only the mix is learnt"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.gamma = 1 - self.partition.conflicting_share if self.config.gamma is None else self.config.gamma

    def streams(self) -> Streams:
        streams: dict[str, Stream] = {}
        if self.config.zeta and self.config.pairing == "single":
            streams["x1"] = Stream(torch.arange(len(self.data)))
        elif self.config.zeta and self.config.pairing != "single":
            numbers = NUMBERS + (2 if self.config.looks else 0)
            streams |= pair_streams(self.partition, self.config.pairing, self.config.with_replacement, numbers)
        if self.config.weighted_erm and not self._pair_is_weighted:
            pool = pools(self.partition)
            streams |= {name: Stream(pool[name], self.config.with_replacement) for name in ("aligned", "conflicting")}
        return Streams(streams, samples=len(self.data))

    @property
    def _pair_is_weighted(self) -> bool:
        """Whether x1 and x2 already are an aligned and a conflicting batch."""
        return self.config.zeta > 0 and self.config.pairing == "aligned+conflicting"

    def forward(self, batch: Batch) -> Loss:
        parts: list[Tensor] = []
        weighted: list[tuple[float, Samples]] = []
        lam = None
        if self.config.weighted_erm:
            one, two = ("x1", "x2") if self._pair_is_weighted else ("aligned", "conflicting")
            weighted = [(1 - self.gamma, batch[one]), (self.gamma, batch[two])]
            parts += [samples.x for _, samples in weighted]
        if self.config.zeta:
            mixed, lam = self._mix(batch)
            parts.append(mixed)
        logits = self.model(torch.cat(parts)).chunk(len(parts))
        loss = torch.zeros((), device=logits[0].device)
        for (weight, samples), out in zip(weighted, logits):
            loss = loss + weight * losses(out, samples.y).mean()
        if lam is not None:
            second = batch["x2"] if "x2" in batch else batch["x1"]
            loss = loss + self.config.zeta * mixed_losses(logits[-1], batch["x1"].y, second.y, lam).mean()
        return loss, {}

    def _mix(self, batch: Batch) -> tuple[Tensor, Tensor]:
        x1 = batch["x1"]
        if "x2" not in batch:
            return x1.x, torch.ones(len(x1.y), device=x1.x.device)
        lam = fixed_beta(self.config.beta_a, self.config.beta_b, x1.noise[:, :NUMBERS])
        both = torch.cat([x1.x, batch["x2"].x])
        if self.config.looks:
            both = with_looks(
                both, donors(both, self.config.donors), self.config.looks * torch.cat([*x1.noise[:, NUMBERS:].T])
            )
        return mix(lam, *both.chunk(2)), lam

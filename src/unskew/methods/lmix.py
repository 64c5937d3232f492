"""l-mix: mixing that is learned against the classifier (Morerio, Ragonesi, Murino; arXiv 2408.04955)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.method import Batch, Loss, Method
from unskew.engine.streams import Streams
from unskew.methods.learnable import LearnableMix
from unskew.methods.mixing import Pairing, mix, mixed_losses, pair_streams
from unskew.methods.sampling import NUMBERS
from unskew.models.network import Network
from unskew.options import option


class LMix(Method):
    """Loss = CE(g(f(x_mix)), y_mix) + ω·Reg; f and g descend it, h descends Reg and ascends the CE.

    Departures and readings: Reg is minimised by h (``reverse_reg`` for the other sign); the features that h sees
    come from one pass over both samples together, without gradient, in BatchNorm's train mode (``feature_bn``).
    """

    @dataclass(frozen=True)
    class Config:
        omega: float = option(1e-3, "ω, weight of Reg", least=0)
        target: float | None = option(
            None, "mean of λ that Reg asks for; by default the conflicting share", least=0, most=1
        )
        reverse_reg: bool = option(False, "let h ascend Reg too, as the paper's equation says literally")
        feature_bn: Literal["train", "eval"] = option("train", "BatchNorm in the pass that makes h's features")
        mixer_lr: float | None = option(None, "learning rate of h; by default the others'", above=0)
        floor: float = option(0.1, "added to h's softplus: the least α and β", least=0.1)
        pairing: Pairing = option("aligned+conflicting", "which subsets are mixed")
        with_replacement: bool = option(True, "draw x1 and x2 with replacement; else in turn, where they suffice")

    config: Config
    partition: Partition
    model: Network
    needs = frozenset({"partition"})
    recordable = True
    source = "Morerio et al. 2024"
    cost = "1.7"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        target = self.partition.conflicting_share if self.config.target is None else self.config.target
        self.mixer = LearnableMix(self.model.feature_width, target, self.config.reverse_reg, self.config.floor)

    def streams(self) -> Streams:
        return Streams(
            pair_streams(self.partition, self.config.pairing, self.config.with_replacement, NUMBERS),
            samples=len(self.data),
        )

    def param_groups(self) -> list[dict[str, Any]]:
        h: dict[str, Any] = {"params": list(self.mixer.parameters()), "weight_decay": 0.0}
        if self.config.mixer_lr is not None:
            h["lr"] = self.config.mixer_lr
        return [{"params": list(self.model.parameters())}, h]

    def forward(self, batch: Batch) -> Loss:
        x1, x2 = batch["x1"], batch["x2"]
        features1, features2 = self._features(torch.cat([x1.x, x2.x])).chunk(2)
        lam, reg, alpha, beta = self.mixer.sample(features1, features2, x1.noise)
        logits = self.model(mix(lam, x1.x, x2.x))
        loss = mixed_losses(logits, x1.y, x2.y, lam).mean() + self.config.omega * reg
        return loss, {"alpha": alpha.mean(), "beta": beta.mean(), "lambda": lam.mean()}

    @torch.no_grad()
    def _features(self, images: Tensor) -> Tensor:
        self.model.train(self.config.feature_bn == "train")
        features = self.model.features(images)
        self.model.train()
        # Before torch 2.11 autocast would hand these casts, which know no gradient, to the next pass.
        torch.clear_autocast_cache()
        return features

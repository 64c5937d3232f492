"""l-mix: mixing that is learned against the classifier (Morerio, Ragonesi, Murino; arXiv 2408.04955)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.looks import with_looks
from unskew.engine.method import Batch, Loss, Method, Samples
from unskew.engine.streams import Streams
from unskew.methods.learnable import LearnableMix, spread_lost
from unskew.methods.mixing import Pairing, fixed_beta, mix, mixed_losses, others, pair_streams
from unskew.methods.sampling import NUMBERS
from unskew.models.network import Network
from unskew.options import option


class LMix(Method):
    """Aligned samples are mixed with conflicting ones, in a way that a network h learns against the classifier.

    Loss = CE(g(f(x_mix)), y_mix) + a term for h; f and g descend the CE, h ascends it. What h decides is ``learns``. As
    the paper has it, the weight λ of the aligned sample: the term is ω·Reg. By default the look: each sample first
    takes a share μ ~ Beta(h(f(x) ‖ f(donor))) of the amplitude spectrum of one from the other side, λ is drawn from
    Beta(α, β), and the term is τ·KL(Beta ‖ uniform), which keeps the spread. The label hangs on λ and not on μ, so h
    can only make images hard, and not labels (docs/mixing.md).

    Departures and readings: Reg is minimised by h (``reverse_reg`` for the other sign); the features that h sees
    come from one pass over both samples together, without gradient, in BatchNorm's train mode (``feature_bn``).
    """

    @dataclass(frozen=True)
    class Config:
        learns: Literal["look", "weight"] = option("look", "what h decides: weight is λ, as the paper has it")
        tau: float = option(0.1, "τ, weight of KL(Beta ‖ uniform), for looks", least=0)
        beta_a: float = option(1.0, "α of λ ~ Beta(α, β), for looks; λ weighs the aligned sample", least=0.1)
        beta_b: float = option(1.0, "β", least=0.1)
        omega: float = option(1e-3, "ω, weight of Reg, for weights", least=0)
        target: float | None = option(
            None, "mean of λ that Reg asks for; by default the conflicting share", least=0, most=1
        )
        reverse_reg: bool = option(False, "let h ascend Reg too, as the paper's equation says literally")
        feature_bn: Literal["train", "eval"] = option("train", "BatchNorm in the pass that makes h's features")
        mixer_lr: float | None = option(None, "learning rate of h; by default the others'", above=0)
        floor: float = option(0.1, "added to h's softplus: the least it gives for a Beta", least=0.1)
        pairing: Pairing = option("aligned+conflicting", "which subsets are mixed")
        with_replacement: bool = option(True, "draw x1 and x2 with replacement; else in turn, where they suffice")

    config: Config
    partition: Partition
    model: Network
    needs = frozenset({"partition"})
    recordable = True
    coupled = True  # a look is lent from pair to pair
    source = "Morerio et al. 2024"
    cost = "1.7"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        target = self.partition.conflicting_share if self.config.target is None else self.config.target
        self.mixer = LearnableMix(self.model.feature_width, target, self.config.reverse_reg, self.config.floor)

    def streams(self) -> Streams:
        numbers = NUMBERS * (3 if self.config.learns == "look" else 1)
        return Streams(
            pair_streams(self.partition, self.config.pairing, self.config.with_replacement, numbers),
            samples=len(self.data),
        )

    def param_groups(self) -> list[dict[str, Any]]:
        h: dict[str, Any] = {"params": list(self.mixer.parameters()), "weight_decay": 0.0}
        if self.config.mixer_lr is not None:
            h["lr"] = self.config.mixer_lr
        return [{"params": list(self.model.parameters())}, h]

    def forward(self, batch: Batch) -> Loss:
        x1, x2 = batch["x1"], batch["x2"]
        mixed = self._looks if self.config.learns == "look" else self._weights
        images, lam, term, told = mixed(x1, x2)
        loss = mixed_losses(self.model(images), x1.y, x2.y, lam).mean() + term
        return loss, {name: value.mean() for name, value in told.items()}

    def _weights(self, x1: Samples, x2: Samples) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """λ from h."""
        features1, features2 = self._features(torch.cat([x1.x, x2.x])).chunk(2)
        lam, reg, alpha, beta = self.mixer.sample(features1, features2, x1.noise)
        return mix(lam, x1.x, x2.x), lam, self.config.omega * reg, {"alpha": alpha, "beta": beta, "lambda": lam}

    def _looks(self, x1: Samples, x2: Samples) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """λ from Beta(α, β), and each sample's share of another's look from h."""
        both = torch.cat([x1.x, x2.x])
        features = self._features(both)
        for_lam, *for_shares = x1.noise.split(NUMBERS, 1)
        shares, _, alpha, beta = self.mixer.sample(features, others(features), torch.cat(for_shares))
        lam = fixed_beta(self.config.beta_a, self.config.beta_b, for_lam)
        images = mix(lam, *with_looks(both, others(both), shares).chunk(2))
        told = {"alpha": alpha, "beta": beta, "share": shares}
        return images, lam, self.config.tau * spread_lost(alpha, beta).mean(), told

    @torch.no_grad()
    def _features(self, images: Tensor) -> Tensor:
        self.model.train(self.config.feature_bn == "train")
        features = self.model.features(images)
        self.model.train()
        # Before torch 2.11 autocast would hand these casts, which know no gradient, to the next pass.
        torch.clear_autocast_cache()
        return features

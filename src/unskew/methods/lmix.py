"""l-mix: mixing that is learned against the classifier (Morerio, Ragonesi, Murino; arXiv 2408.04955)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.looks import with_looks
from unskew.engine.method import Batch, Loss, Method, Samples
from unskew.engine.streams import Streams
from unskew.errors import UnskewError
from unskew.methods.learnable import LearnableMix, spread_lost
from unskew.methods.mixing import Donors, Pairing, donors, fixed_beta, mix, mixed_losses, pair_streams
from unskew.methods.sampling import NUMBERS
from unskew.models.network import Network
from unskew.options import option


class LMix(Method):
    """Aligned samples are mixed with conflicting ones, in a way that a network h learns against the classifier.

    f and g descend CE(g(f(x_mix)), y_mix). What h decides is ``learns``. As the paper has it, the weight λ of the
    aligned sample: h ascends the CE, and descends ω·Reg. By default the look: each sample first takes a share
    μ ~ Beta(h(f(x) ‖ f(donor))) of the amplitude spectrum of another, and λ is drawn from Beta(α, β). The label hangs
    on λ and not on μ, so h can only change what is seen, and not what is asked. It descends τ·KL(Beta ‖ uniform),
    which keeps the spread, and ascends what it ``seeks``: the belief in the look, which is the probability of the
    classes that the looks of the mix stand for; or the classifier's error, the CE (docs/mixing.md).

    Departures and readings: Reg is minimised by h (``reverse_reg`` for the other sign); the features that h sees
    come from one pass over both samples together, without gradient, in BatchNorm's train mode (``feature_bn``).
    """

    @dataclass(frozen=True)
    class Config:
        learns: Literal["look", "weight"] = option("look", "what h decides: weight is λ, as the paper has it")
        seeks: Literal["belief", "error"] = option("belief", "what h ascends, for looks")
        donors: Donors = option("aligned", "whose looks are lent: aligned samples' of other pairs, or the other side's")
        tau: float | None = option(
            None, "τ, weight of KL(Beta ‖ uniform), for looks; by default .03, or .1 where h seeks error", least=0
        )
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
    changed = True
    coupled = True  # a look is lent from pair to pair
    source = "Morerio et al. 2024"
    cost = "2, or 1.7 where h seeks error or learns λ"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        target = self.partition.conflicting_share if self.config.target is None else self.config.target
        self.mixer = LearnableMix(self.model.feature_width, target, self.config.reverse_reg, self.config.floor)
        self.seeks_belief = self.config.learns == "look" and self.config.seeks == "belief"
        if self.seeks_belief and self.config.donors != "aligned":
            raise UnskewError("lmix seeks belief in the looks of aligned donors: leave donors out, or seek error.")
        self.tau = (0.03 if self.seeks_belief else 0.1) if self.config.tau is None else self.config.tau

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
        images, lam, of_h, told = mixed(x1, x2)
        logits = self.model(images)
        loss = mixed_losses(logits, x1.y, x2.y, lam).mean()
        means = {name: value.mean() for name, value in told.items()}
        if not self.seeks_belief:
            return loss + of_h, means
        believed = self._belief(logits, x1.y, x2.y, lam)
        return loss, {**means, "believed": believed, "of_h": believed + of_h}

    def train_step(self, engine: Engine, batch: Batch) -> Loss:
        loss, told = engine.forward(batch)
        if self.seeks_belief:
            engine.backward(told.pop("of_h"), self.mixer.parameters(), again=True)
            engine.backward(loss, self.model.parameters())
        else:
            engine.backward(loss)
        engine.step()
        return loss, told

    def _belief(self, logits: Tensor, y1: Tensor, y2: Tensor, lam: Tensor) -> Tensor:
        """Probability of the class that each part's look stands for, where that is no right answer."""
        probability = logits.float().softmax(1)
        first, second = donors(torch.cat([y1, y2]), self.config.donors).chunk(2)
        parts = [
            weight * probability.gather(1, look[:, None])[:, 0] * ((look != y1) & (look != y2))
            for weight, look in ((lam, first), (1 - lam, second))
        ]
        return (parts[0] + parts[1]).mean()

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
        shares, _, alpha, beta = self.mixer.sample(
            features, donors(features, self.config.donors), torch.cat(for_shares)
        )
        lam = fixed_beta(self.config.beta_a, self.config.beta_b, for_lam)
        images = mix(lam, *with_looks(both, donors(both, self.config.donors), shares).chunk(2))
        told = {"alpha": alpha, "beta": beta, "share": shares}
        return images, lam, self.tau * spread_lost(alpha, beta).mean(), told

    @torch.no_grad()
    def _features(self, images: Tensor) -> Tensor:
        self.model.train(self.config.feature_bn == "train")
        features = self.model.features(images)
        self.model.train()
        # Before torch 2.11 autocast would hand these casts, which know no gradient, to the next pass.
        torch.clear_autocast_cache()
        return features

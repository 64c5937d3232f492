"""python examples/anchored_lmix.py: a variant of l-mix, on digits. docs/results.md says what it brought.

The adversary ascends KL(y_mix ‖ p), the cross-entropy without the label's own entropy, and is held near a wide prior:
it descends τ·KL(Beta(α, β) ‖ Beta(.5, 2)).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Beta, kl_divergence

import unskew
from unskew.methods.lmix import LMix
from unskew.methods.mixing import mix, mixed_losses
from unskew.options import option


class AnchoredLMix(LMix):
    """l-mix whose adversary is anchored to Beta(.5, 2)."""

    @dataclass(frozen=True)
    class Config(LMix.Config):
        tau: float = option(0.3, "τ, weight of the anchor", least=0)

    config: Config  # pyright: ignore[reportIncompatibleVariableOverride]
    recordable = True

    def forward(self, batch: unskew.Batch) -> tuple[Tensor, dict[str, Tensor]]:
        x1, x2 = batch["x1"], batch["x2"]
        features1, features2 = self._features(torch.cat([x1.x, x2.x])).chunk(2)
        lam, _, alpha, beta = self.mixer.sample(features1, features2, x1.noise)
        logits = self.model(mix(lam, x1.x, x2.x))
        sure = lam.clamp(1e-4, 1 - 1e-4)
        entropy = -(sure * sure.log() + (1 - sure) * (1 - sure).log()) * (x1.y != x2.y)
        prior = Beta(torch.full_like(alpha, 0.5), torch.full_like(beta, 2.0), validate_args=False)
        anchor = kl_divergence(Beta(alpha, beta, validate_args=False), prior).mean()
        loss = (mixed_losses(logits, x1.y, x2.y, lam) - entropy).mean() + self.config.tau * anchor
        return loss, {"alpha": alpha.mean(), "beta": beta.mean(), "lambda": lam.mean(), "lambda_sd": lam.std()}


if __name__ == "__main__":
    data, test = unskew.load("digits"), unskew.load("digits", split="test")
    partition = unskew.identify(data)
    for method in ("smix", "lmix", AnchoredLMix):
        result = unskew.train(data, partition, method, test=test, epochs=20).result
        print(result.method, result.scores)

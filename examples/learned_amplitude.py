"""python examples/learned_amplitude.py [SET]: l-mix that learns how far a pair swaps its looks.

Each takes a share μ of the other's amplitudes before they are mixed. The label does not hang on μ, so the adversary
cannot make labels hard instead of images, as it does with λ (docs/mixing.md). It ascends the cross-entropy through
μ ~ Beta(h(f(own) ‖ f(other))) and descends τ·KL(Beta ‖ uniform), which keeps the spread; λ is drawn from a fixed Beta.
"""

import sys
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Beta, kl_divergence

import unskew
from unskew.engine.streams import Streams
from unskew.methods.lmix import LMix
from unskew.methods.mixing import mix, mixed_losses, pair_streams, swap_looks
from unskew.methods.sampling import NUMBERS, sample_beta
from unskew.options import option


class LearnedAmplitude(LMix):
    """A pair mixed at a fixed Beta, each with a learned share of the other's amplitude spectrum."""

    @dataclass(frozen=True)
    class Config(LMix.Config):
        tau: float = option(0.1, "τ, weight of KL(Beta(α, β) ‖ uniform)", least=0)
        beta_a: float = option(1.0, "α of λ ~ Beta(α, β); λ weighs the aligned sample", least=0.1)
        beta_b: float = option(1.0, "β", least=0.1)

    config: Config  # pyright: ignore[reportIncompatibleVariableOverride]
    recordable = True

    def streams(self) -> Streams:
        config = self.config
        pairs = pair_streams(self.partition, config.pairing, config.with_replacement, 3 * NUMBERS)
        return Streams(pairs, samples=len(self.data))

    def forward(self, batch: unskew.Batch) -> tuple[Tensor, dict[str, Tensor]]:
        x1, x2 = batch["x1"], batch["x2"]
        noise = x1.noise
        features1, features2 = self._features(torch.cat([x1.x, x2.x])).chunk(2)
        own, other = torch.cat([features1, features2]), torch.cat([features2, features1])
        numbers = torch.cat([noise[:, :NUMBERS], noise[:, NUMBERS : 2 * NUMBERS]])
        share, _, alpha, beta = self.mixer.sample(own, other, numbers)
        first, second = swap_looks(x1.x, x2.x, torch.stack(share.chunk(2), 1))
        a, b = (
            torch.full((len(x1.y),), value, device=alpha.device) for value in (self.config.beta_a, self.config.beta_b)
        )
        lam = sample_beta(a, b, noise[:, 2 * NUMBERS :])
        logits = self.model(mix(lam, first, second))
        even = Beta(torch.ones_like(alpha), torch.ones_like(beta), validate_args=False)
        spread = kl_divergence(Beta(alpha, beta, validate_args=False), even).mean()
        loss = mixed_losses(logits, x1.y, x2.y, lam).mean() + self.config.tau * spread
        return loss, {"alpha": alpha.mean(), "beta": beta.mean(), "share": share.mean()}


if __name__ == "__main__":
    splits = unskew.load_splits(sys.argv[1] if len(sys.argv) > 1 else "digits")
    partition = unskew.identify(splits.train)
    for name, method, options in (
        ("even mix", "smix", {"weighted_erm": False, "zeta": 1.0}),
        ("amplitudes at random", "smix", {"weighted_erm": False, "zeta": 1.0, "amplitude": 1.0}),
        ("amplitudes learned", LearnedAmplitude, {}),
    ):
        print(name, unskew.train(splits.train, partition, method, test=splits.test, epochs=20, **options))

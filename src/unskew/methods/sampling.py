"""Beta samples as a function of uniform numbers, with the gradient of torch's own sampler.

torch draws Gamma variates from a generator, one after another: what pair i gets then depends on the pairs before
it, so on the batch's order and on the number of processes. Here every pair brings its own uniform numbers.
"""

import math

import torch
from torch import Tensor

PROPOSALS = 6  # each is accepted with probability > .95: none of six is a matter of 1e-8
NUMBERS = 2 * (2 * PROPOSALS + 1)  # uniform numbers that one Beta sample takes
TINY = 1e-30


@torch.library.custom_op("unskew::gamma_grad", mutates_args=())
def gamma_grad(concentration: Tensor, sample: Tensor) -> Tensor:
    """d sample / d concentration along the quantiles; torch's operator, which torch.compile does not know."""
    return torch._standard_gamma_grad(concentration, sample)  # pyright: ignore[reportPrivateImportUsage]


@gamma_grad.register_fake
def _(concentration: Tensor, sample: Tensor) -> Tensor:
    return torch.empty_like(sample)


class _Gamma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, concentration: Tensor, uniforms: Tensor) -> Tensor:
        """Marsaglia and Tsang (2000) for concentration + 1, then boosted down."""
        u = uniforms.clamp(1e-7, 1 - 1e-7)
        normal = torch.erfinv(2 * u[..., :PROPOSALS] - 1) * math.sqrt(2)
        accept = u[..., PROPOSALS : 2 * PROPOSALS].log()
        d = concentration[..., None] + (1 - 1 / 3)
        v = (1 + normal / (9 * d).sqrt()) ** 3
        positive = v > 0
        log_v = v.clamp(min=TINY).log()
        good = positive & (accept < 0.5 * normal**2 + d * (1 - v + log_v))
        first = good.int().argmax(-1, keepdim=True)
        boost = u[..., -1].log() / concentration
        sample = (d[..., 0] * v.gather(-1, first)[..., 0].clamp(min=TINY) * boost.exp()).clamp(min=TINY)
        ctx.save_for_backward(concentration, sample)
        return sample

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:
        concentration, sample = ctx.saved_tensors
        return grads[0] * gamma_grad(concentration, sample), None


def sample_gamma(concentration: Tensor, uniforms: Tensor) -> Tensor:
    """Gamma(concentration, 1), float32; ``uniforms`` has NUMBERS / 2 numbers in its last dimension."""
    sample = _Gamma.apply(concentration.float(), uniforms)
    assert isinstance(sample, Tensor)
    return sample


def sample_beta(alpha: Tensor, beta: Tensor, uniforms: Tensor) -> Tensor:
    """λ ~ Beta(α, β), differentiable in α and β, which must be at least .1: below, float32 cannot hold the samples.

    Parameters
    ----------
    alpha, beta : tensors of one shape
    uniforms : tensor
        Of that shape, with NUMBERS uniform numbers in one more dimension.
    """
    with torch.autocast(uniforms.device.type, enabled=False):
        a = sample_gamma(alpha, uniforms[..., : NUMBERS // 2])
        b = sample_gamma(beta, uniforms[..., NUMBERS // 2 :])
        return a / (a + b)

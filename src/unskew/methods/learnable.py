"""Learned mixing on its own: features of a pair in, a mixing weight out, trained against the classifier."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.methods.sampling import NUMBERS, sample_beta
from unskew.models.mixer import Mixer


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> Tensor:
        return -grads[0]


def reverse_gradient(x: Tensor) -> Tensor:
    """The identity whose gradient is reversed (Ganin and Lempitsky, 2015): what descends behind it ascends."""
    reversed_ = _Reverse.apply(x)
    assert isinstance(reversed_, Tensor)
    return reversed_


class LearnableMix(nn.Module):
    """λ ~ Beta(h(f(x1) ‖ f(x2))), whose parameters ascend the loss that λ is used in.

    Parameters
    ----------
    feature_width : int
        d, the width of the features of one sample.
    target : float
        What Reg = (α/(α+β) − target)² pulls the mean of λ to; the share of conflicting samples.
    reverse_reg : bool
        Reverse Reg's gradient as well. The paper's equation, read literally, does; its text wants the mean *near*
        the target, which needs Reg to descend.
    floor : float
        Least value of α and β.

    Examples
    --------
    >>> import torch
    >>> from unskew import LearnableMix
    >>> mixer = LearnableMix(feature_width=8, target=0.05)
    >>> lam, reg = mixer(torch.randn(4, 8), torch.randn(4, 8))
    >>> lam.shape, bool(((lam > 0) & (lam < 1)).all())
    (torch.Size([4]), True)
    """

    def __init__(self, feature_width: int, target: float, reverse_reg: bool = False, floor: float = 0.1) -> None:
        super().__init__()
        self.mixer = Mixer(feature_width, floor)
        self.target, self.reverse_reg = target, reverse_reg

    def forward(self, features1: Tensor, features2: Tensor, uniforms: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """λ of each pair, and Reg (a mean). Without ``uniforms`` (pairs × 26), torch's generator draws them."""
        lam, reg, _, _ = self.sample(features1, features2, uniforms)
        return lam, reg

    def sample(
        self, features1: Tensor, features2: Tensor, uniforms: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """λ, Reg, α and β."""
        alpha, beta = self.mixer(features1.detach(), features2.detach())
        if uniforms is None:
            uniforms = torch.rand(*alpha.shape, NUMBERS, device=alpha.device)
        lam = reverse_gradient(sample_beta(alpha, beta, uniforms))
        mean = alpha / (alpha + beta)
        reg = F.mse_loss(mean, torch.full_like(mean, self.target))
        return lam, reverse_gradient(reg) if self.reverse_reg else reg, alpha, beta


def spread_lost(alpha: Tensor, beta: Tensor) -> Tensor:
    """KL(Beta(α, β) ‖ uniform): 0 for the uniform, without bound as it narrows."""
    both = alpha + beta
    log_norm = torch.lgamma(both) - torch.lgamma(alpha) - torch.lgamma(beta)
    mean_of_both = torch.digamma(both)
    return (
        log_norm
        + (alpha - 1) * (torch.digamma(alpha) - mean_of_both)
        + (beta - 1) * (torch.digamma(beta) - mean_of_both)
    )

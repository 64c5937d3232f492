import pytest
import torch
from scipy import stats

from unskew.methods.sampling import NUMBERS, sample_beta, sample_gamma


def uniforms(n: int, numbers: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(n, numbers, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.1), (0.5, 2.0), (1.0, 1.0), (7.0, 3.0), (150.0, 180.0)])
def test_samples_follow_the_beta_distribution(a, b):
    n = 20_000
    lam = sample_beta(torch.full((n,), a), torch.full((n,), b), uniforms(n, NUMBERS))
    assert ((lam >= 0) & (lam <= 1)).all()
    inside = lam[(lam > 1e-6) & (lam < 1 - 1e-6)].double().numpy()
    frozen = stats.beta(a, b)
    low, high = frozen.cdf(1e-6), frozen.cdf(1 - 1e-6)
    assert len(inside) / n == pytest.approx(high - low, abs=0.02)
    test = stats.kstest(inside, lambda x: (frozen.cdf(x) - low) / (high - low))
    assert test.pvalue > 1e-3


@pytest.mark.parametrize("a", [0.1, 0.7, 2.0, 60.0])
def test_gradient_is_that_of_the_quantile(a):
    """d sample / d a at a fixed quantile, by differences of scipy's inverse distribution function."""
    concentration = torch.full((200,), a, requires_grad=True)
    sample = sample_gamma(concentration, uniforms(200, NUMBERS // 2))
    (gradient,) = torch.autograd.grad(sample.sum(), concentration)
    usable = (sample > 1e-3).numpy()
    x = sample.detach().double().numpy()[usable]
    quantile, step = stats.gamma(a).cdf(x), 1e-4 * a
    expected = (stats.gamma(a + step).ppf(quantile) - stats.gamma(a - step).ppf(quantile)) / (2 * step)
    error = abs(gradient.numpy()[usable] - expected) / (abs(expected) + 1e-2)
    assert error.max() < 0.02


def test_a_pair_depends_on_its_own_numbers_only():
    a, b, u = torch.rand(10) + 0.5, torch.rand(10) + 0.5, uniforms(10, NUMBERS)
    whole = sample_beta(a, b, u)
    order = torch.randperm(10)
    assert torch.equal(sample_beta(a[order], b[order], u[order]), whole[order])


def test_extreme_parameters_stay_finite():
    a = torch.tensor([0.1, 0.1, 1e4, 0.1], requires_grad=True)
    b = torch.tensor([0.1, 1e4, 0.1, 0.1], requires_grad=True)
    for seed in range(50):
        u = uniforms(4, NUMBERS, seed)
        u[3] = 0.0  # the very edge of what the generator gives
        lam = sample_beta(a, b, u)
        gradients = torch.autograd.grad(lam.sum(), [a, b])
        assert torch.isfinite(lam).all()
        assert all(torch.isfinite(g).all() for g in gradients)

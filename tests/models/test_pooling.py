"""The mean over space: torch's own, with a gradient in another layout."""

import pytest
import torch

from unskew.models.pooling import spatial_mean


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_it_is_the_mean_bit_for_bit_and_so_is_its_gradient(memory_format):
    torch.manual_seed(0)
    maps = torch.randn(6, 16, 5, 5).to(memory_format=memory_format)
    ours, plain = (maps.detach().requires_grad_() for _ in range(2))
    weights = torch.randn(6, 16)
    mean = spatial_mean(ours)
    assert torch.allclose(mean, plain.mean((2, 3)), atol=1e-7)
    if memory_format == torch.channels_last:
        assert torch.equal(mean, plain.mean((2, 3)))
    (mean * weights).sum().backward()
    (plain.mean((2, 3)) * weights).sum().backward()
    assert torch.equal(ours.grad, plain.grad)


def test_the_gradient_keeps_the_layout():
    maps = torch.randn(6, 16, 5, 5).to(memory_format=torch.channels_last).requires_grad_()
    seen: list[torch.Tensor] = []
    maps.register_hook(seen.append)
    spatial_mean(maps).sum().backward()
    assert seen[0].is_contiguous(memory_format=torch.channels_last)

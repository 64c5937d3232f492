"""The networks of the swapping auto-encoder."""

import pytest
import torch
from torch import nn

from unskew.models.swapping import CamNetwork, Discriminator, Modulated, PatchDiscriminator, SwappingAutoEncoder


@pytest.mark.parametrize(("size", "side"), [(8, 4), (16, 8), (24, 12), (32, 16), (33, 9), (224, 14)])
def test_networks_take_the_size_of_the_data(size, side):
    images = torch.rand(2, 3, size, size)
    autoencoder = SwappingAutoEncoder(size, 4)
    structure, texture = autoencoder.encoder(images)
    assert structure.shape == (2, 8, side, side)
    assert texture.shape == (2, 64)
    rebuilt, swaps = autoencoder(images[:1], images[1:])
    assert rebuilt.shape == images.shape
    assert swaps.shape == images[:1].shape
    assert Discriminator(size, 4)(images).shape == (2,)
    assert CamNetwork(size, 4, 5).activations(images).shape == (2, 5, side, side)


@pytest.mark.parametrize("demodulate", [True, False])
def test_modulated_convolution_is_one_with_scaled_weights(demodulate):
    torch.manual_seed(0)
    layer = Modulated(5, 7, 6, demodulate)
    nn.init.normal_(layer.bias)
    x, texture = torch.randn(3, 5, 8, 8), torch.randn(3, 6)
    for one, code, out in zip(x, texture, layer(x, texture)):
        weight = layer.weight * layer.scale(code)[None, :, None, None]
        if demodulate:
            weight = weight / weight.square().sum((1, 2, 3), keepdim=True).sqrt()
        torch.testing.assert_close(out, torch.conv2d(one[None], weight, layer.bias, padding=1)[0], rtol=1e-4, atol=1e-5)


def test_what_is_the_same_everywhere_is_not_in_the_structure():
    torch.manual_seed(0)
    encoder, images = SwappingAutoEncoder(16, 4).encoder, torch.rand(2, 3, 16, 16)
    before, _ = encoder(images)
    assert before.std((2, 3)).min() > 0.01
    nn.init.normal_(encoder.structure[-1].bias)
    torch.testing.assert_close(encoder(images)[0], before, rtol=1e-4, atol=1e-5)


def test_references_count_by_the_mean_of_their_features_in_any_order():
    torch.manual_seed(0)
    judge, patches, references = PatchDiscriminator(4), torch.rand(2, 3, 3, 6, 6), torch.rand(2, 5, 3, 6, 6)
    out = judge(patches, references)
    assert out.shape == (2, 3)
    torch.testing.assert_close(judge(patches, references.flip(1)), out)
    torch.testing.assert_close(judge(patches.flip(1), references), out.flip(1))
    assert not torch.allclose(judge(patches, references.flip(0)), out)

"""A small swapping auto-encoder (after Park et al., NeurIPS 2020, arXiv 2007.00653), and what is trained against it."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MAP = 16  # px: the largest side of a structure map
LEAK = 0.2


def sides_of(size: int, least: int = MAP) -> list[int]:
    """The side of an image after each halving, until ``least`` or less; at least one halving."""
    sides = [size, -(-size // 2)]
    while sides[-1] > least:
        sides.append(-(-sides[-1] // 2))
    return sides


def _halvings(width: int, steps: int) -> nn.Sequential:
    """A 3×3 convolution of stride 2 a step, to ``width`` channels, then twice and four times as many."""
    widths = [3, *_widths(width, steps)]
    pairs = ((nn.Conv2d(a, b, 3, stride=2, padding=1), nn.LeakyReLU(LEAK)) for a, b in pairwise(widths))
    return nn.Sequential(*(layer for pair in pairs for layer in pair))


def _widths(width: int, steps: int) -> list[int]:
    return [width * 2 ** min(step, 2) for step in range(steps)]


class Encoder(nn.Module):
    """Images, N×3×H×W, to a structure map, N×channels×h×w, and a texture code, N×texture.

    The mean over space is taken off each channel of the map, so that no mean colour can hide there; then each cell is
    brought to one length, as the code is.
    """

    def __init__(self, size: int, width: int, channels: int, texture: int) -> None:
        super().__init__()
        steps = len(sides_of(size)) - 1
        wide = _widths(width, steps)[-1]
        self.layers = _halvings(width, steps)
        self.structure = nn.Sequential(
            nn.Conv2d(wide, wide, 3, padding=1), nn.LeakyReLU(LEAK), nn.Conv2d(wide, channels, 1)
        )
        self.texture = nn.Sequential(nn.Conv2d(wide, 2 * wide, 3, stride=2, padding=1), nn.LeakyReLU(LEAK))
        self.code = nn.Linear(2 * wide, texture)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.layers(images - 0.5)
        structure = self.structure(features)
        structure = _unit(structure - structure.mean((2, 3), keepdim=True), 1e-2)
        return structure, _unit(self.code(self.texture(features).mean((2, 3))), 1e-6)


def _unit(x: Tensor, least: float) -> Tensor:
    """Mean square 1 over the channels; what has much less than ``least`` stays small."""
    return x * (x.square().mean(1, keepdim=True) + least).rsqrt()


class Modulated(nn.Module):
    """A 3×3 convolution whose input channels are scaled by the texture code (Karras et al. 2020); with ``demodulate``
    the outputs are scaled back, so that only the proportions between the channels count."""

    def __init__(self, before: int, after: int, texture: int, demodulate: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.kaiming_normal_(torch.empty(after, before, 3, 3), LEAK))
        self.bias = nn.Parameter(torch.zeros(after))
        self.scale = nn.Linear(texture, before)
        nn.init.ones_(self.scale.bias)
        self.demodulate = demodulate

    def forward(self, x: Tensor, texture: Tensor) -> Tensor:
        scale = self.scale(texture)
        out = F.conv2d(x * scale[:, :, None, None], self.weight, padding=1)
        if self.demodulate:
            power = scale.square() @ self.weight.square().sum((2, 3)).T
            out = out * (power + 1e-8).rsqrt()[:, :, None, None]
        return out + self.bias[:, None, None]


class Decoder(nn.Module):
    """A structure map and a texture code to images in [0, 1]."""

    def __init__(self, size: int, width: int, channels: int, texture: int) -> None:
        super().__init__()
        self.sides = sides_of(size)[-2::-1]
        widths = _widths(width, len(self.sides))[::-1]
        self.first = Modulated(channels, widths[0], texture)
        self.second = Modulated(widths[0], widths[0], texture)
        self.up = nn.ModuleList(Modulated(a, b, texture) for a, b in pairwise(widths))
        self.colours = Modulated(widths[-1], 3, texture, demodulate=False)

    def forward(self, structure: Tensor, texture: Tensor) -> Tensor:
        x = F.leaky_relu(self.first(structure, texture), LEAK)
        x = F.leaky_relu(self.second(x, texture), LEAK)
        for side, layer in zip(self.sides, self.up):
            x = F.leaky_relu(layer(_enlarged(x, side), texture), LEAK)
        return self.colours(_enlarged(x, self.sides[-1]), texture).sigmoid()


def _enlarged(x: Tensor, side: int) -> Tensor:
    return F.interpolate(x, (side, side), mode="bilinear", align_corners=False)


class SwappingAutoEncoder(nn.Module):
    """Takes images apart into structure and texture, and puts any two together.

    Parameters
    ----------
    size : int
        Pixels on a side.
    width : int
        Channels at full size.
    channels : int
        Of the structure map.
    texture : int
        Length of the texture code.
    """

    def __init__(self, size: int, width: int, channels: int = 8, texture: int = 64) -> None:
        super().__init__()
        self.encoder = Encoder(size, width, channels, texture)
        self.decoder = Decoder(size, width, channels, texture)

    def forward(self, content: Tensor, style: Tensor) -> tuple[Tensor, Tensor]:
        """Both reconstructed, one after the other; and the first one's structure with the second one's texture."""
        structure, texture = self.encoder(torch.cat([content, style]))
        some = len(content)
        structure, texture = torch.cat([structure, structure[:some]]), torch.cat([texture, texture[some:]])
        out = self.decoder(structure, texture)
        return out[: 2 * some], out[2 * some :]

    def swap(self, content: Tensor, style: Tensor) -> Tensor:
        return self(content, style)[1]


class Discriminator(nn.Module):
    """Images to one number each: large for what looks real."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        sides = sides_of(size, least=4)
        steps = len(sides) - 1
        self.layers = _halvings(width, steps)
        self.out = nn.Linear(_widths(width, steps)[-1] * sides[-1] ** 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(self.layers(images - 0.5).flatten(1)).flatten()


class PatchDiscriminator(nn.Module):
    """Patches, N×P×3×h×w, and reference patches, N×R×3×h×w, to N×P numbers: large for what could be of one image.

    The references count by the mean of their features.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = _halvings(width, 2)
        wide = 2 * width
        self.out = nn.Sequential(nn.Linear(2 * wide, wide), nn.LeakyReLU(LEAK), nn.Linear(wide, 1))

    def features(self, patches: Tensor) -> Tensor:
        return self.layers(patches.flatten(0, 1) - 0.5).mean((2, 3)).unflatten(0, patches.shape[:2])

    def forward(self, patches: Tensor, references: Tensor) -> Tensor:
        ours = self.features(patches)
        theirs = self.features(references).mean(1, keepdim=True).expand_as(ours)
        return self.out(torch.cat([ours, theirs], 2))[..., 0]


class CamNetwork(nn.Module):
    """A small classifier whose logits are the mean of a map of logits over space: the class activation maps."""

    def __init__(self, size: int, width: int, num_classes: int) -> None:
        super().__init__()
        steps = len(sides_of(size)) - 1
        wide = _widths(width, steps)[-1]
        self.layers = _halvings(width, steps)
        self.maps = nn.Sequential(nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU(), nn.Conv2d(wide, num_classes, 1))

    def activations(self, images: Tensor) -> Tensor:
        """N×classes×h×w."""
        return self.maps(self.layers(images - 0.5))

    def forward(self, images: Tensor) -> Tensor:
        return self.activations(images).mean((2, 3))

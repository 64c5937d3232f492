"""Patches of images, drawn where a class activation map is large."""

import torch
import torch.nn.functional as F
from torch import Tensor

NUMBERS = 4  # uniform numbers that a patch needs: its cell, where in it (2), its side
SMALLEST, LARGEST = 1 / 8, 1 / 4  # of the image's side, as in the swapping auto-encoder
LARGEST_PATCH = 32  # px


def cam_weights(maps: Tensor, floor: float) -> Tensor:
    """How likely a patch is drawn at each cell: N×h×w, adding up to 1 for each image.

    The activation map of the class that is predicted, where it is positive, over its mean; ``floor`` is added to
    every cell, so that none is out of reach.

    Parameters
    ----------
    maps : tensor, N×classes×h×w
    floor : float
    """
    maps = maps.float()
    predicted = maps.mean((2, 3)).argmax(1)
    each = torch.arange(len(maps), device=maps.device)
    positive = maps[each, predicted].relu()
    weights = positive / positive.mean((1, 2), keepdim=True).clamp(min=1e-8) + floor
    return weights / weights.sum((1, 2), keepdim=True)


def draw_boxes(weights: Tensor, uniforms: Tensor) -> Tensor:
    """Centre (right, down) and side of patches, of an image of side 1 that holds them: N×P×3.

    Parameters
    ----------
    weights : tensor, N×h×w
        Of :func:`cam_weights`.
    uniforms : tensor, N×P×4
    """
    height, width = weights.shape[1:]
    below = weights.flatten(1).cumsum(1)
    cell = torch.searchsorted(below, uniforms[..., 0] * below[:, -1:], right=True).clamp(max=height * width - 1)
    row, column = torch.div(cell, width, rounding_mode="floor"), cell % width
    centre = torch.stack([(column + uniforms[..., 1]) / width, (row + uniforms[..., 2]) / height], 2)
    side = (SMALLEST + (LARGEST - SMALLEST) * uniforms[..., 3])[..., None]
    centre = torch.maximum(torch.minimum(centre, 1 - side / 2), side / 2)
    return torch.cat([centre, side], 2)


def crop(images: Tensor, boxes: Tensor) -> Tensor:
    """The boxes of each image, all scaled to one size: N×P×C×p×p."""
    pixels = min(max(round(LARGEST * images.shape[-1]), 4), LARGEST_PATCH)
    count = boxes.shape[1]
    steps = (torch.arange(pixels, device=images.device) + 0.5) / pixels - 0.5
    places = 2 * (boxes[:, :, :2, None] + boxes[:, :, 2:, None] * steps) - 1  # N×P×2×p
    right = places[:, :, 0, None, :].expand(-1, -1, pixels, -1)
    down = places[:, :, 1, :, None].expand(-1, -1, -1, pixels)
    grid = torch.stack([right, down], -1).flatten(1, 2)
    patches = F.grid_sample(images.float(), grid, padding_mode="border", align_corners=False)
    return patches.unflatten(2, (count, pixels)).transpose(1, 2)

"""Batched augmentation on the device: one gather from the stored uint8 images, driven by numbers drawn before."""

import torch
import torch.nn.functional as F
from torch import Tensor

PAD = 4
SMALLEST_CROP = 0.7  # of the area, as the Waterbirds recipes have it
LARGEST_ASPECT = 4 / 3


def batch_of(pixels: Tensor, index: Tensor, kind: str, draws: Tensor) -> Tensor:
    """Float images in [0, 1], batch × C × H × W and ``channels_last``.

    Parameters
    ----------
    pixels : uint8 tensor, N×H×W×C
    index : int64 tensor, batch
    kind : {"none", "crop", "crop-flip", "resized-crop"}
    draws : float tensor, batch × 5
        Uniform in [0, 1): shift down, shift right, flip, area, aspect.
    """
    if kind in ("crop", "crop-flip"):
        images = _shifted(pixels, index, draws, flip=kind == "crop-flip")
    else:
        images = pixels[index]
    images = images.permute(0, 3, 1, 2).float().div_(255)
    if kind == "resized-crop":
        images = _zoomed(images, draws)
    return images


def _shifted(pixels: Tensor, index: Tensor, draws: Tensor, flip: bool) -> Tensor:
    """A crop of the zero-padded image, perhaps mirrored, in a single gather: nothing is padded or copied."""
    _, height, width, _ = pixels.shape
    shift = (draws[:, :2] * (2 * PAD + 1)).long() - PAD
    rows = shift[:, :1] + torch.arange(height, device=index.device)
    columns = torch.arange(width, device=index.device).expand(len(index), -1)
    if flip:
        columns = torch.where(draws[:, 2:3] < 0.5, width - 1 - columns, columns)
    columns = shift[:, 1:2] + columns
    inside_rows, inside_columns = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
    inside = inside_rows[:, :, None] & inside_columns[:, None, :]
    rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    gathered = pixels[index[:, None, None], rows[:, :, None], columns[:, None, :]]
    return gathered * inside[..., None]


def _zoomed(images: Tensor, draws: Tensor) -> Tensor:
    """A random box of 70–100% of the area and an aspect within 3/4…4/3, scaled to the full size, half mirrored."""
    area = SMALLEST_CROP + (1 - SMALLEST_CROP) * draws[:, 3]
    aspect = LARGEST_ASPECT ** (2 * draws[:, 4] - 1)
    tall, wide = (area / aspect).sqrt().clamp(max=1), (area * aspect).sqrt().clamp(max=1)
    down, right = (1 - tall) * (2 * draws[:, 0] - 1), (1 - wide) * (2 * draws[:, 1] - 1)
    mirror = torch.where(draws[:, 2] < 0.5, -1.0, 1.0)
    zero = torch.zeros_like(tall)
    box = torch.stack([torch.stack([wide * mirror, zero, right], 1), torch.stack([zero, tall, down], 1)], 1)
    grid = F.affine_grid(box, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)

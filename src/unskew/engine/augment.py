"""Batched augmentation on the device: one gather from the stored uint8 images, driven by numbers drawn before."""

import torch
import torch.nn.functional as F
from torch import Tensor

PAD = 4
SMALLEST_CROP = 0.7  # of the area, as the Waterbirds recipes have it
LARGEST_ASPECT = 4 / 3


def batch_of(pixels: Tensor, index: Tensor, kind: str, draws: Tensor, size: int | None = None) -> Tensor:
    """Float images in [0, 1], batch × C × size × size and ``channels_last``.

    Parameters
    ----------
    pixels : uint8 tensor, N×H×W×C
    index : int64 tensor, batch
    kind : {"none", "crop", "crop-flip", "resized-crop"}
    draws : float tensor, batch × 5
        Uniform in [0, 1): shift down, shift right, flip, area, aspect.
    size : int, optional
        Of larger images the centre is seen, a crop about it, or any box in them; smaller ones are enlarged. By default
        they are as large as they are stored.
    """
    stored = pixels.shape[1]
    size = size or stored
    side = min(size, stored)
    if kind in ("crop", "crop-flip"):
        images = _shifted(pixels, index, draws, side, flip=kind == "crop-flip")
    else:
        images = pixels[index]
    images = images.permute(0, 3, 1, 2)
    if kind == "resized-crop":
        return _zoomed(images.float().div_(255), draws, size)
    edge = (images.shape[-1] - side) // 2
    images = images[:, :, edge : edge + side, edge : edge + side].float().div_(255)
    if side < size:
        images = F.interpolate(images, (size, size), mode="bilinear")
    return images.contiguous(memory_format=torch.channels_last)


def _shifted(pixels: Tensor, index: Tensor, draws: Tensor, side: int, flip: bool) -> Tensor:
    """A crop of the zero-padded image, perhaps mirrored, in a single gather: nothing is padded or copied."""
    stored = pixels.shape[1]
    shift = (draws[:, :2] * (2 * PAD + 1)).long() - PAD + (stored - side) // 2
    rows = shift[:, :1] + torch.arange(side, device=index.device)
    columns = torch.arange(side, device=index.device).expand(len(index), -1)
    if flip:
        columns = torch.where(draws[:, 2:3] < 0.5, side - 1 - columns, columns)
    columns = shift[:, 1:2] + columns
    inside_rows, inside_columns = (rows >= 0) & (rows < stored), (columns >= 0) & (columns < stored)
    inside = inside_rows[:, :, None] & inside_columns[:, None, :]
    rows, columns = rows.clamp(0, stored - 1), columns.clamp(0, stored - 1)
    gathered = pixels[index[:, None, None], rows[:, :, None], columns[:, None, :]]
    return gathered * inside[..., None]


def _zoomed(images: Tensor, draws: Tensor, size: int) -> Tensor:
    """A random box of 70–100% of the area and an aspect within 3/4…4/3, scaled to ``size``, half mirrored."""
    area = SMALLEST_CROP + (1 - SMALLEST_CROP) * draws[:, 3]
    aspect = LARGEST_ASPECT ** (2 * draws[:, 4] - 1)
    tall, wide = (area / aspect).sqrt().clamp(max=1), (area * aspect).sqrt().clamp(max=1)
    down, right = (1 - tall) * (2 * draws[:, 0] - 1), (1 - wide) * (2 * draws[:, 1] - 1)
    mirror = torch.where(draws[:, 2] < 0.5, -1.0, 1.0)
    zero = torch.zeros_like(tall)
    box = torch.stack([torch.stack([wide * mirror, zero, right], 1), torch.stack([zero, tall, down], 1)], 1)
    grid = F.affine_grid(box, [len(images), images.shape[1], size, size], align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)

"""Arrays and tensors of images, in any usual layout, as uint8 N×H×W×3."""

import numpy as np
import torch

from unskew.errors import UnskewError

BLOCK = 1024  # images converted at a time: floats take at least four times the memory of the result


def as_array(values, where: str) -> np.ndarray:
    try:
        return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    except (ValueError, TypeError) as error:
        raise UnskewError(f"{where} cannot be read as an array ({error}).") from error


def pixels(images: np.ndarray, where: str) -> np.ndarray:
    """Square uint8 pixels: the centre of images that are not square, grey as three channels."""
    shape = images.shape
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim == 4 and images.shape[-1] not in (1, 3) and images.shape[1] in (1, 3):
        images = images.transpose(0, 2, 3, 1)
    if images.ndim != 4 or images.shape[-1] not in (1, 3) or 0 in images.shape:
        raise UnskewError(f"{where}: images must be N×H×W×3, N×3×H×W, N×H×W×1 or N×H×W, but their shape is {shape}.")
    side = min(images.shape[1:3])
    top, left = (images.shape[1] - side) // 2, (images.shape[2] - side) // 2
    images = images[:, top : top + side, left : left + side]
    if images.dtype != np.uint8:
        images = _from_floats(images, where)
    if images.shape[-1] == 1:
        images = np.repeat(images, 3, axis=-1)
    return np.require(images, requirements=["C", "W"])  # torch wants writable memory; no copy where it is


def resized(images: np.ndarray, size: int) -> np.ndarray:
    """Square pixels at another size."""
    if images.shape[1] == size:
        return images
    from PIL import Image

    from unskew.data.decode import square
    from unskew.data.parallel import each

    out = np.empty((len(images), size, size, 3), np.uint8)
    for row, result in enumerate(each(lambda row: square(Image.fromarray(images[row]), size), range(len(images)))):
        out[row] = result
    return out


def _from_floats(images: np.ndarray, where: str) -> np.ndarray:
    if images.dtype.kind != "f":
        raise UnskewError(f"{where}: images must be uint8, or floats between 0 and 1, not {images.dtype}.")
    out = np.empty(images.shape, np.uint8)
    for start in range(0, len(images), BLOCK):
        block = images[start : start + BLOCK]
        if np.isnan(block).any():
            first = start + int(np.isnan(block).any(axis=(1, 2, 3)).argmax())
            raise UnskewError(f"{where}: image {first} has NaN pixels.")
        if block.min() < 0 or block.max() > 1:
            raise UnskewError(
                f"{where}: float images must lie between 0 and 1, but pixels reach from {block.min():g} to"
                f" {block.max():g}; leave out any normalisation, or give uint8."
            )
        out[start : start + BLOCK] = np.rint(block.astype(np.float32) * 255)
    return out

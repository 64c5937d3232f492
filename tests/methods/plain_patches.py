"""Where patches are drawn and what is in them, one cell and one pixel after another."""

import numpy as np
import torch
from torch import Tensor


def plain_weights(maps: np.ndarray, floor: float) -> np.ndarray:
    out = []
    for image in maps:
        chosen = np.maximum(image[np.argmax([m.mean() for m in image])], 0)
        mean = chosen.mean()
        raised = (chosen / mean if mean > 0 else chosen) + floor
        out.append(raised / raised.sum())
    return np.stack(out)


def plain_boxes(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    boxes = np.zeros((*uniforms.shape[:2], 3))
    for i, image in enumerate(weights):
        for k, (u, across, along, size) in enumerate(uniforms[i]):
            below, cell = 0.0, 0
            for weight in image.flatten()[:-1]:
                below += weight
                if u < below:
                    break
                cell += 1
            row, column = divmod(cell, image.shape[1])
            side = 1 / 8 + size / 8
            centre = [(column + across) / image.shape[1], (row + along) / image.shape[0]]
            boxes[i, k] = [*(min(max(c, side / 2), 1 - side / 2) for c in centre), side]
    return boxes


def plain_crop(image: np.ndarray, box: np.ndarray, pixels: int) -> np.ndarray:
    """Bilinear, one pixel after another; image is 3×size×size."""
    size, out = image.shape[1], np.zeros((3, pixels, pixels))
    for i in range(pixels):
        for j in range(pixels):
            y, x = ((box[k] + box[2] * ((n + 0.5) / pixels - 0.5)) * size - 0.5 for k, n in ((1, i), (0, j)))
            y, x = min(max(y, 0), size - 1), min(max(x, 0), size - 1)
            top, left = min(int(y), size - 2), min(int(x), size - 2)
            a, b = y - top, x - left
            out[:, i, j] = (
                image[:, top, left] * (1 - a) * (1 - b) + image[:, top, left + 1] * (1 - a) * b
                + image[:, top + 1, left] * a * (1 - b) + image[:, top + 1, left + 1] * a * b
            )  # fmt: skip
    return out


def plain_patches(images: Tensor, boxes: np.ndarray) -> Tensor:
    patches = [[plain_crop(image, box, 4) for box in row] for image, row in zip(images.numpy(), boxes)]
    return torch.tensor(np.array(patches), dtype=torch.float32)

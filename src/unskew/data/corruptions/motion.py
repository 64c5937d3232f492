"""Motion blur as ImageMagick does it, which CIFAR-10-C was made with."""

import numpy as np

from unskew.data.corruptions.streams import Generators, draw

MOTION = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))  # radius, σ


def motion_blur(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    angles = draw(generators, lambda random: random.uniform(-45, 45))
    return blur_along(images, *MOTION[level], angles)


def blur_along(images: np.ndarray, radius: int, sigma: float, angles: np.ndarray) -> np.ndarray:
    """Blur uint8 images N×H×W×C, each along its own angle in degrees.

    The kernel is half a Gaussian, 2·radius + 1 pixels from the pixel onwards, at the nearest pixels of a
    line. Beyond the edge, the edge is repeated.
    """
    height, width = images.shape[1:3]
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    margin = 2 * radius
    edged = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)), mode="edge").astype(np.float64)
    turns = np.deg2rad(angles)[:, None]
    down = np.ceil(steps * np.sin(turns) - 0.5).astype(int) + margin
    right = np.ceil(steps * np.cos(turns) - 0.5).astype(int) + margin
    out = np.zeros(images.shape)
    for total, image, ys, xs in zip(out, edged, down.tolist(), right.tolist()):
        for weight, y, x in zip(weights, ys, xs):
            total += weight * image[y : y + height, x : x + width]
    rounded = np.floor(out * 257 + 0.5)  # ImageMagick rounds to 16 bits, and cuts down to 8
    return (rounded // 257).astype(np.uint8)

"""Blurs whose kernel is the same for every image, and frosted glass."""

from functools import cache

import numpy as np

from unskew.data.corruptions.pixels import to_pixels, to_unit
from unskew.data.corruptions.streams import Generators, draw
from unskew.data.corruptions.zoom import zoom_matrix

GAUSSIAN = (0.4, 0.6, 0.7, 0.8, 1)  # σ
GLASS = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))  # σ, rounds
DEFOCUS = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))  # radius of the disk, σ that softens it
ZOOM = (1.06, 1.11, 1.16, 1.21, 1.26)  # largest zoom


def gaussian(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    return to_pixels(smooth(to_unit(images), GAUSSIAN[level]))


def glass(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    """Blur, move pixels about, blur again.

    The definition swaps each pixel with a neighbour above or to the left, from the last pixel to the first.
    But it swaps views of one array, so that the neighbour's value overwrites the pixel's and the neighbour
    keeps its own; and as it is read before its own turn, one round is one look-up in the round before.
    """
    sigma, rounds = GLASS[level]
    height, width = images.shape[1:3]
    pixels = (smooth(to_unit(images), sigma) * 255).astype(np.uint8)
    rows, columns = np.arange(height - 1, 1, -1), np.arange(width - 1, 1, -1)
    shape = (rounds, len(rows), len(columns), 2)
    steps = draw(generators, lambda random: random.randint(-1, 1, size=shape))
    image = np.arange(len(images))[:, None, None]
    for turn in range(rounds):
        step = steps[:, turn]
        moved = pixels[image, rows[:, None] + step[..., 1], columns + step[..., 0]]
        pixels[:, 2:, 2:] = moved[:, ::-1, ::-1]
    return to_pixels(smooth(to_unit(pixels), sigma))


def defocus(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    from scipy.ndimage import correlate

    kernel = _disk(*DEFOCUS[level])[None, :, :, None]
    return to_pixels(correlate(to_unit(images), kernel, mode="mirror"))


def zoom(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    """The mean of the image and its zooms, all of them one sparse matrix over the pixels."""
    count, height, width, channels = images.shape
    columns = to_unit(images).transpose(1, 2, 0, 3).reshape(height * width, -1)
    blurred = (_zooms(height, width, level) @ columns).reshape(height, width, count, channels)
    return to_pixels(blurred.transpose(2, 0, 1, 3))


def smooth(unit: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian blur of the two axes after the first, the edge repeated."""
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(unit, sigma, mode="nearest", truncate=4.0, axes=(1, 2))


def _disk(radius: float, sigma: float) -> np.ndarray:
    """A disk softened by a 3×3 Gaussian."""
    from scipy.ndimage import correlate

    reach = np.arange(-3, 4)
    disk = (reach[:, None] ** 2 + reach**2 <= radius**2).astype(np.float64)
    soft = np.exp(-(np.arange(-1, 2) ** 2) / (2 * sigma**2))
    soft = np.outer(soft, soft)
    return correlate(disk / disk.sum(), soft / soft.sum(), mode="constant").astype(np.float32)


@cache
def _zooms(height: int, width: int, level: int):
    from scipy.sparse import csr_array, identity, kron

    factors = np.arange(1, ZOOM[level], 0.01)
    total = identity(height * width)
    for factor in factors:
        total = total + kron(zoom_matrix(height, factor), zoom_matrix(width, factor))
    return csr_array(total / (len(factors) + 1))

"""Elastic: a random affine map, then every pixel is taken from a place near its own."""

from collections.abc import Callable

import numpy as np

from unskew.data.corruptions.pixels import to_pixels, to_unit
from unskew.data.corruptions.streams import Generators, draw

# size and smoothness of the displacements, and reach of the affine map's three corners, in image sides
ELASTIC = ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03))


def elastic(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    from scipy.ndimage import gaussian_filter

    height, width = images.shape[1:3]
    side = min(height, width)
    size, smoothness, reach = (side * share for share in ELASTIC[level])
    shift = draw(generators, lambda random: random.uniform(-reach, reach, (3, 2)))
    noise = draw(generators, lambda random: random.uniform(-1, 1, (2, height, width)))

    centre, arm = np.array([width // 2, height // 2]), side // 3
    corners = centre + arm * np.array([(1, 1), (1, -1), (-1, -1)])  # as (x, y)
    moved = np.concatenate([corners + shift, np.ones((len(images), 3, 1))], axis=-1)
    back = np.linalg.solve(moved, np.broadcast_to(corners.astype(float), (len(images), 3, 2)))
    y, x = np.mgrid[:height, :width].astype(float)
    places = np.stack([x, y, np.ones_like(x)], axis=-1) @ back[:, None]
    warped = _sampled(to_unit(images), places[..., 1], places[..., 0], _mirror)

    smooth = gaussian_filter(noise, smoothness, mode="reflect", truncate=3, axes=(2, 3)) * size
    return to_pixels(_sampled(warped, y + smooth[:, 1], x + smooth[:, 0], _reflect))


def _sampled(unit: np.ndarray, y: np.ndarray, x: np.ndarray, fold: Callable[[np.ndarray, int], np.ndarray]):
    """The images at N×H×W places, with straight lines between the pixels; ``fold`` says what lies beyond the edge."""
    count, height, width, channels = unit.shape
    flat = unit.reshape(-1, channels)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    down, right = (y - top)[..., None], (x - left)[..., None]
    image = np.arange(count)[:, None, None] * height
    upper, lower = (image + fold(top, height)) * width, (image + fold(top + 1, height)) * width
    left, next_ = fold(left, width), fold(left + 1, width)
    above = flat[upper + left] * (1 - right) + flat[upper + next_] * right
    below = flat[lower + left] * (1 - right) + flat[lower + next_] * right
    return above * (1 - down) + below * down


def _mirror(index: np.ndarray, length: int) -> np.ndarray:
    """c b | a b c | b a: the edge is the mirror."""
    period = max(2 * (length - 1), 1)
    return length - 1 - np.abs(index % period - (length - 1))


def _reflect(index: np.ndarray, length: int) -> np.ndarray:
    """b a | a b c | c b: the edge comes twice."""
    index = index % (2 * length)
    return np.minimum(index, 2 * length - 1 - index)

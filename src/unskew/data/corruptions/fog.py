"""Fog: a plasma fractal, light over the image."""

import numpy as np

from unskew.data.corruptions.pixels import to_pixels, to_unit
from unskew.data.corruptions.streams import Generators, draw

FOG = ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))  # amount, how fast the fractal gets smooth


def fog(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    amount, decay = FOG[level]
    height, width = images.shape[1:3]
    side = 1 << (max(height, width) - 1).bit_length()
    haze = amount * plasma(generators, side, decay)[:, :height, :width, None]
    unit = to_unit(images)
    brightest = unit.max(axis=(1, 2, 3), keepdims=True)
    return to_pixels((unit + haze) * brightest / (brightest + amount))


def plasma(generators: Generators, side: int, decay: float) -> np.ndarray:
    """Diamond-square heights on a torus, N×side×side, from 0 to 1; ``side`` is a power of two."""
    heights = np.zeros((len(generators), side, side))
    step, rough = side, 100.0
    while step >= 2:
        half, shape = step // 2, (3, side // step, side // step)
        # By the square, not the first power, in CIFAR-10-C: so the heights get smooth twice as fast as it seems.
        wobble = rough**2 * draw(generators, lambda random, shape=shape: random.uniform(-1, 1, shape))
        corners = heights[:, ::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=1)
        middles = (pairs + np.roll(pairs, -1, axis=2)) / 4 + wobble[:, 0]
        tops = (middles + np.roll(middles, 1, axis=1) + corners + np.roll(corners, -1, axis=2)) / 4 + wobble[:, 1]
        sides = (middles + np.roll(middles, 1, axis=2) + corners + np.roll(corners, -1, axis=1)) / 4 + wobble[:, 2]
        heights[:, half::step, half::step] = middles
        heights[:, ::step, half::step] = tops
        heights[:, half::step, ::step] = sides
        step, rough = half, rough / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return heights / heights.max(axis=(1, 2), keepdims=True)

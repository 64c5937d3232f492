"""Spatter: drops of water (severity 1 to 3) or mud (4 and 5) on the lens."""

import numpy as np

from unskew.data.corruptions import water
from unskew.data.corruptions.blur import smooth
from unskew.data.corruptions.pixels import to_pixels, to_unit
from unskew.data.corruptions.streams import Generators, draw

# mean and deviation of the noise, σ that smooths it, the value from which it is liquid; then for water how much it
# covers, for mud the σ that softens its edge
WATER = ((0.62, 0.1, 0.7, 0.7, 0.5), (0.65, 0.1, 0.8, 0.7, 0.5), (0.65, 0.3, 1, 0.69, 0.5))
MUD = ((0.65, 0.1, 0.7, 0.69, 0.6), (0.65, 0.1, 0.5, 0.68, 0.6))
TURQUOISE = np.array([175, 238, 238]) / 255
BROWN = np.array([63, 42, 20]) / 255
THICK = 0.8  # mud thinner than this is not seen


def spatter(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    mean, deviation, sigma, threshold, last = (WATER + MUD)[level]
    liquid = smooth(draw(generators, lambda random: random.normal(mean, deviation, images.shape[1:3])), sigma)
    unit = to_unit(images)
    if level < len(WATER):
        liquid[liquid < threshold] = 0
        return to_pixels(unit + last * water.light(liquid)[..., None] * TURQUOISE)
    mud = smooth((liquid > threshold).astype(np.float64), last)
    mud = np.where(mud < THICK, 0, mud)[..., None]
    return to_pixels(unit * (1 - mud) + BROWN * mud)

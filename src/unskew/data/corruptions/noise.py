"""Noise in every pixel and channel by itself."""

import numpy as np

from unskew.data.corruptions.pixels import to_pixels, to_unit
from unskew.data.corruptions.streams import Generators, draw

GAUSSIAN = (0.04, 0.06, 0.08, 0.09, 0.10)  # standard deviation
SHOT = (500, 250, 100, 75, 50)  # photons that make white
IMPULSE = (0.01, 0.02, 0.03, 0.05, 0.07)  # share of values that become black or white
SPECKLE = (0.06, 0.1, 0.12, 0.16, 0.2)  # standard deviation, as a share of the value


def gaussian(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    return to_pixels(to_unit(images) + _normal(images, generators, GAUSSIAN[level]))


def shot(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    photons = SHOT[level]
    expected = to_unit(images) * photons
    counts = np.stack([random.poisson(image) for random, image in zip(generators, expected)])
    return to_pixels(counts / photons)


def impulse(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    chance = draw(generators, lambda random: random.random_sample((2, *images.shape[1:])))
    hit, white = chance[:, 0] <= IMPULSE[level], chance[:, 1] <= 0.5
    return to_pixels(np.where(hit, white, to_unit(images)))


def speckle(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    unit = to_unit(images)
    return to_pixels(unit + unit * _normal(images, generators, SPECKLE[level]))


def _normal(images: np.ndarray, generators: Generators, deviation: float) -> np.ndarray:
    return draw(generators, lambda random: random.normal(0, deviation, images.shape[1:]))

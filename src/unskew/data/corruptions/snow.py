"""Snow: bright spots, blurred along the direction they fall in, over a whitened image."""

import numpy as np

from unskew.data.corruptions.motion import blur_along
from unskew.data.corruptions.pixels import to_pixels, to_unit
from unskew.data.corruptions.streams import Generators, draw
from unskew.data.corruptions.zoom import zoom_matrix

# mean and deviation of the noise, its zoom, the value from which it is a flake, radius and σ of the blur, and the
# weight of the image that is not whitened
SNOW = (
    (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
    (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
    (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
    (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
    (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
)
LUMA = np.array([0.299, 0.587, 0.114])


def snow(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    mean, deviation, factor, threshold, radius, sigma, weight = SNOW[level]
    height, width = images.shape[1:3]
    flakes = draw(generators, lambda random: random.normal(mean, deviation, (height, width)))
    flakes = zoom_matrix(height, factor) @ flakes @ zoom_matrix(width, factor).T
    flakes[flakes < threshold] = 0
    angles = draw(generators, lambda random: random.uniform(-135, -45))
    falling = to_unit(blur_along(to_pixels(flakes)[..., None], radius, sigma, angles))
    unit = to_unit(images)
    white = np.maximum(unit, (unit @ LUMA)[..., None] * 1.5 + 0.5)
    return to_pixels(weight * unit + (1 - weight) * white + falling + falling[:, ::-1, ::-1])

"""Brightness, contrast and saturation."""

import numpy as np

from unskew.data.corruptions.pixels import to_pixels, to_unit
from unskew.data.corruptions.streams import Generators

BRIGHTNESS = (0.05, 0.1, 0.15, 0.2, 0.3)  # added to the value V of HSV
CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)  # what is left of the distance from the channel's mean
SATURATE = ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))  # S of HSV: factor, then added


def brightness(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    """A new V with the same H and S scales all channels alike; black has neither, and turns grey."""
    unit = to_unit(images)
    value = unit.max(axis=-1, keepdims=True)
    brighter = np.minimum(value + BRIGHTNESS[level], 1)
    return to_pixels(np.where(value > 0, unit * brighter / np.where(value > 0, value, 1), brighter))


def contrast(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    unit = to_unit(images)
    mean = unit.mean(axis=(1, 2), keepdims=True)
    return to_pixels((unit - mean) * CONTRAST[level] + mean)


def saturate(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    """A new S with the same H and V scales the distance of each channel from the highest.

    Grey has no hue: it counts as red, so that where S is added to, grey turns reddish.
    """
    factor, added = SATURATE[level]
    unit = to_unit(images)
    value = unit.max(axis=-1, keepdims=True)
    below = value - unit
    depth = below.max(axis=-1, keepdims=True)
    grey = depth == 0
    saturation = depth / np.where(value > 0, value, 1)
    wanted = np.clip(saturation * factor + added, 0, 1)
    direction = np.where(grey, [0.0, 1.0, 1.0], below / np.where(grey, 1, depth))
    return to_pixels(value * (1 - direction * wanted))

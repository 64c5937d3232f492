"""Between uint8 pixels and numbers in [0, 1]."""

import numpy as np


def to_unit(images: np.ndarray) -> np.ndarray:
    return images / 255.0


def to_pixels(unit: np.ndarray) -> np.ndarray:
    """Cut down to whole numbers, not rounded: CIFAR-10-C was made so."""
    return (np.clip(unit, 0, 1) * 255).astype(np.uint8)

"""The 19 corruptions of CIFAR-10-C, as pure functions of the images and of (seed, name, image number).

Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations",
ICLR 2019. The constants are those for 32×32 images.

>>> import numpy as np
>>> from unskew.data.corruptions import corrupt
>>> grey = np.full((2, 32, 32, 3), 128, np.uint8)
>>> corrupt(grey, "brightness", severity=5)[0, 0, 0].tolist()
[204, 204, 204]
"""

from collections.abc import Callable, Sequence

import numpy as np

from unskew.data.corruptions import blur, colour, digital, elastic, fog, frost, motion, noise, snow, spatter
from unskew.data.corruptions.frost import frost_source
from unskew.data.corruptions.streams import generator
from unskew.errors import UnskewError, nearest

__all__ = ["CORRUPTIONS", "VERSION", "corrupt", "corrupt_numbered", "frost_source"]

VERSION = 1  # raise it when the same images would be corrupted to other pixels

# Each takes uint8 images N×H×W×3, the severity counted from 0, and one generator for each image.
CORRUPTIONS: dict[str, Callable[[np.ndarray, int, Sequence[np.random.RandomState]], np.ndarray]] = {
    "gaussian_noise": noise.gaussian,
    "shot_noise": noise.shot,
    "impulse_noise": noise.impulse,
    "speckle_noise": noise.speckle,
    "gaussian_blur": blur.gaussian,
    "glass_blur": blur.glass,
    "defocus_blur": blur.defocus,
    "motion_blur": motion.motion_blur,
    "zoom_blur": blur.zoom,
    "snow": snow.snow,
    "frost": frost.frost,
    "fog": fog.fog,
    "brightness": colour.brightness,
    "contrast": colour.contrast,
    "elastic": elastic.elastic,
    "pixelate": digital.pixelate,
    "jpeg": digital.jpeg,
    "spatter": spatter.spatter,
    "saturate": colour.saturate,
    "original": lambda images, level, generators: images.copy(),
}


def corrupt(images: np.ndarray, name: str, severity: int = 5, seed: int = 0, start: int = 0) -> np.ndarray:
    """Corrupt images; the given ones stay as they are.

    Parameters
    ----------
    images : uint8 array, N×H×W×3
    name : str
        One of ``CORRUPTIONS``; "original" changes nothing.
    severity : int
        1 (weak) to 5 (strong).
    seed, start : int
        The noise of image i follows from (seed, name, start + i) alone, so that a set can be corrupted in
        pieces, in any order and on any number of cores.
    """
    return corrupt_numbered(images, name, severity, seed, np.arange(start, start + len(images)))


def corrupt_numbered(images: np.ndarray, name: str, severity: int, seed: int, numbers: np.ndarray) -> np.ndarray:
    """The same for images that do not lie side by side: ``numbers`` says which one each is."""
    if name not in CORRUPTIONS:
        raise UnskewError(f"unknown corruption {name!r}: {nearest(name, CORRUPTIONS)}")
    if severity not in (1, 2, 3, 4, 5):
        raise UnskewError(f"the severity of a corruption is a whole number from 1 to 5, not {severity}.")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
        raise UnskewError(f"images to corrupt must be uint8 and N×H×W×3, not {images.dtype} {images.shape}.")
    if not len(images):
        return images.copy()
    generators = [generator(seed, name, number) for number in numbers.tolist()]
    return CORRUPTIONS[name](images, int(severity) - 1, generators)

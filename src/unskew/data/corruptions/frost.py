"""Frost: a photograph of ice over the image, or a drawn one where there are no photographs."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from unskew.data.corruptions.streams import Generators, draw

FROST = ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))  # weight of the image, weight of the ice
PACKAGE = "imagecorruptions"
PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")  # a sixth is never used
SMALLER = 5  # photographs are used at a fifth of their size

# The same five without the photographs, as measured on 32 px squares of them: mean colour, deviation of that mean
# from square to square, deviation of each channel within a square, and the slope of the power spectrum.
DRAWN = (
    ((77, 148, 165), 10, (21, 13, 12.5), -1.3),
    ((199, 203, 212), 9, (18, 18, 18.5), -0.8),
    ((199, 203, 212), 9, (18, 18, 18.5), -0.8),
    ((143, 158, 171), 10, (26, 26, 27), -0.45),
    ((103, 114, 126), 16, (35, 34, 34), -1.1),
)


def frost(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    weight, ice_weight = FROST[level]
    height, width = images.shape[1:3]
    folder = _folder()
    if folder is None:
        ice = draw(generators, lambda random: _drawn(random, height, width))
    else:
        ice = draw(generators, lambda random: _crop(random, folder, height, width))
    return np.clip(weight * images + ice_weight * ice, 0, 255).astype(np.uint8)


def frost_source() -> str:
    """Where the ice comes from: "imagecorruptions", the package with the photographs, or "procedural"."""
    return "procedural" if _folder() is None else PACKAGE


def _folder() -> Path | None:
    """Where the package keeps the photographs. It is found, not imported: that would take OpenCV."""
    spec = find_spec(PACKAGE)
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "frost"
        if all((folder / name).is_file() for name in PHOTOGRAPHS):
            return folder
    return None


def _crop(random: np.random.RandomState, folder: Path, height: int, width: int) -> np.ndarray:
    photograph = _photographs(folder)[random.randint(len(PHOTOGRAPHS))]
    short = [max(0, need + 1 - has) for need, has in zip((height, width), photograph.shape)]
    if any(short):
        photograph = np.pad(photograph, ((0, short[0]), (0, short[1]), (0, 0)), mode="symmetric")
    top, left = random.randint(photograph.shape[0] - height), random.randint(photograph.shape[1] - width)
    return photograph[top : top + height, left : left + width]


@cache
def _photographs(folder: Path) -> list[np.ndarray]:
    from PIL import Image

    # Every fifth pixel, from the middle of its five: what linear interpolation at exactly 0.2 comes to.
    middle = slice(SMALLER // 2, None, SMALLER)
    return [np.asarray(Image.open(folder / name).convert("RGB"))[middle, middle] for name in PHOTOGRAPHS]


def _drawn(random: np.random.RandomState, height: int, width: int) -> np.ndarray:
    """Noise with the colours, the contrast and the grain of one of the photographs."""
    colour, between, within, slope = DRAWN[random.randint(len(DRAWN))]
    shift = between * random.normal()
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    frequency[0, 0] = np.inf
    grain = np.fft.irfft2(np.fft.rfft2(random.normal(size=(height, width))) * frequency ** (slope / 2), (height, width))
    return np.clip(np.array(colour) + shift + (grain / grain.std())[..., None] * within, 0, 255)

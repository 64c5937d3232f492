"""An image file becomes one square of RGB pixels at the working size."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from unskew.data.listing import SMALL_SIDE, Encoded
from unskew.data.parallel import each

VERSION = 2  # part of the cache key: raise it when the same file would decode to other pixels
SMALL, LARGE = 32, 224  # what a network sees: the small one does justice to sides of up to SMALL_SIDE


def decode(item: Path | Encoded, size: int, fit: str = "centre") -> np.ndarray | str:
    """The pixels, size×size×3, or the reason why they cannot be read."""
    try:
        with opened(item) as image:
            image.draft(None, (2 * size, 2 * size))  # JPEG only: decode at half size, a quarter... where that is ample
            return square(ImageOps.exif_transpose(image), size, fit)
    except MemoryError:
        raise
    except Exception as error:  # broken files bring out almost every exception there is in the codecs
        return _reason(error)


def square(image: Image.Image, size: int, fit: str = "centre") -> np.ndarray:
    """Resize so that the short side is ``size``, keep the centre; or squash all of it into the square."""
    image = rgb(image)
    width, height = image.size
    if fit == "squash":
        return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC))
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC, box=box))


def rgb(image: Image.Image) -> Image.Image:
    """Any mode as RGB: transparency over white, 16-bit grey scaled down instead of clipped."""
    if image.mode == "F":
        raise ValueError("floating-point pixels, whose range is not known")
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.int64).clip(0, 65535)
        return Image.fromarray((grey // 257).astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def working_size(items: Sequence[Path | Encoded]) -> int:
    """The small size if it does justice to every image, judged by their headers."""
    return LARGE if any(side > SMALL_SIDE for side in each(_longer_side, items)) else SMALL


def _longer_side(item: Path | Encoded) -> int:
    try:
        with opened(item) as image:
            return max(image.size)
    except Exception:  # told in full when it is decoded
        return 0


def opened(item: Path | Encoded) -> Image.Image:
    return Image.open(item if isinstance(item, Path) else io.BytesIO(item.read()))


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "not an image, or of a kind that cannot be read"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__

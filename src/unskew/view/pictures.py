"""Images for the page: thumbnails are made once, and kept in the cache under what they show."""

import hashlib
import io
import os
from contextlib import suppress
from pathlib import Path
from threading import get_ident

import numpy as np

from unskew.data.cache import folder as cache_folder
from unskew.view.samples import Samples

SIDE = 128
VERSION = b"1"


class Pictures:
    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.kept = cache_folder() / "thumbnails"

    def thumbnail(self, place: int) -> tuple[bytes, str]:
        """The file and its type: small images as they are, larger ones as JPEG."""
        pixels = self._pixels(place)
        if len(pixels) <= SIDE:
            return _encoded(pixels, "PNG"), "image/png"
        name = hashlib.blake2b(VERSION + pixels.tobytes(), digest_size=16).hexdigest()
        path = self.kept / name[:2] / f"{name}.jpg"
        with suppress(OSError):
            return path.read_bytes(), "image/jpeg"
        made = _encoded(pixels, "JPEG", SIDE)
        _keep(path, made)
        return made, "image/jpeg"

    def full(self, place: int) -> tuple[bytes, str]:
        """The photo, where there is one; else all that is known of it."""
        photo = self.samples.originals.jpeg(self.samples.ids[place])
        if photo is not None:
            return photo, "image/jpeg"
        return _encoded(self._pixels(place), "PNG"), "image/png"

    def _pixels(self, place: int) -> np.ndarray:
        return self.samples.pixels[int(self.samples.rows[place])].contiguous().numpy()


def _encoded(pixels: np.ndarray, kind: str, side: int | None = None) -> bytes:
    from PIL import Image

    image = Image.fromarray(pixels)
    if side is not None:
        image = image.resize((side, side), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, kind, **({"quality": 85} if kind == "JPEG" else {}))
    return file.getvalue()


def _keep(path: Path, made: bytes) -> None:
    """Whole or not at all, but not worth waiting for the disk; without room for it the page works all the same."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(made)
        os.replace(temporary, path)
    with suppress(OSError):
        temporary.unlink(missing_ok=True)

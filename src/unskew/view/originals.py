"""The photos themselves, where a data set is made of files: what a network sees is smaller than a person wants."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from unskew.data.listing import Encoded, Listing

SIDE = 1600  # pixels: more fits no screen
QUALITY = 90


class Originals:
    """Files are looked up by the id that the data's own listing gives them, which is read when one is first opened."""

    def __init__(self, read: Callable[[], Listing]) -> None:
        self._read = read
        self._files: Mapping[str, Path | Encoded] | None = None
        self._lock = Lock()

    def jpeg(self, name: str) -> bytes | None:
        """None where there is no such file, or it cannot be read any longer."""
        from PIL import ImageOps

        from unskew.data.decode import opened, rgb

        try:
            file = self._listed().get(name)
            if file is None:
                return None
            with opened(file) as image:
                image.draft(None, (SIDE, SIDE))
                shown = rgb(ImageOps.exif_transpose(image))
            shown.thumbnail((SIDE, SIDE))
            written = io.BytesIO()
            shown.save(written, "JPEG", quality=QUALITY)
            return written.getvalue()
        except Exception:  # the data is gone, the file is broken: there are always the pixels that were kept
            return None

    def _listed(self) -> Mapping[str, Path | Encoded]:
        with self._lock:
            if self._files is None:
                listing = self._read()
                is_files = not hasattr(listing.images, "dtype")
                self._files = dict(zip(listing.ids, listing.images)) if is_files else {}
            return self._files

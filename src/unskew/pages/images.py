"""Images inside the page: small, and within a budget of bytes."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SMALL = 64  # images up to this many pixels are kept as they are where there is room, and shown pixel by pixel
SIDES = (112, 96, 72, 48)
ICONS = (44, 32, 24)
PROBES = 12


@dataclass(frozen=True)
class Encoder:
    """How images are written into a page: PNG where they are small, otherwise JPEG of at most ``side`` pixels."""

    side: int
    lossless: bool

    def __call__(self, pixels: np.ndarray) -> str:
        from PIL import Image

        image = Image.fromarray(pixels)
        if max(image.size) > self.side:
            image.thumbnail((self.side, self.side), Image.Resampling.LANCZOS)
        file = io.BytesIO()
        if self.lossless:
            image.save(file, "PNG", optimize=True)
        else:
            image.save(file, "JPEG", quality=78, optimize=True)
        kind = "png" if self.lossless else "jpeg"
        return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def encoder_for(pixels: Any, rows: Sequence[int], budget: int, sides: Sequence[int] = SIDES) -> Encoder:
    """The largest images that keep ``rows`` of ``pixels`` within so many bytes, judged by a few of them."""
    exact = [Encoder(SMALL, lossless=True)] if pixels.shape[1] <= SMALL else []
    among = min(PROBES, len(rows))
    probes = [rows[i * len(rows) // among] for i in range(among)]
    for encoder in (*exact, *(Encoder(side, lossless=False) for side in sides)):
        if sum(len(encoder(pixels[row].numpy())) for row in probes) * len(rows) <= budget * max(len(probes), 1):
            return encoder
    return Encoder(sides[-1], lossless=False)

"""What storing an image small does to it."""

import io

import numpy as np

from unskew.data.corruptions.streams import Generators

PIXELATE = (0.95, 0.9, 0.85, 0.75, 0.65)  # size of the small image
JPEG = (80, 65, 58, 50, 40)  # quality


def pixelate(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    from PIL import Image

    height, width = images.shape[1:3]
    small = (int(width * PIXELATE[level]), int(height * PIXELATE[level]))
    box = Image.Resampling.BOX
    out = np.empty_like(images)
    for row, image in enumerate(images):
        out[row] = Image.fromarray(image).resize(small, box).resize((width, height), box)
    return out


def jpeg(images: np.ndarray, level: int, generators: Generators) -> np.ndarray:
    from PIL import Image

    out = np.empty_like(images)
    for row, image in enumerate(images):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=JPEG[level])
        out[row] = Image.open(file)
    return out

"""From photo files to pixels at 256: images a second on one core and on all."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from PIL import Image

from unskew.data import parallel
from unskew.data.decode import decode

SIDE = 256


def made_up(folder: Path, count: int) -> list[Path]:
    """JPEGs of 500×375, half sharp and half smooth, much as photos are."""
    random = np.random.RandomState(0)
    paths = []
    for i in range(count):
        blobs = Image.fromarray(random.randint(0, 256, (24, 32, 3), np.uint8)).resize((500, 375))
        grain = random.normal(0, 8, (375, 500, 3))
        image = Image.fromarray((np.asarray(blobs) + grain).clip(0, 255).astype(np.uint8))
        paths.append(folder / f"{i}.jpg")
        image.save(paths[-1], quality=90)
    return paths


def speed(paths: Sequence[Path], cores: int) -> float:
    """Images a second; each file is read once before, so that the disk is not what is measured."""
    for path in paths:
        path.read_bytes()
    with patch.object(parallel, "_cores", lambda: cores):
        started = time.perf_counter()
        bad = sum(isinstance(result, str) for result in parallel.each(lambda path: decode(path, SIDE), paths))
        spent = time.perf_counter() - started
    assert not bad, f"{bad} photos cannot be read"
    return len(paths) / spent


def measure(count: int = 200) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        paths = made_up(Path(folder), count)
        cores = sorted({1, parallel._cores()})
        return {"photos": "500×375 JPEG", "images_per_second_on_cores": {str(n): speed(paths, n) for n in cores}}

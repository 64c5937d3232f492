"""Arrays that stay on disk until their rows are asked for."""

import mmap
import sys
from pathlib import Path

import numpy as np

# Without it Linux refuses a private map of more than its memory, for all of it might be written to.
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


def mapped(path: Path) -> np.ndarray:
    """``np.load(path, mmap_mode="c")``, of files larger than memory too: writing changes a copy of the page."""
    there = np.load(path, mmap_mode="r")
    with open(path, "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | NO_RESERVE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return np.frombuffer(whole, there.dtype, offset=there.offset).reshape(there.shape)

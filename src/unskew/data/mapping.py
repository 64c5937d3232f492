"""Arrays that stay on disk until their rows are asked for."""

import ctypes
import mmap
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

# Without it Linux refuses a private map of more than its memory, for all of it might be written to.
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0
CACHED = 0.5  # of memory: what is smaller stays there once it was read


def map_file(path: Path) -> np.ndarray:
    """``np.load(path, mmap_mode="c")``, of files larger than memory too: writing changes a copy of the page."""
    there = np.load(path, mmap_mode="r")
    with open(path, "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | NO_RESERVE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return np.frombuffer(whole, there.dtype, offset=there.offset).reshape(there.shape)


def memory_bytes() -> int:
    """Of this machine; 8 GiB where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        return 8 << 30


def ask_for(pixels: Tensor, rows: Tensor) -> None:
    """Have these rows of a memory map read, together and in the background, if it is too large to stay in memory.

    At the first touch of a row the system would read up to megabytes around it, which are gone before they are used:
    of photos in random order thirty times what is needed.
    """
    if pixels.nbytes <= CACHED * memory_bytes() or (library := _libc()) is None:
        return
    start, stride, length = pixels.data_ptr(), pixels.stride(0), pixels[0].nbytes
    for row in rows.flatten().tolist():
        first = start + row * stride
        page = first // mmap.PAGESIZE * mmap.PAGESIZE
        library.madvise(page, first + length - page, mmap.MADV_WILLNEED)


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None)
    if not hasattr(library, "madvise"):
        return None
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library

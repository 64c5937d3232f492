"""The C library's allocator, told to keep what a step frees: the next step wants it back.

glibc gives large blocks back to the system at once. A step on the CPU then has its activations mapped, cleared and
unmapped again: up to a third of the time of a small network.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT = 2**30  # bytes; blocks as large as this still go back at once


@contextmanager
def keeping_memory(device: torch.device) -> Iterator[None]:
    """For training on the CPU: freed blocks stay with the process, and go back to the system in the end.

    glibc does not tell its thresholds, so the new ones stay in force.
    """
    library = glibc() if device.type == "cpu" else None
    if library is None:
        yield
        return
    library.mallopt(M_TRIM_THRESHOLD, KEPT)
    library.mallopt(M_MMAP_THRESHOLD, KEPT)
    try:
        yield
    finally:
        library.malloc_trim(0)


@cache
def glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None

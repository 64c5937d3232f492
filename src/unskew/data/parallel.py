"""One function over many items, on all cores, with a bar when a person has to wait for it."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

BLOCK = 1024  # results waiting to be taken, at most
PATIENCE = 1.0  # seconds before a bar appears


def each(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """The results in order. Threads, because image codecs and resizing let go of the interpreter."""
    with ThreadPoolExecutor(_cores()) as pool:
        for start in range(0, len(items), BLOCK):
            yield from pool.map(function, items[start : start + BLOCK])


def watched(results: Iterable[R], total: int, doing: str) -> Iterator[R]:
    """Pass the results on; draw a bar on stderr if that is a terminal and a second has gone by."""
    if not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import Progress

    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task(doing, total=total)
    shows_at = time.monotonic() + PATIENCE
    shown = False
    try:
        for result in results:
            if not shown and time.monotonic() > shows_at:
                progress.start()
                shown = True
            progress.advance(bar)
            yield result
    finally:
        if shown:
            progress.stop()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))  # what this process may use, which can be fewer than there are
    except AttributeError:
        return os.cpu_count() or 1

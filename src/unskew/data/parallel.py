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


def watched(results: Iterable[R], total: int, doing: str, unit: str = "") -> Iterator[R]:
    """Pass the results on; draw a bar on stderr if that is a terminal and a second has gone by.

    With a ``unit`` the bar tells how many a second, and so does a line at the end.
    """
    if not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    speed = (TextColumn("{task.fields[speed]}"),) if unit else ()
    progress = Progress(*Progress.get_default_columns(), *speed, console=Console(stderr=True), transient=True)
    bar = progress.add_task(doing, total=total, speed="")
    started = time.monotonic()
    shown, done = False, 0
    try:
        for result in results:
            spent = time.monotonic() - started
            if not shown and spent > PATIENCE:
                progress.start()
                shown = True
            done += 1
            if unit and shown:
                progress.update(bar, advance=1, speed=f"{done / spent:,.0f} {unit}/s")
            else:
                progress.advance(bar)
            yield result
    finally:
        if shown:
            progress.stop()
            if unit:
                spent = time.monotonic() - started
                progress.console.print(f"{doing}: {done:,} {unit} in {spent:.0f} s, {done / spent:,.0f} {unit}/s")


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))  # what this process may use, which can be fewer than there are
    except AttributeError:
        return os.cpu_count() or 1

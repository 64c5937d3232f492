"""What must not grow: memory from epoch to epoch, and the time of a sample with their number."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.loops import METHODS_TIMED
from benchmarks.setup import Setup, noise
from benchmarks.turns import clock_for
from unskew.data.dataset import Dataset

EPOCHS = (2, 10)  # memory at the end of the one and of the other
COUNTS = (5_000, 15_000, 50_000, 150_000, 500_000)
SIZE, BATCH = 8, 256  # a small net on small images: what grows with N would show beside it
PER_SAMPLE = ("ph", "lff")  # the methods that keep something of every sample


def memory(setup: Setup, data: Dataset) -> dict[str, dict[str, float | None]]:
    """In GB, as the rows of metrics say it."""
    found: dict[str, dict[str, float | None]] = {}
    for name in METHODS_TIMED:
        rows = setup.train(setup.job(name, data, max(EPOCHS)), data).rows
        found[name] = {f"epoch {epoch}": rows[epoch - 1].get("memory_gb") for epoch in EPOCHS}
    return found


def against_samples(device: str, counts: Sequence[int] | None = None) -> dict[str, Any]:
    """Seconds of a whole run of one epoch, and the line through them."""
    setup = Setup(device, "cnn", None, SIZE, max(counts or COUNTS), BATCH)
    clock = clock_for(setup.where)
    everything = noise(setup.samples, SIZE)
    found: dict[str, Any] = {"model": "cnn", "size": SIZE, "batch_size": BATCH, "samples": list(counts or COUNTS)}
    for name in PER_SAMPLE:
        seconds: list[float] = []
        for count in counts or COUNTS:
            data = everything.subset(slice(count))
            started = clock()
            setup.train(setup.job(name, data, 1), data)
            seconds.append(clock() - started)
        found[name] = {"seconds": seconds, **line(found["samples"], seconds)}
    return found


def line(samples: Sequence[int], seconds: Sequence[float]) -> dict[str, float]:
    """Least squares: seconds = fixed + each · N."""
    x, y = np.asarray(samples, float), np.asarray(seconds, float)
    each, fixed = np.polyfit(x, y, 1)
    left = y - (fixed + each * x)
    return {
        "fixed_seconds": float(fixed),
        "microseconds_each": float(each * 1e6),
        "r_squared": float(1 - (left @ left) / ((y - y.mean()) @ (y - y.mean()))),
    }

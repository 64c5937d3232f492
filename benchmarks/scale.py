"""python -m benchmarks.scale [--samples 1000000] [--size 32] [--method erm]: sets larger than memory, a line of JSON.

Noise in a memory map, trained on by a network of 300 weights: what is looked at is memory. What the process holds must
stay flat from epoch to epoch; pages of the map come and go as the system sees fit. Sizes above 64 px stand for photos,
kept a seventh larger than the crop that is seen: --size 224 takes 197 KB of disk for each.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.setup import Setup, labelled
from unskew.data.dataset import Dataset
from unskew.data.listing import Framing
from unskew.data.mapping import map_file
from unskew.engine.fit import decide
from unskew.engine.memory import resident_gb
from unskew.identifiers import IDENTIFIERS
from unskew.methods import METHODS
from unskew.testing import TinyBackbone

CHUNK = 1 << 26  # bytes written at a time
OFTEN = 20  # steps between two looks


class Look:
    """A listener: for each epoch, the most the process held, and the most pages of files beside that, in GB."""

    def __init__(self) -> None:
        self.epochs: list[dict[str, float]] = []
        self._most, self._steps = {}, 0

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None: ...

    def step(self) -> None:
        self._steps += 1
        if self._steps % OFTEN == 0:
            self._look()

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None:
        self._look()
        self.epochs.append({name: round(value, 3) for name, value in self._most.items()})
        self._most = {}

    def end(self) -> None: ...

    def _look(self) -> None:
        now = resident_gb()
        self._most = {name: max(value, self._most.get(name, 0.0)) for name, value in now.items()}


def on_disk(folder: Path, samples: int, size: int) -> Dataset:
    """Written plainly: what a process writes through a map would count as its own."""
    side, random, path = Framing().kept(size), np.random.default_rng(0), folder / "images.npy"
    with open(path, "wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (samples, side, side, 3)}
        np.lib.format.write_array_header_1_0(file, header)
        left = samples * side * side * 3
        while left:
            left -= file.write(random.bytes(min(CHUNK, left)))
    return labelled(torch.from_numpy(map_file(path)), size)


def measure(setup: Setup, data: Dataset, method: str, epochs: int) -> dict[str, Any]:
    options = {"epochs": epochs, "batch_size": setup.batch_size, "device": setup.device, "augment": "crop"}
    job = decide(method, {**METHODS, **IDENTIFIERS}[method], data, options, TinyBackbone())
    look = Look()
    before = resident_gb()
    rows = setup.train(job, data, look).rows
    seconds = [after - before for before, after in pairwise([0.0, *(row["seconds"] for row in rows)])]
    return {
        "what": "scale",
        "method": method,
        "setup": setup.describe() | {"augment": "crop"},
        "images_gb": data.images.numel() / 1e9,
        "machine_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "before_training": {name: round(value, 3) for name, value in before.items()},
        "most_in_epoch": look.epochs,
        "epoch_seconds": seconds,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--method", default="erm")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the images may lie for a while")
    given = parser.parse_args(arguments)
    setup = Setup(given.device, "tiny", None, given.size, given.samples, batch_size=256)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        data = on_disk(Path(folder), given.samples, given.size)
        print(json.dumps(measure(setup, data, given.method, given.epochs)))


if __name__ == "__main__":
    main()

"""python -m benchmarks.photos [--device cuda] [--photos FOLDER] [--samples 4096]: lines of JSON for the photo pipeline.

Decoding: files to pixels at 256, on one core and on all, of a folder's photos or of made-up ones. The step: plain
training on images that lie in a memory map, once all on the device and once fetched ahead from the map; both crop 224
out of 256. Compare within one run only.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from unskew.data import parallel
from unskew.data.dataset import Dataset
from unskew.data.decode import decode
from unskew.data.folder import is_image
from unskew.engine import store
from unskew.engine.fit import decide, fit
from unskew.methods import METHODS

KEPT, SEEN = 256, 224


def made_up(folder: Path, count: int = 200) -> list[Path]:
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


def decoding(paths: Sequence[Path], cores: int) -> float:
    """Images a second; each file is read once before, so that the disk is not what is measured."""
    for path in paths:
        path.read_bytes()
    own, parallel._cores = parallel._cores, lambda: cores
    try:
        started = time.perf_counter()
        bad = sum(isinstance(result, str) for result in parallel.each(lambda p: decode(p, KEPT), paths))
        spent = time.perf_counter() - started
    finally:
        parallel._cores = own
    assert not bad, f"{bad} photos cannot be read"
    return len(paths) / spent


def mapped(folder: Path, samples: int) -> Dataset:
    """Noise in a memory map."""
    file = folder / "photos.npy"
    rows = np.lib.format.open_memmap(file, "w+", np.uint8, (samples, KEPT, KEPT, 3))
    random = np.random.RandomState(0)
    for start in range(0, samples, 64):
        rows[start : start + 64] = random.randint(0, 256, (len(rows[start : start + 64]), KEPT, KEPT, 3), np.uint8)
    rows.flush()
    images = torch.from_numpy(np.load(file, mmap_mode="c")).permute(0, 3, 1, 2)
    labels, ids = torch.arange(samples) % 2, [str(i) for i in range(samples)]
    return Dataset(images, labels, ids, ["a", "b"], name="noise", input_size=SEEN)


def step(data: Dataset, streamed: bool, options: dict) -> float:
    """Images a second of the median epoch after the first."""
    own = store._fits
    if streamed:
        store._fits = lambda pixels, device: False
    try:
        _, engine = fit(decide("erm", METHODS["erm"], data, options), data)
    finally:
        store._fits = own
    ends = [0.0, *(row["seconds"] for row in engine.rows)]
    seconds = [after - before for before, after in pairwise(ends)]
    return engine.steps * engine.batch / statistics.median(seconds[1:] or seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = sorted(p for p in given.photos.rglob("*") if is_image(p)) if given.photos else made_up(Path(folder))
        for cores in sorted({1, parallel._cores()}):
            speed = decoding(found, cores)
            line = {"what": "decode", "photos": len(found), "cores": cores, "images_per_second": speed}
            print(json.dumps({**line, "images_per_second_per_core": speed / cores}), flush=True)
        data = mapped(Path(folder), given.samples)
        options = {key: getattr(given, key) for key in ("epochs", "device", "model", "batch_size")}
        in_memory = replace(data, images=data.pixels.clone().permute(0, 3, 1, 2))
        there = step(in_memory, False, options)
        streamed = step(data, True, options)
    how = {"samples": given.samples, **options}
    print(json.dumps({"what": "step, on the device", "images_per_second": there, **how}), flush=True)
    print(json.dumps({"what": "step, streamed", "images_per_second": streamed, "ratio": streamed / there, **how}))


if __name__ == "__main__":
    main()

"""What a benchmark trains, and how: said once, and written into every result."""

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unskew.data.dataset import Dataset
from unskew.data.listing import Framing
from unskew.data.mapping import map_file
from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.fit import Job, decide, fit
from unskew.engine.inference import pick_device, uses_bf16
from unskew.engine.method import Method
from unskew.engine.processes import device_name
from unskew.identifiers import IDENTIFIERS
from unskew.methods import METHODS
from unskew.results import versions


@dataclass(frozen=True)
class Setup:
    device: str
    model: str
    stem: str | None
    size: int
    samples: int
    batch_size: int
    compile: bool = False
    precision: str = "auto"

    @property
    def where(self) -> torch.device:
        return pick_device(self.device)

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return self.samples // self.batch_size

    def job(self, name: str, data: Dataset, epochs: int, method: type[Method] | None = None) -> Job:
        options = {**asdict(self), "epochs": epochs}
        own = {key: options[key] for key in ("device", "model", "stem", "batch_size", "compile", "precision", "epochs")}
        return decide(name, method or {**METHODS, **IDENTIFIERS}[name], data, own)

    def train(self, job: Job, data: Dataset, *listeners: Any) -> Engine:
        """The conflicting samples are known: what is measured is the time that follows."""
        assert data.aligned is not None
        oracle = Partition.of(data, ~data.aligned, (~data.aligned).float(), "oracle")
        return fit(job, data, oracle if "partition" in job.method.needs else None, listeners=listeners)[1]

    def describe(self) -> dict[str, Any]:
        precision = "bfloat16" if uses_bf16(self.where, self.precision) else "float32"
        threads = {"torch": torch.get_num_threads(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}
        about: Mapping[str, Any] = {
            "device": device_name(self.where, self.precision),
            "precision": precision,
            "optimizer": "adam, fused",
            "threads": threads,
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "versions": versions(),
        }
        return {**asdict(self), **about}


def noise(samples: int, size: int, classes: int = 10) -> Dataset:
    """Random pixels; one sample in twenty conflicts. Photos are kept a seventh larger than they are seen."""
    random = torch.Generator().manual_seed(0)
    side = Framing().kept(size)
    pixels = torch.randint(0, 256, (samples, side, side, 3), generator=random, dtype=torch.uint8)
    return labelled(pixels, size, classes)


def labelled(pixels: torch.Tensor, size: int, classes: int = 10) -> Dataset:
    samples = len(pixels)
    labels = torch.arange(samples) % classes
    aligned = torch.arange(samples) // classes % 20 != 0
    ids, names = [str(i) for i in range(samples)], [str(k) for k in range(classes)]
    bias = torch.where(aligned, labels, (labels + 1) % classes)
    images = pixels.permute(0, 3, 1, 2)
    return Dataset(images, labels, ids, names, bias=bias, aligned=aligned, name="noise", input_size=size)


def moved_to_disk(data: Dataset, folder: Path) -> Dataset:
    """The same images in a memory map."""
    np.save(folder / "images.npy", data.pixels.numpy())
    return labelled(torch.from_numpy(map_file(folder / "images.npy")), data.size, data.num_classes)

"""python -m benchmarks [--device cuda] [--samples 50000] [--compile]: a line of JSON for the bare loop and each method.

The bare loop is forward, backward and optimizer on one batch that never changes; methods train on noise for some
epochs, their passes over the data included. Compare within one run only.
"""

import argparse
import json
import statistics
import time
from itertools import pairwise

import torch

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.fit import decide, fit
from unskew.engine.inference import pick_device, uses_bf16
from unskew.identifiers import IDENTIFIERS
from unskew.methods import METHODS
from unskew.models import model_factory


def noise(samples: int, size: int) -> Dataset:
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(samples) % 10
    pixels = torch.randint(0, 256, (samples, size, size, 3), generator=random, dtype=torch.uint8)
    aligned = torch.rand(samples, generator=random) > 0.05
    ids, names = [str(i) for i in range(samples)], [str(k) for k in range(10)]
    return Dataset(pixels.permute(0, 3, 1, 2), labels, ids, names, bias=labels, aligned=aligned, name="noise")


def bare(model: str, size: int, batch: int, device: torch.device, windows: int = 5, steps: int = 20) -> float:
    """Images a second: the median of some windows, after one to warm up."""
    network = model_factory(model, 10, size)().to(device)
    network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    images = torch.rand(batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
    labels = torch.arange(batch, device=device) % 10
    speeds = []
    for _ in range(windows + 1):
        started = time.perf_counter()
        for _ in range(steps):
            with torch.autocast(device.type, torch.bfloat16, enabled=uses_bf16(device, "auto")):
                loss = torch.nn.functional.cross_entropy(network(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        speeds.append(steps * batch / (time.perf_counter() - started))
    return statistics.median(speeds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    device = pick_device(given.device)
    data = noise(given.samples, given.size)
    assert data.aligned is not None
    partition = Partition.of(data, ~data.aligned, (~data.aligned).float(), "oracle")
    alone = bare(given.model, given.size, given.batch_size, device)
    print(json.dumps({"what": "bare", "epoch_seconds": given.samples / alone, **vars(given)}), flush=True)
    for name in ("erm", "ph", "mixup", "smix", "lmix"):
        method = {**METHODS, **IDENTIFIERS}[name]
        options = {key: getattr(given, key) for key in ("epochs", "device", "model", "batch_size", "compile")}
        job = decide(name, method, data, options)
        _, engine = fit(job, data, partition if "partition" in method.needs else None)
        ends = [0.0, *(row["seconds"] for row in engine.rows)]
        seconds = [after - before for before, after in pairwise(ends)]
        ratio = statistics.median(seconds[1:] or seconds) / (given.samples / alone)
        print(json.dumps({"what": name, "epoch_seconds": seconds, "ratio": ratio, **vars(given)}), flush=True)


if __name__ == "__main__":
    main()

"""python -m benchmarks [--device cuda]: speed and growth, as benchmarks/out/cuda.json and a Markdown table, cuda.md.

Ratios are against the bare loop of the same run, and mean nothing between runs. On a CPU it measures a ResNet-18 whose
stem is the photos', which makes 32 px feasible; on a GPU the one with the small stem.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import decode, growth, loops, table, watch
from benchmarks.setup import Setup, noise
from unskew.engine.inference import pick_device
from unskew.files import write_text

OUT = Path(__file__).parent / "out"


def setup_from(given: argparse.Namespace) -> Setup:
    """What is not given follows from the device."""
    device = pick_device(given.device).type
    on_gpu = {"model": "resnet18", "stem": "small", "samples": 50_000, "batch_size": 256}
    on_cpu = {"model": "resnet18", "stem": "photo", "samples": 512, "batch_size": 64}
    chosen = {key: value for key, value in vars(given).items() if value is not None}
    default: dict[str, Any] = on_gpu if device == "cuda" else on_cpu
    if not str(chosen.get("model", "resnet")).startswith("resnet"):
        default = {**default, "stem": None}
    return Setup(**{**default, **chosen, "device": device})


def measure(setup: Setup) -> dict[str, Any]:
    data = noise(setup.samples, setup.size)
    return {
        "what": "benchmarks",
        "setup": setup.describe(),
        **loops.measure(setup, data),
        **watch.measure(setup, data),
        "memory_gb": growth.memory(setup, data.subset(slice(setup.samples // 4))),
        "against_samples": growth.against_samples(setup.device),
        "decode": decode.measure(),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model")
    parser.add_argument("--stem", choices=("small", "photo"))
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument("--compile", action="store_true")
    setup = setup_from(parser.parse_args(arguments))
    found = measure(setup)
    OUT.mkdir(exist_ok=True)
    write_text(OUT / f"{setup.where.type}.json", json.dumps(found, ensure_ascii=False) + "\n")
    write_text(OUT / f"{setup.where.type}.md", table.markdown(found))
    print(table.markdown(found))


if __name__ == "__main__":
    main()

"""python -m benchmarks.peers --lff CLONE --spuco CLONE [--device cuda]: LfF by us and by others, as a line of JSON.

Give the path of your own clone of alinlab/LfF, of BigML-CS-UCLA/SpuCo, or of both. All train the same network from
scratch on the same noise, in batches of one size, crop and flip; a window each in turn, in this process. On a CPU
their loaders run without workers, and processor time is compared.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.loops import WARM_UP, WINDOWS
from benchmarks.peers import lff, spuco
from benchmarks.peers.outside import commit
from benchmarks.setup import Setup, noise
from benchmarks.turns import Turns, clock_for
from unskew.engine.allocator import keeping_memory
from unskew.errors import UnskewError
from unskew.models import model_factory

OURS = "unskew"


def measure(setup: Setup, clones: dict[str, Path]) -> dict[str, Any]:
    epochs = WARM_UP + WINDOWS
    data = noise(setup.samples, setup.size)
    make_model = partial(model_factory(setup.model, data.num_classes, setup.size, stem=setup.stem))
    turns = Turns(clock_for(setup.where))
    absent: list[str] = []
    with tempfile.TemporaryDirectory() as name, keeping_memory(setup.where):
        turns.add(OURS, lambda turn: setup.train(setup.job("lff", data, epochs), data, turn))
        if "lff" in clones:
            lff.prepare(clones["lff"], Path(name), data)
            with contextlib.chdir(clones["lff"]):  # it opens files of its own by relative paths
                turns.add("lff", lff.run(Path(name), setup, make_model, epochs))
        if "spuco" in clones:
            absent = spuco.prepare(clones["spuco"])
            turns.add("spuco", spuco.run(setup, data, make_model, epochs))
        seconds = turns.seconds(epochs)
    steady = {name: each[WARM_UP:] for name, each in seconds.items()}
    images = setup.steps * setup.batch_size
    return {
        "what": "peers",
        "method": "lff",
        "setup": setup.describe(),
        "loader_workers": 0 if setup.where.type == "cpu" else "as released",
        "commits": {name: commit(path) for name, path in clones.items()},
        "stand_ins": absent,
        "images_per_second": {name: images / median(each) for name, each in steady.items()},
        "times_ours": {
            name: median(theirs / ours for theirs, ours in zip(each, steady[OURS]))
            for name, each in steady.items() if name != OURS
        },
        "window_seconds": steady,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lff", type=Path)
    parser.add_argument("--spuco", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--stem", choices=("small", "photo"))
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=64)
    given = parser.parse_args()
    clones = {name: path for name in ("lff", "spuco") if (path := getattr(given, name)) is not None}
    samples = given.samples // given.batch_size * given.batch_size  # theirs would train on a last, smaller batch
    setup = Setup(given.device, given.model, given.stem, 32, samples, given.batch_size)
    try:
        print(json.dumps(measure(setup, clones)))
    except UnskewError as error:
        sys.exit(f"benchmarks.peers: {error}")


if __name__ == "__main__":
    main()

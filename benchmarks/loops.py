"""What is timed against what: the bare loop, the methods, and the parts that a method's epoch is made of."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, ClassVar
from unittest.mock import patch

import torch
from torch.nn.functional import cross_entropy

from benchmarks.setup import Setup, moved_to_disk
from benchmarks.turns import Turn, Turns, clock_for
from unskew.data.dataset import Dataset
from unskew.engine import store
from unskew.engine.allocator import keeping_memory
from unskew.engine.inference import logits_of, uses_bf16
from unskew.engine.method import Batch, Loss, Method
from unskew.engine.processes import fast_kernels
from unskew.models import model_factory

METHODS_TIMED = ("erm", "ph", "smix", "lmix", "lff")
WARM_UP = 1  # windows: compiling and recording fall into them
WINDOWS = 5
STREAMED, PIPELINE, EVALUATION = "erm, streamed", "input pipeline", "evaluation"


class NoModel(Method):
    """All of an epoch but the network: drawing, gathering, augmenting."""

    recordable: ClassVar[bool] = True

    def train_step(self, engine: Any, batch: Batch) -> Loss:
        return batch["all"].x.mean() * 0, {}


def bare(setup: Setup, epochs: int) -> Callable[[Turn], None]:
    """Forward, backward and optimizer on one batch that never changes."""

    def run(turn: Turn) -> None:
        device, size = setup.where, setup.size
        network = model_factory(setup.model, 10, size, stem=setup.stem)().to(device)
        network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        if setup.compile:
            network.compile()
        optimizer = torch.optim.Adam(network.parameters(), fused=True)
        images = torch.rand(setup.batch_size, 3, size, size, device=device).to(memory_format=torch.channels_last)
        labels = torch.arange(setup.batch_size, device=device) % 10
        with fast_kernels():
            turn.start()
            for _ in range(epochs):
                for _ in range(setup.steps):
                    with torch.autocast(device.type, torch.bfloat16, enabled=uses_bf16(device, setup.precision)):
                        loss = cross_entropy(network(images), labels)
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)
                turn.epoch()

    return run


def evaluation(setup: Setup, data: Dataset, epochs: int) -> Callable[[Turn], None]:
    def run(turn: Turn) -> None:
        network = model_factory(setup.model, 10, setup.size, stem=setup.stem)().to(setup.where)
        network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        pixels = data.pixels.to(setup.where)
        turn.start()
        for _ in range(epochs):
            for _, logits in logits_of(network, pixels, setup.where, range(len(data)), setup.precision, data.size):
                logits.argmax(1)
            turn.epoch()

    return run


def measure(setup: Setup, data: Dataset) -> dict[str, Any]:
    """Images a second of everything, and the methods' times over the bare loop's, each against its own round's."""
    epochs = WARM_UP + WINDOWS
    turns = Turns(clock_for(setup.where))
    with keeping_memory(setup.where):  # the bare loop has what the engine would give it
        seconds = _rounds(turns, setup, data, epochs)
    steady = {name: each[WARM_UP:] for name, each in seconds.items()}
    trained = setup.steps * setup.batch_size
    images = {name: len(data) if name == EVALUATION else trained for name in steady}
    over = {name: median(mine / bare for mine, bare in zip(each, steady["bare"])) for name, each in steady.items()}
    return {
        "images_per_second": {name: images[name] / median(each) for name, each in steady.items()},
        "ratios": {name: over[name] for name in (*METHODS_TIMED, STREAMED)},
        "first_window_seconds": {name: each[0] for name, each in seconds.items()},
        "window_seconds": steady,
    }


def _rounds(turns: Turns, setup: Setup, data: Dataset, epochs: int) -> dict[str, list[float]]:
    turns.add("bare", bare(setup, epochs))
    for name in METHODS_TIMED:
        turns.add(name, lambda turn, name=name: setup.train(setup.job(name, data, epochs), data, turn))
    turns.add(EVALUATION, evaluation(setup, data, epochs))
    turns.add(PIPELINE, lambda turn: setup.train(setup.job("nothing", data, epochs, NoModel), data, turn))
    with tempfile.TemporaryDirectory() as folder, patch.object(store, "_fits", lambda *_: False):
        on_disk = moved_to_disk(data, Path(folder))
        turns.add(STREAMED, lambda turn: setup.train(setup.job("erm", on_disk, epochs), on_disk, turn))
        return turns.seconds(epochs)

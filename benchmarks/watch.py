"""Looking into one epoch that is warmed up: what waits for the host, and which operators take the time."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.autograd import DeviceType  # pyright: ignore[reportPrivateImportUsage]
from torch.profiler import ProfilerActivity, profile

from benchmarks.loops import METHODS_TIMED
from benchmarks.setup import Setup
from unskew.data.dataset import Dataset
from unskew.testing import HostSyncs

LARGEST = 12  # operators listed


class SecondEpoch:
    """A listener that keeps a context open during the second epoch, and calls back after each of its steps."""

    def __init__(self, context: AbstractContextManager, after_step: Callable[[], None] = lambda: None) -> None:
        self.context, self.after_step = context, after_step
        self.epochs = 0

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None: ...

    def step(self) -> None:
        if self.epochs == 1:
            self.after_step()

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None:
        self.epochs += 1
        if self.epochs == 1:
            self.context.__enter__()
        elif self.epochs == 2:
            self.context.__exit__(None, None, None)

    def end(self) -> None: ...


@contextmanager
def counting(device: torch.device) -> Iterator[Callable[[], int]]:
    """How often the host has waited so far: as CUDA says itself, elsewhere by the operators that would."""
    if device.type != "cuda":
        with HostSyncs() as seen:
            yield lambda: seen.count
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lambda: sum("synchronizing" in str(warning.message) for warning in caught)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def host_syncs(setup: Setup, name: str, data: Dataset) -> float:
    """In the mean step of an epoch, from its first to its last."""
    counts: list[int] = []
    count: list[Callable[[], int]] = []

    @contextmanager
    def during() -> Iterator[None]:
        with counting(setup.where) as so_far:
            count.append(so_far)
            yield

    setup.train(setup.job(name, data, 2), data, SecondEpoch(during(), lambda: counts.append(count[0]())))
    return (counts[-1] - counts[0]) / (len(counts) - 1)


def operator_shares(setup: Setup, name: str, data: Dataset) -> dict[str, float]:
    """Of an epoch's time on the device, the largest first: kernels on a GPU, operators on a CPU."""
    cuda = setup.where.type == "cuda"
    seen = profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU])
    setup.train(setup.job(name, data, 2), data, SecondEpoch(seen))
    times: dict[str, float] = {}
    for event in seen.key_averages():
        if not cuda:
            times[event.key] = event.self_cpu_time_total
        elif event.device_type == DeviceType.CUDA:
            times[event.key] = event.self_device_time_total
    whole = sum(times.values())
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return {key: spent / whole for key, spent in ordered[:LARGEST]}


def measure(setup: Setup, data: Dataset) -> dict[str, Any]:
    return {
        "host_syncs_per_step": {name: host_syncs(setup, name, data) for name in METHODS_TIMED},
        "operator_shares": {name: operator_shares(setup, name, data) for name in ("erm", "lmix")},
    }

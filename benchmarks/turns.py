"""Variants that run in one process, a window at a time in turn: what else the machine is doing then hits all alike."""

import time
from collections.abc import Callable, Mapping
from threading import Semaphore, Thread
from typing import Any

import torch

from unskew.engine.allocator import glibc

Clock = Callable[[], float]


def clock_for(device: torch.device) -> Clock:
    """Processor time, which a shared machine does not stretch; on a GPU, time on the wall once all of it is done."""
    if device.type != "cuda":
        return time.process_time

    def synchronised() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return synchronised


class Turn:
    """One variant's place in the round: a listener that lets an epoch go on only when it is its turn."""

    def __init__(self, clock: Clock) -> None:
        self.seconds: list[float] = []
        self._clock, self._since = clock, 0.0
        self._go, self._done = Semaphore(0), Semaphore(0)
        self.failed: BaseException | None = None

    # For the variant

    def start(self, stage: str = "", epochs: int = 0, steps: int = 0, done: int = 0) -> None:
        self._wait()

    def step(self) -> None: ...

    def epoch(self, stage: str = "", row: Mapping[str, Any] | None = None) -> None:
        self.seconds.append(self._clock() - self._since)
        self._wait()

    def end(self) -> None: ...

    def _wait(self) -> None:
        self._done.release()
        self._go.acquire()
        self._since = self._clock()

    # For the round

    def begin(self, run: Callable[["Turn"], Any]) -> None:
        """Set the variant up, in a thread of its own, as far as its first window."""

        def work() -> None:
            try:
                run(self)
            except BaseException as error:
                self.failed = error
            finally:
                self._done.release()

        self._thread = Thread(target=work, daemon=True)
        self._thread.start()
        self._until_done()

    def next(self) -> None:
        """One window; after the last, whatever the variant still does."""
        self._go.release()
        self._until_done()

    def _until_done(self) -> None:
        self._done.acquire()
        if self.failed is not None:
            raise self.failed


M_ARENA_MAX = -8


class Turns:
    def __init__(self, clock: Clock) -> None:
        # glibc gives every thread a heap of its own, slower with large blocks than the first one, where training is.
        if (library := glibc()) is not None:
            library.mallopt(M_ARENA_MAX, 1)
        self.clock = clock
        self.turns: dict[str, Turn] = {}

    def add(self, name: str, run: Callable[[Turn], Any]) -> None:
        """``run`` calls ``start``, then ``epoch`` after every window, as an engine does that it is a listener of."""
        self.turns[name] = Turn(self.clock)
        self.turns[name].begin(run)

    def seconds(self, windows: int) -> dict[str, list[float]]:
        for _ in range(windows):
            for turn in self.turns.values():
                turn.next()
        for turn in self.turns.values():
            turn.next()
        return {name: turn.seconds for name, turn in self.turns.items()}

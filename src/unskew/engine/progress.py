"""What a person sees while it trains: a bar and a growing table on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import nn

UNSEEN = ("seconds", "memory_gb")  # on the screen; metrics.csv has them


class Listener(Protocol):
    """Hears of each epoch: the screen, TensorBoard, Weights & Biases."""

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None: ...
    def step(self) -> None: ...
    def epoch(self, stage: str, row: Mapping[str, Any]) -> None: ...
    def end(self) -> None: ...


class Watcher(Protocol):
    """Something that looks at the model after every epoch, and lasts over a restart."""

    def look(self, epoch: int, model: nn.Module, device: str) -> dict[str, Any]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Screen:
    """Rows of metrics under a header, with a bar (epoch, images/s, time left) where there is a terminal."""

    def __init__(self, console=None) -> None:
        from rich.console import Console

        self.console = console or Console(soft_wrap=True, highlight=False)
        self._bar = self._task = None

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._header: list[str] = []
        going_on = f", going on after epoch {done}" if done else ""
        self.console.print(f"{stage}: {epochs} epochs of {steps} steps{going_on}")
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=self.console, transient=True)
            self._task = self._bar.add_task(stage, total=epochs * steps, completed=done * steps)
            self._bar.start()

    def step(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None:
        names = [name for name in row if name not in UNSEEN]
        if names != self._header:
            self._header = names
            self.console.print("  ".join(f"{name:>{_width(name)}}" for name in names))
        self.console.print("  ".join(f"{_shown(row[name]):>{_width(name)}}" for name in names))
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{stage} {row.get('images_per_second', 0):,.0f} images/s")

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class TensorBoard:
    def __init__(self, folder) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            from unskew.errors import UnskewError

            raise UnskewError("--log tensorboard needs a package: pip install 'unskew[log]'.") from error
        self._writer = SummaryWriter(str(folder))

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None: ...
    def step(self) -> None: ...

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            if isinstance(value, int | float) and name != "epoch":
                self._writer.add_scalar(f"{stage}/{name}", value, row["epoch"])
        self._writer.flush()

    def end(self) -> None:
        self._writer.flush()


class WeightsAndBiases:
    def __init__(self, folder, config: Mapping[str, Any]) -> None:
        try:
            import wandb
        except ImportError as error:
            from unskew.errors import UnskewError

            raise UnskewError("--log wandb needs a package: pip install 'unskew[log]'.") from error
        self._run = wandb.init(project="unskew", dir=str(folder), config=dict(config))

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None: ...
    def step(self) -> None: ...

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None:
        self._run.log({f"{stage}/{name}": value for name, value in row.items()})

    def end(self) -> None: ...


def listeners_for(progress: bool | None) -> Sequence[Listener]:
    """``None``: show progress where somebody is looking."""
    wanted = sys.stderr.isatty() if progress is None else progress
    return (Screen(),) if wanted else ()


class Clock:
    """Seconds of training, across interruptions."""

    def __init__(self) -> None:
        self.before, self._start = 0.0, time.perf_counter()

    def seconds(self) -> float:
        return self.before + time.perf_counter() - self._start


def _width(name: str) -> int:
    return max(len(name), 7)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"
    return str(value)

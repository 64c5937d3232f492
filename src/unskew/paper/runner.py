"""Many runs: what results already hold is skipped, stage 1 is shared, several go side by side, and one that dies is
tried once more without holding up the others."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unskew.errors import UnskewError, nearest
from unskew.paper.launchers import EXECUTORS, Ended, Launcher, Work
from unskew.paper.spec import Spec
from unskew.paper.store import FILE, add_line, read_lines
from unskew.paper.worker import folder_of

TRIES = 2


@dataclass
class Outcome:
    done: list[Spec] = field(default_factory=list)
    failed: list[tuple[Spec, str]] = field(default_factory=list)
    skipped: int = 0
    left: list[Spec] = field(default_factory=list)  # not begun, for want of time


def uses_cuda(device: str) -> bool:
    import torch

    return device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())


def default_workers(device: str) -> int:
    """Six on a GPU, which one alone does not fill; one for each core without."""
    return 6 if uses_cuda(device) else max(os.cpu_count() or 1, 1)


def run_all(
    specs: Sequence[Spec],
    results: Path,
    *,
    workers: int,
    device: str,
    data_dir: Path | None,
    say: Callable[[str], None],
    compile: bool = False,
    executor: str = "local",
    weights: Path | None = None,
    minutes: float | None = None,
) -> Outcome:
    """Run what is missing; every result is a line in ``results/paper.jsonl`` the moment it is there.

    With ``minutes``, none is begun that would not end by then, were it as long as the longest so far.
    """
    if executor not in EXECUTORS:
        raise UnskewError(f"there is no executor {executor!r}; {nearest(executor, EXECUTORS)}")
    lines, broken = read_lines(results / FILE)
    for note in broken:
        say(f"note: {note}")
    there = {line.get("key") for line in lines}
    unique = {spec.key: spec for spec in specs}
    waiting = [spec for key, spec in unique.items() if key not in there]
    outcome = Outcome(skipped=len(unique) - len(waiting))
    say(f"{len(unique)} runs: {outcome.skipped} already there, {len(waiting)} to do, {workers} at a time")
    if not waiting:
        return outcome
    data_dir = data_dir and data_dir.absolute()
    settings: dict[str, Any] = {"device": device, "compile": compile}
    settings |= {"weights": str(weights.absolute())} if weights is not None else {}
    work = Work(results.absolute(), settings, data_dir, workers)
    launcher = EXECUTORS[executor](work, uses_cuda(device))
    try:
        _Queue(waiting, work, launcher, outcome, say, math.inf if minutes is None else 60 * minutes).run()
    finally:
        launcher.close()
    return outcome


@dataclass
class _Queue:
    waiting: list[Spec]
    work: Work
    launcher: Launcher
    outcome: Outcome
    say: Callable[[str], None]
    seconds: float = math.inf
    running: list[tuple[Spec, Any]] = field(default_factory=list)
    tries: dict[str, int] = field(default_factory=dict)
    began: dict[str, float] = field(default_factory=dict)
    longest: float = 0.0

    def run(self) -> None:
        total, started = len(self.waiting), time.monotonic()
        while self.waiting or self.running:
            if time.monotonic() - started + self._longest() > self.seconds:
                self.outcome.left += self.waiting
                self.waiting.clear()
            self._launch()
            time.sleep(0.05)
            for job in list(self.running):
                ended = self.launcher.ended(job[1])
                if ended is not None:
                    self.running.remove(job)
                    self.longest = max(self.longest, time.monotonic() - self.began[job[0].key])
                    self._ended(job[0], ended)
                    self.say(self._progress(total, started))

    def _longest(self) -> float:
        """Seconds of the longest run, ended or under way."""
        now = time.monotonic()
        return max([self.longest, *(now - self.began[spec.key] for spec, _ in self.running)])

    def _launch(self) -> None:
        """Start what can start: one run at a time makes a partition, and those that share it wait for it."""
        making = {spec.stage1_key for spec, _ in self.running}
        for spec in list(self.waiting):
            if len(self.running) >= self.work.workers:
                return
            needs = spec.stage1_key is not None and not (folder_of(spec, self.work.results) / "partition.csv").exists()
            if needs and spec.stage1_key in making:
                continue
            self.waiting.remove(spec)
            if needs:
                making.add(spec.stage1_key)
            self.tries[spec.key] = self.tries.get(spec.key, 0) + 1
            self.began[spec.key] = time.monotonic()
            self.running.append((spec, self.launcher.start(spec)))

    def _ended(self, spec: Spec, ended: Ended) -> None:
        if ended.ok:
            if ended.line is not None:
                add_line(self.work.results / FILE, ended.line)
            self.outcome.done.append(spec)
        elif ended.again and self.tries[spec.key] < TRIES:
            self.say(f"{spec} died ({ended.why}); it is tried once more")
            self.waiting.append(spec)
        else:
            self.outcome.failed.append((spec, ended.why))

    def _progress(self, total: int, started: float) -> str:
        done = len(self.outcome.done) + len(self.outcome.failed)
        if not done:
            return f"0 of {total}"
        left = (time.monotonic() - started) / done * (total - done)
        last = self.outcome.done[-1] if self.outcome.done else self.outcome.failed[-1][0]
        return f"{done} of {total}, about {left / 60:.0f} min left: {last}"

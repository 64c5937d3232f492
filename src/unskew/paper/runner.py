"""Many runs: what results already hold is skipped, stage 1 is shared, several go side by side, and one that dies is
tried once more without holding up the others."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unskew.paper.sharing import shared_gpu
from unskew.paper.spec import Spec
from unskew.paper.store import FILE, read_lines

TRIES = 2


@dataclass
class Outcome:
    done: list[Spec] = field(default_factory=list)
    failed: list[tuple[Spec, str]] = field(default_factory=list)
    skipped: int = 0


@dataclass
class _Job:
    spec: Spec
    process: subprocess.Popen
    log: Path


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
    weights: Path | None = None,
) -> Outcome:
    """Run what is missing; every result is a line in ``results/paper.jsonl`` the moment it is there."""
    lines, broken = read_lines(results / FILE)
    for note in broken:
        say(f"note: {note}")
    there = {line.get("key") for line in lines}
    unique = {spec.key: spec for spec in specs}
    waiting = [spec for key, spec in unique.items() if key not in there]
    outcome = Outcome(skipped=len(unique) - len(waiting))
    say(f"{len(unique)} runs: {outcome.skipped} already there, {len(waiting)} to do, {workers} at a time")
    tries: dict[str, int] = {}
    running: list[_Job] = []
    started = time.monotonic()
    command = _Command(results, _settings(device, compile, weights), data_dir)
    sharing = shared_gpu() if workers > 1 and uses_cuda(device) else nullcontext({})
    with tempfile.TemporaryDirectory() as folder, sharing as environment:
        try:
            while waiting or running:
                _launch(waiting, running, command, workers, Path(folder), environment, tries)
                time.sleep(0.05)
                for job in [job for job in running if job.process.poll() is not None]:
                    running.remove(job)
                    _ended(job, waiting, outcome, tries, say)
                    say(_progress(outcome, len(unique) - outcome.skipped, started))
        finally:
            for job in running:
                job.process.kill()
    return outcome


def _settings(device: str, compile: bool, weights: Path | None) -> dict[str, Any]:
    return {"device": device, "compile": compile} | ({"weights": str(weights)} if weights is not None else {})


@dataclass(frozen=True)
class _Command:
    results: Path
    settings: dict[str, Any]
    data_dir: Path | None

    def of(self, spec_file: Path) -> list[str]:
        command = [sys.executable, "-m", "unskew.paper.worker", str(spec_file), str(self.results)]
        command += [json.dumps(self.settings)]
        return command + ([str(self.data_dir)] if self.data_dir is not None else [])


def _launch(waiting, running, command: _Command, workers: int, folder: Path, environment, tries) -> None:
    """Start what can start: one run at a time makes a partition, and those that share it wait for it."""
    from unskew.paper.worker import folder_of

    making = {job.spec.stage1_key for job in running if job.spec.stage1_key is not None}
    for spec in list(waiting):
        if len(running) >= workers:
            return
        needs = spec.stage1_key is not None and not (folder_of(spec, command.results) / "partition.csv").exists()
        if needs and spec.stage1_key in making:
            continue
        waiting.remove(spec)
        if needs:
            making.add(spec.stage1_key)
        tries[spec.key] = tries.get(spec.key, 0) + 1
        file, log = folder / f"{spec.key}.json", folder / f"{spec.key}.log"
        file.write_text(json.dumps(spec.to_dict(), default=dict))
        more = {"OMP_NUM_THREADS": "1", **os.environ, **environment}  # more threads would only get in each other's way
        with open(log, "w") as output:
            process = subprocess.Popen(command.of(file), stdout=output, stderr=subprocess.STDOUT, env=more)
        running.append(_Job(spec, process, log))


def _ended(job: _Job, waiting: list[Spec], outcome: Outcome, tries: dict[str, int], say) -> None:
    status = job.process.returncode
    if status == 0:
        outcome.done.append(job.spec)
        return
    why = (job.log.read_text().strip().splitlines() or [f"ended with {status}"])[-1]
    if status != 2 and tries[job.spec.key] < TRIES:  # 2 is bad input, which a second try would not mend
        say(f"{job.spec} died ({why}); it is tried once more")
        waiting.append(job.spec)
        return
    outcome.failed.append((job.spec, why))


def _progress(outcome: Outcome, total: int, started: float) -> str:
    done = len(outcome.done) + len(outcome.failed)
    if not done:
        return f"0 of {total}"
    left = (time.monotonic() - started) / done * (total - done)
    last = outcome.done[-1] if outcome.done else outcome.failed[-1][0]
    return f"{done} of {total}, about {left / 60:.0f} min left: {last}"

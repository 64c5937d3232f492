"""Where runs happen: in processes on this machine, on a Ray cluster, or as Slurm jobs. No scheduler of our own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from unskew.errors import UnskewError
from unskew.paper.sharing import shared_gpu
from unskew.paper.spec import Spec
from unskew.paper.worker import run_spec

BAD_INPUT = 2  # exit status: a second try would not mend it


@dataclass(frozen=True)
class Ended:
    """How a run ended: with a line of results that has yet to be kept, with one that is kept already, or not well."""

    ok: bool
    why: str = ""
    again: bool = True
    line: dict[str, Any] | None = None


@dataclass(frozen=True)
class Work:
    """What all runs have in common."""

    results: Path
    settings: Mapping[str, Any]  # device, compile
    data_dir: Path | None
    workers: int


class Launcher(Protocol):
    def start(self, spec: Spec) -> Any: ...
    def ended(self, started: Any) -> Ended | None: ...
    def close(self) -> None: ...


class Local:
    """One process a run; on a GPU they share it."""

    def __init__(self, work: Work, gpu: bool) -> None:
        self.work, self.stack = work, ExitStack()
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        sharing = self.stack.enter_context(shared_gpu()) if gpu and work.workers > 1 else {}
        self.environment = {"OMP_NUM_THREADS": "1", **os.environ, **sharing}  # more would get in each other's way
        self.running: set[subprocess.Popen] = set()

    def start(self, spec: Spec) -> tuple[subprocess.Popen, Path]:
        file, log = self.folder / f"{spec.key}.json", self.folder / f"{spec.key}.log"
        file.write_text(json.dumps(spec.to_dict(), default=dict))
        command = [sys.executable, "-m", "unskew.paper.worker", str(file), str(self.work.results)]
        command += [json.dumps(self.work.settings)]
        command += [str(self.work.data_dir)] if self.work.data_dir is not None else []
        with open(log, "w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=self.environment)
        self.running.add(process)
        return process, log

    def ended(self, started: tuple[subprocess.Popen, Path]) -> Ended | None:
        process, log = started
        status = process.poll()
        if status is None:
            return None
        self.running.discard(process)
        last = (log.read_text().strip().splitlines() or [f"ended with {status}"])[-1]
        return Ended(status == 0, last, again=status != BAD_INPUT)

    def close(self) -> None:
        for process in self.running:
            process.kill()
        self.stack.close()


class OnRay:
    """One task a run, on the cluster that ``RAY_ADDRESS`` names, or on one that Ray starts here."""

    def __init__(self, work: Work, gpu: bool) -> None:
        try:
            import ray
        except ImportError:
            raise UnskewError("--executor ray needs Ray: pip install 'unskew[cluster]'") from None
        self.ray, self.work = ray, work
        self.ours = not ray.is_initialized()
        if self.ours:
            cores = None if os.environ.get("RAY_ADDRESS") else work.workers
            ray.init(num_cpus=cores, log_to_driver=False, include_dashboard=False, configure_logging=False)
        gpus = max(ray.cluster_resources().get("GPU", 0), 1) / work.workers if gpu else 0
        # A run that dies is tried again by the runner, which counts; Ray need not.
        self.task = ray.remote(num_cpus=1, num_gpus=min(gpus, 1), max_retries=0)(run_spec)

    def start(self, spec: Spec) -> Any:
        return self.task.remote(spec, self.work.results, dict(self.work.settings), self.work.data_dir)

    def ended(self, started: Any) -> Ended | None:
        done, _ = self.ray.wait([started], timeout=0)
        if not done:
            return None
        try:
            return Ended(True, line=self.ray.get(started))
        except self.ray.exceptions.RayTaskError as error:
            cause = error.cause
            return Ended(False, str(cause), again=not isinstance(cause, UnskewError))
        except self.ray.exceptions.RayError as error:
            return Ended(False, f"{type(error).__name__}: its worker or node was lost")

    def close(self) -> None:
        if self.ours:
            self.ray.shutdown()


class OnSlurm:
    """One job a run, through submitit; what Slurm asks for (partition, account) comes from ``SBATCH_…`` variables."""

    cluster = "slurm"

    def __init__(self, work: Work, gpu: bool) -> None:
        try:
            import submitit
        except ImportError:
            raise UnskewError("--executor slurm needs submitit: pip install 'unskew[cluster]'") from None
        self.work = work
        try:
            self.executor = submitit.AutoExecutor(folder=work.results / "jobs", cluster=self.cluster)
        except RuntimeError as error:
            raise UnskewError(f"Slurm was not found here ({error}): use --executor local.") from None
        self.executor.update_parameters(timeout_min=24 * 60, cpus_per_task=2, gpus_per_node=int(gpu), name="unskew")
        self.running: set[Any] = set()

    def start(self, spec: Spec) -> Any:
        settings = dict(self.work.settings)
        job = self.executor.submit(run_spec, spec, self.work.results, settings, self.work.data_dir)
        self.running.add(job)
        return job

    def ended(self, started: Any) -> Ended | None:
        if not started.done():
            return None
        self.running.discard(started)
        error = started.exception()
        if error is None:
            return Ended(True, line=started.result())
        told = [line for line in str(error).splitlines() if "Error: " in line] or ["its job was lost"]
        return Ended(False, told[-1].strip(), again="UnskewError" not in told[-1])

    def close(self) -> None:
        for job in self.running:
            job.cancel()


EXECUTORS: Mapping[str, type[Local] | type[OnRay] | type[OnSlurm]] = {"local": Local, "ray": OnRay, "slurm": OnSlurm}

"""The same runs on Ray and through submitit: results arrive, and a worker lost in the middle costs only its own run."""

import subprocess
import threading
import time
from pathlib import Path

import pytest

from unskew.errors import UnskewError
from unskew.paper import TABLES
from unskew.paper.launchers import OnSlurm
from unskew.paper.runner import run_all
from unskew.paper.spec import Spec
from unskew.paper.store import FILE, read_lines


def tiny(rows: list[str]) -> list[Spec]:
    table = TABLES["main"]
    chosen = [row for row in table.rows if row.name in rows]
    return [spec for _, _, spec in table.specs([0.95], chosen, 1, "tiny")]


def run(specs: list[Spec], results: Path, executor: str, said: list[str]):
    how = {"workers": 2, "device": "cpu", "data_dir": None, "say": said.append, "executor": executor}
    return run_all(specs, results, **how)


def kill_one_ray_worker(killed: list[int]) -> None:
    deadline = time.monotonic() + 120
    while not killed and time.monotonic() < deadline:
        found = subprocess.run(["pgrep", "-f", "ray::run_spec"], capture_output=True, text=True).stdout.split()
        if found:
            time.sleep(1)  # into the run
            subprocess.run(["kill", "-9", found[0]], check=False)
            killed.append(int(found[0]))
        time.sleep(0.05)


def test_ray_with_a_worker_killed(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    said: list[str] = []
    killed: list[int] = []
    killer = threading.Thread(target=kill_one_ray_worker, args=(killed,))
    killer.start()
    bad = Spec("digits:0.95", "erm", 0, {"lr": -1.0}, None, "tiny")
    outcome = run([*tiny(["erm", "smix", "lmix"]), bad], tmp_path, "ray", said)
    killer.join()
    assert killed
    assert any("tried once more" in text for text in said)
    assert len(outcome.done) == 3
    assert "lr must be above 0" in outcome.failed[0][1]
    lines, broken = read_lines(tmp_path / FILE)
    assert sorted(line["method"] for line in lines) == ["erm", "lmix", "smix"]
    assert broken == []


def test_jobs_through_submitit(tmp_path, monkeypatch):
    """submitit's own executor for this machine stands in for Slurm's."""
    pytest.importorskip("submitit")
    monkeypatch.setattr(OnSlurm, "cluster", "local")
    bad = Spec("digits:0.95", "erm", 0, {"lr": -1.0}, None, "tiny")
    said: list[str] = []
    outcome = run([*tiny(["erm", "smix"]), bad], tmp_path, "slurm", said)
    assert len(outcome.done) == 2
    assert "lr must be above 0" in outcome.failed[0][1]
    assert not any("once more" in text for text in said), "bad input is not tried again"
    assert {line["method"] for line in read_lines(tmp_path / FILE)[0]} == {"erm", "smix"}


def kill_one_job(folder: Path, killed: list[int]) -> None:
    """As a node that goes down would: submitit's process and the run in it, without a word."""
    deadline = time.monotonic() + 120
    while not killed and time.monotonic() < deadline:
        found = subprocess.run(["pgrep", "-f", f"submitit.core._submit {folder}"], capture_output=True, text=True)
        if pids := found.stdout.split():
            time.sleep(1)  # into the run
            subprocess.run(["kill", "-9", pids[0]], check=False)
            killed.append(int(pids[0]))
        time.sleep(0.05)


def test_a_job_that_is_lost_costs_its_own_run_only(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr(OnSlurm, "cluster", "local")
    said: list[str] = []
    killed: list[int] = []
    killer = threading.Thread(target=kill_one_job, args=(tmp_path, killed))
    killer.start()
    outcome = run(tiny(["erm", "smix"]), tmp_path, "slurm", said)
    killer.join()
    assert killed
    assert any("tried once more" in text for text in said)
    assert len(outcome.done) == 2
    assert sorted(line["method"] for line in read_lines(tmp_path / FILE)[0]) == ["erm", "smix"]


def test_without_slurm_it_says_so(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnskewError, match="Slurm was not found here .*: use --executor local"):
        run(tiny(["erm"]), tmp_path, "slurm", [])


def test_an_unknown_executor(tmp_path):
    with pytest.raises(UnskewError, match="did you mean slurm"):
        run(tiny(["erm"]), tmp_path, "slrm", [])

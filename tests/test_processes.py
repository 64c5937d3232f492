"""Real processes: killed and gone on with, interrupted, and two that train together."""

import csv
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

OPTIONS = ["digits", "--method", "lmix", "--epochs", "4", "--identify.epochs", "3", "--device", "cpu", "--seed", "3"]


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "unskew", "train", *OPTIONS, "--out", str(out), *more]


def run(out: Path, environment: dict, *more: str) -> subprocess.CompletedProcess:
    return subprocess.run(command(out, *more), env=environment, capture_output=True, text=True, timeout=300)


def epochs_done(out: Path, stage: str) -> int:
    path = out / "metrics.csv"
    if not path.exists():
        return 0
    with open(path, newline="") as file:
        return sum(row["stage"] == stage for row in csv.DictReader(file))


def stop_at(out: Path, environment: dict, stage: str, epoch: int, how: signal.Signals, *more: str):
    """Send ``how`` once so many epochs of the stage are written."""
    process = subprocess.Popen(command(out, *more), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 200
    while epochs_done(out, stage) < epoch:
        assert process.poll() is None, "it ended before it could be stopped"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(how)
    _, error = process.communicate(timeout=60)
    return process.returncode, error.decode()


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import os

    out = tmp_path_factory.mktemp("alone") / "run"
    done = run(out, {**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return out


def test_killed_in_both_stages_and_resumed_ends_with_the_same_bits(tmp_path, environment, left_alone):
    out = tmp_path / "run"
    assert stop_at(out, environment, "ph", 2, signal.SIGKILL)[0] == -signal.SIGKILL
    assert not (out / "partition.csv").exists()
    assert stop_at(out, environment, "lmix", 2, signal.SIGKILL, "--resume")[0] == -signal.SIGKILL
    assert not (out / "model.safetensors").exists()
    done = run(out, environment, "--resume")
    assert done.returncode == 0, done.stderr
    assert "going on after epoch" in done.stdout
    for name in ("model.safetensors", "partition.csv"):
        assert (out / name).read_bytes() == (left_alone / name).read_bytes(), name
    assert epochs_done(out, "ph") == 3
    assert epochs_done(out, "lmix") == 4


def test_interrupted_says_how_to_go_on(tmp_path, environment, left_alone):
    out = tmp_path / "run"
    status, error = stop_at(out, environment, "lmix", 1, signal.SIGINT)
    assert status == 130
    assert "go on with: unskew train digits" in error
    assert "--resume" in error
    assert "Traceback" not in error
    done = run(out, environment, "--resume")
    assert done.returncode == 0, done.stderr
    assert (out / "model.safetensors").read_bytes() == (left_alone / "model.safetensors").read_bytes()


TOGETHER = """
import sys
import torch
import unskew
from unskew.testing import TinyBackbone, tiny_data

out, lr, resume = sys.argv[1], float(sys.argv[2]), sys.argv[3] == "resume"
torch.manual_seed(0)
backbone = TinyBackbone()
data = tiny_data(samples=90)
options = {"model": backbone, "device": "cpu", "precision": "float32", "batch_size": 16, "lr": lr, "seed": 1}
options["resume"] = resume
partition = unskew.identify(data, out=out, epochs=3, **options)
run = unskew.train(data, partition, "lmix", test=data, out=out, epochs=2, learns="weight", **options)
"""


def together(folder: Path, environment: dict, processes: int, lr: float, resume: bool = False) -> Path:
    script, out = folder / "train.py", folder / f"out{processes}"
    script.write_text(TOGETHER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = ["-m", "torch.distributed.run", f"--nproc_per_node={processes}", "--master_addr=127.0.0.1",
             f"--master_port={port}"] if processes > 1 else []  # fmt: skip
    arguments = [sys.executable, *start, str(script), str(out), str(lr), "resume" if resume else "afresh"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


def test_two_processes_gather_the_history_of_one_for_the_same_weights(tmp_path, environment):
    """With a learning rate that moves nothing, the weights are the same: so must every prediction be."""
    from unskew.data.partition_file import load_partition
    from unskew.testing import tiny_data

    data = tiny_data(samples=90)
    one, two = (load_partition(together(tmp_path, environment, n, lr=1e-30) / "partition.csv", data) for n in (1, 2))
    assert one.predictions is not None
    assert two.predictions is not None
    assert torch.equal(one.predictions, two.predictions)
    assert one.predictions.shape == (90, 3)


def test_two_processes_train_what_one_does(tmp_path, environment):
    """Without BatchNorm, and without looks that are lent within a process's share, the averaged gradients of two halves
    are those of the whole batch, up to rounding."""
    from safetensors.torch import load_file

    from unskew.data.partition_file import load_partition
    from unskew.testing import tiny_data

    one, two = (load_file(together(tmp_path, environment, n, lr=1e-3) / "model.safetensors") for n in (1, 2))
    for name in one:
        assert torch.allclose(one[name], two[name], atol=2e-4), name
    data = tiny_data(samples=90)
    partitions = [load_partition(tmp_path / f"out{n}" / "partition.csv", data).conflicting for n in (1, 2)]
    assert (partitions[0] == partitions[1]).float().mean() >= 0.99
    (tmp_path / "out2" / "model.safetensors").unlink()
    again = load_file(together(tmp_path, environment, 2, lr=1e-3, resume=True) / "model.safetensors")
    assert all(torch.equal(again[name], two[name]) for name in two), "both go on from the end, and agree on it"

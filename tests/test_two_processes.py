"""What two processes that train together each see, keep and write: by one run of two, and this process beside it."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from unskew.engine.fit import decide, fit
from unskew.identifiers.given import oracle
from unskew.methods import METHODS
from unskew.methods.erm import ERM
from unskew.testing import TinyBackbone, tiny_data

EPOCHS, BATCH = 3, 16


class Stops(ERM):
    """Notes which samples it sees, and ends the process's run in its last epoch."""

    seen: list[torch.Tensor]

    def train_step(self, engine, batch):
        self.seen.append(batch["all"].index.clone())
        return super().train_step(engine, batch)

    def after_step(self, engine, batch, out) -> None:
        if engine.epoch == EPOCHS - 1:
            raise InterruptedError


def train(method: type, checkpoint: Path | None = None, resume: bool = False, **options: Any):
    torch.manual_seed(0)
    given = {
        "epochs": EPOCHS,
        "batch_size": BATCH,
        "device": "cpu",
        "precision": "float32",
        "augment": "crop",
        **options,
    }
    job = decide(method.__name__.lower(), method, tiny_data(90), given, TinyBackbone())
    return fit(job, tiny_data(90), None, checkpoint, resume)[0]


def stopped(checkpoint: Path) -> list[torch.Tensor]:
    """Trained but for the last epoch; returns what it saw."""
    stops = type("ERM", (Stops,), {"seen": []})  # known by ERM's name, which a checkpoint holds
    with pytest.raises(InterruptedError):
        train(stops, checkpoint)
    return stops.seen


def smoothed_after_a_look() -> list[torch.Tensor]:
    """LfF's losses of every sample after an epoch that moved no weight."""
    method: Any = train(METHODS["lff"], epochs=1, lr=1e-30)
    return [part.level(k) for part in (method.smoothed_biased, method.smoothed_debiased) for k in range(part.levels)]


def looks_learned(seeks: str) -> dict[str, torch.Tensor]:
    """All weights of l-mix, whose step goes backward twice where h seeks belief."""
    data, options = tiny_data(90), {"epochs": 2, "batch_size": BATCH, "device": "cpu", "seeks": seeks, "mixer_lr": 0.1}
    job = decide("lmix", METHODS["lmix"], data, options, TinyBackbone())
    return fit(job, data, oracle(data))[0].state_dict()


def beside(folder: Path) -> None:
    """In each of the two processes."""
    from unskew.engine import engine

    rank, writes, save = os.environ["RANK"], [], engine.save_checkpoint
    engine.save_checkpoint = lambda *given: (writes.append(given[0].name), save(*given))
    found = {
        "seen": stopped(folder / "two.pt"),
        "resumed": train(ERM, folder / "one.pt", resume=True).model.state_dict(),
        "smoothed": smoothed_after_a_look(),
        **{seeks: looks_learned(seeks) for seeks in ("belief", "error")},
        "writes": writes,
    }
    torch.save(found, folder / f"rank{rank}.pt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("together")
    torch.save(stopped(folder / "one.pt"), folder / "seen.pt")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", f"--master_port={port}"]
    command = [sys.executable, *start, __file__, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def ranks(folder) -> list[dict[str, Any]]:
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in (0, 1)]


def test_the_two_share_each_batch_of_one_without_overlap(folder, ranks):
    whole = torch.load(folder / "seen.pt", weights_only=True)
    steps = 90 // BATCH
    assert len(whole) == (EPOCHS - 1) * steps + 1
    for one, *shares in zip(whole, *(rank["seen"] for rank in ranks), strict=True):
        assert [len(share) for share in shares] == [BATCH // 2] * 2
        assert torch.equal(torch.cat(shares), one)
    epoch = torch.cat(whole[:steps])
    assert len(epoch.unique()) == len(epoch)


def test_one_goes_on_from_a_checkpoint_of_two_and_two_from_one(folder, ranks):
    whole = train(ERM).model.state_dict()
    alone = train(ERM, folder / "two.pt", resume=True).model.state_dict()
    for name, value in whole.items():
        assert torch.allclose(alone[name], value, atol=2e-4), name
        assert torch.allclose(ranks[0]["resumed"][name], value, atol=2e-4), name
        assert torch.equal(ranks[0]["resumed"][name], ranks[1]["resumed"][name]), name


def test_every_process_keeps_the_losses_of_every_sample(ranks):
    for one, *both in zip(smoothed_after_a_look(), *(rank["smoothed"] for rank in ranks), strict=True):
        assert torch.equal(both[0], both[1])
        assert torch.allclose(both[0], one, atol=1e-6)
    assert sum((leaves >= 0).sum() for leaves in ranks[0]["smoothed"][:1]) == 90 // BATCH * BATCH


@pytest.mark.parametrize("seeks", ["belief", "error"])
def test_both_processes_learn_the_same_looks_from_what_each_saw(ranks, seeks):
    both, alone = [rank[seeks] for rank in ranks], looks_learned(seeks)
    for name, value in both[0].items():
        assert torch.equal(value, both[1][name]), name
    mixer = [name for name in alone if name.startswith("mixer")]
    assert mixer
    assert any(not torch.equal(alone[name], both[0][name]) for name in mixer), (
        "each process lends looks of its own share"
    )


def test_only_the_first_process_writes_checkpoints(ranks):
    assert set(ranks[0]["writes"]) == {"two.pt", "one.pt"}
    assert ranks[1]["writes"] == []


if __name__ == "__main__":
    beside(Path(sys.argv[1]))

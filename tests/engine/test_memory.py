"""What an epoch's row says of memory."""

import mmap

import numpy as np
import pytest
import torch

import unskew
from unskew.engine import memory
from unskew.engine.memory import resident_gb, used_gb
from unskew.testing import TinyBackbone

CPU = torch.device("cpu")
told = pytest.mark.skipif(not memory.STATUS.exists(), reason="this system does not tell")


@told
def test_pages_of_a_memory_map_are_not_held(tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros(64_000_000, np.uint8))
    before = resident_gb()
    mapped = np.load(tmp_path / "zeros.npy", mmap_mode="c")
    assert mapped.sum() == 0, "every page is read"
    after = resident_gb()
    assert after["RssFile"] - before["RssFile"] > 0.05
    assert after["RssAnon"] - before["RssAnon"] < 0.03
    held = mmap.mmap(-1, 64_000_000, flags=mmap.MAP_PRIVATE)  # not from the heap, which may have as much to spare
    held.write(b"1" * 64_000_000)
    assert resident_gb()["RssAnon"] - after["RssAnon"] > 0.05


@told
def test_every_epoch_reports_it(tiny):
    run = unskew.train(tiny, method="erm", model=TinyBackbone(), epochs=2, device="cpu")
    assert all(0.01 < row["memory_gb"] < 100 for row in run.metrics)


def test_a_system_that_does_not_tell(tiny, monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "STATUS", tmp_path / "nowhere")
    assert used_gb(CPU) is None
    run = unskew.train(tiny, method="erm", model=TinyBackbone(), epochs=1, device="cpu")
    assert "memory_gb" not in run.metrics[0]

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import unskew
from unskew.engine import store
from unskew.engine.prefetch import AHEAD, Prefetch
from unskew.testing import TinyBackbone, tiny_data

CPU = torch.device("cpu")


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "unskew prefetch"]


def pixels_of(samples: int = 40) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (samples, 6, 6, 3), dtype=torch.uint8, generator=random)


def test_batches_come_in_order_and_whole():
    pixels = pixels_of()
    indices = [torch.randint(0, 40, (n,)) for n in (8,) * 11 + (3,)]
    for _ in range(2):  # the buffers of the first time serve again
        seen = [batch.clone() for batch in Prefetch(pixels, CPU)(indices)]
        assert len(seen) == 12
        assert all(torch.equal(batch, pixels[index]) for batch, index in zip(seen, indices))
    assert threads() == []


def test_it_stays_no_more_than_a_few_batches_ahead():
    asked: list[int] = []

    class Counted(list):
        def __iter__(self):
            for number, index in enumerate(super().__iter__()):
                if threading.current_thread().name == "unskew prefetch":
                    asked.append(number)
                yield index

    batches = Prefetch(pixels_of(), CPU)(Counted([torch.arange(4)] * 50))
    for step in range(5):
        next(batches)
        assert max(asked) <= step + AHEAD
    batches.close()


def test_stopping_early_ends_the_thread():
    batches = Prefetch(pixels_of(), CPU)([torch.arange(4)] * 50)
    next(batches)
    assert len(threads()) == 1
    batches.close()
    assert threads() == []


def test_what_goes_wrong_in_the_thread_is_raised_here():
    batches = Prefetch(pixels_of(), CPU)([torch.tensor([1, 2]), torch.tensor([3, 4000])])
    next(batches)
    with pytest.raises((IndexError, RuntimeError)):
        next(batches)
    assert threads() == []


def anonymous_memory() -> int:
    """Bytes that the kernel cannot drop and read again."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells")
def test_a_memory_map_is_streamed_without_filling_memory(tmp_path):
    samples = 4000  # 197 MB
    rows = np.lib.format.open_memmap(tmp_path / "photos.npy", "w+", np.uint8, (samples, 128, 128, 3))
    rows[:, 0, 0, 0] = np.arange(samples) % 251
    rows.flush()
    del rows
    pixels = torch.from_numpy(np.load(tmp_path / "photos.npy", mmap_mode="c"))
    order = torch.randperm(samples).split(64)
    batches = Prefetch(pixels, CPU)(order)
    next(batches)
    before = anonymous_memory()
    for index, batch in zip(order[1:], batches):
        assert torch.equal(batch[:, 0, 0, 0], (index % 251).to(torch.uint8))
    assert anonymous_memory() - before < 30e6


@pytest.mark.parametrize("method", ["erm", "mixup", "smix", "lmix"])
def test_training_from_the_host_is_training_from_memory(monkeypatch, method):
    data = tiny_data()
    partition = unskew.identify(data, "oracle")
    how = {"model": TinyBackbone(), "epochs": 3, "batch_size": 16, "device": "cpu", "progress": False}
    here = unskew.train(data, partition, method, **how)
    monkeypatch.setattr(store, "_fits", lambda pixels, device: False)
    there = unskew.train(data, partition, method, **how)
    assert threads() == []
    for a, b in zip(here.model.state_dict().values(), there.model.state_dict().values()):
        assert torch.equal(a, b)


def test_an_epoch_that_breaks_off_leaves_no_thread(monkeypatch):
    monkeypatch.setattr(store, "_fits", lambda pixels, device: False)

    class Stops(unskew.METHODS["erm"]):
        def forward(self, batch):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unskew.train(tiny_data(), method=Stops, model=TinyBackbone(), epochs=1, device="cpu", progress=False)
    assert threads() == []

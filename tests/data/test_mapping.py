"""Memory maps of any size, writable as torch wants them."""

import mmap
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from unskew.data import mapping
from unskew.data.mapping import ask_for, map_file
from unskew.engine.fit import decide, fit
from unskew.methods.erm import ERM
from unskew.testing import TinyBackbone, tiny_data


def test_a_file_larger_than_memory_is_mapped(tmp_path):
    row = 256 * 256 * 3
    rows = 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // row
    path = tmp_path / "images.npy"
    with open(path, "wb") as file:  # most of it is a hole, and takes no disk
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (rows, 256, 256, 3)}
        )
        start = file.tell()
        file.truncate(start + rows * row)
        file.seek(start + (rows - 1) * row)
        file.write(b"\7" * row)
    images = torch.from_numpy(map_file(path))
    assert images.shape == (rows, 256, 256, 3)
    assert images[torch.tensor([rows - 1, 3])].float().mean((1, 2, 3)).tolist() == [7, 0]


def test_writing_leaves_the_file_alone(tmp_path):
    np.save(tmp_path / "images.npy", np.arange(12, dtype=np.uint8).reshape(3, 4))
    first = map_file(tmp_path / "images.npy")
    first[1] = 99
    assert map_file(tmp_path / "images.npy")[1].tolist() == [4, 5, 6, 7]


@pytest.fixture
def asked(monkeypatch) -> list[tuple[int, int]]:
    """First byte and length of what the system is asked to read, on a machine with no memory to speak of."""
    found: list[tuple[int, int]] = []
    library = SimpleNamespace(madvise=lambda start, length, advice: found.append((start, length)))
    monkeypatch.setattr(mapping, "_libc", lambda: library)
    monkeypatch.setattr(mapping, "memory_bytes", lambda: 1)
    return found


def test_rows_are_asked_for_in_whole_pages(asked, monkeypatch):
    pixels = torch.zeros(40, 50, 50, 3, dtype=torch.uint8)
    ask_for(pixels, torch.tensor([7, 0]))
    for row, (start, length) in zip((7, 0), asked, strict=True):
        first = pixels.data_ptr() + row * 7500
        assert start % mmap.PAGESIZE == 0
        assert first - mmap.PAGESIZE < start <= first
        assert start + length == first + 7500
    monkeypatch.setattr(mapping, "memory_bytes", lambda: 10**9)
    ask_for(pixels, torch.tensor([1]))
    assert len(asked) == 2, "what fits in memory is left to the system"


def test_the_system_takes_the_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(mapping, "memory_bytes", lambda: 1)
    np.save(tmp_path / "images.npy", np.arange(300000, dtype=np.uint8).reshape(30, 100, 100))
    pixels = torch.from_numpy(map_file(tmp_path / "images.npy"))
    ask_for(pixels, torch.tensor([29, 3]))
    assert torch.equal(pixels[29], torch.arange(290000, 300000).to(torch.uint8).reshape(100, 100))


def test_training_asks_for_every_row_it_sees(asked):
    job = decide("erm", ERM, tiny_data(), {"epochs": 2, "batch_size": 16, "device": "cpu"}, TinyBackbone())
    fit(job, tiny_data())
    assert len(asked) == 2 * 48

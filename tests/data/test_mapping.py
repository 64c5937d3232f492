"""Memory maps of any size, writable as torch wants them."""

import os

import numpy as np
import torch

from unskew.data.mapping import mapped


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
    images = torch.from_numpy(mapped(path))
    assert images.shape == (rows, 256, 256, 3)
    assert images[torch.tensor([rows - 1, 3])].float().mean((1, 2, 3)).tolist() == [7, 0]


def test_writing_leaves_the_file_alone(tmp_path):
    np.save(tmp_path / "images.npy", np.arange(12, dtype=np.uint8).reshape(3, 4))
    first = mapped(tmp_path / "images.npy")
    first[1] = 99
    assert mapped(tmp_path / "images.npy")[1].tolist() == [4, 5, 6, 7]

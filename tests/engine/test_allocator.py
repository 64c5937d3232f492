"""Training on the CPU keeps what a step frees, and gives it back in the end."""

import resource

import pytest
import torch

from unskew.engine import allocator
from unskew.engine.allocator import keeping_memory
from unskew.engine.memory import STATUS, resident_gb

CPU = torch.device("cpu")
needsglibc = pytest.mark.skipif(
    allocator.glibc() is None or not STATUS.exists(), reason="another C library has another allocator"
)


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@needsglibc
def test_blocks_come_back_and_return_to_the_system():
    with keeping_memory(CPU):
        for _ in range(5):
            torch.ones(30_000_000)
        faults = page_faults()
        for _ in range(5):
            torch.ones(30_000_000)
        assert page_faults() - faults < 30_000, "so many has one block"
        within = resident_gb()["RssAnon"]
    assert within - resident_gb()["RssAnon"] > 0.1


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(allocator, "glibc", lambda: None)
    with keeping_memory(CPU):
        pass

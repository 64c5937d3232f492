"""Every test has a cache folder of its own, and small data to train on."""

import os
from pathlib import Path

import pytest
import torch

from unskew.data.dataset import Dataset
from unskew.testing import tiny_data

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def tiny() -> Dataset:
    return tiny_data()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """For processes that a test starts."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "UNSKEW_CACHE": str(tmp_path / "cache"), "COLUMNS": "200"}

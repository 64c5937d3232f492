"""Every test has a cache folder of its own, and small data to train on."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from browser import chromium
from command_line import Outcome
from unskew.cli import main
from unskew.data.dataset import Dataset
from unskew.testing import tiny_data

torch.set_num_threads(1)
# A shell that puts the tests in the background has them, and what they start, ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def tiny() -> Dataset:
    return tiny_data()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """For processes that a test starts."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "UNSKEW_CACHE": str(tmp_path / "cache"), "COLUMNS": "200"}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """``cli("train", folder, "--epochs", 1)``: the command line, in this process."""

    def cli(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            main([str(argument) for argument in arguments])
            status = 0
        except SystemExit as left:
            status = left.code
        return Outcome(status, *capsys.readouterr())

    return cli


@pytest.fixture
def run(cli: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """The same for a command that must succeed."""

    def run(*arguments: object) -> Outcome:
        outcome = cli(*arguments)
        assert outcome.status == 0, outcome.err
        return outcome

    return run


@pytest.fixture
def pictures() -> Callable[..., Path]:
    """Class folders of small PNGs, no two alike: ``pictures(tmp_path / "photos", "cat", "dog", each=12)``."""

    def pictures(root: Path, *classes: str, each: int = 12) -> Path:
        random = np.random.default_rng(0)
        for name in classes or ("cat", "dog"):
            (root / name).mkdir(parents=True, exist_ok=True)
            for i in range(each):
                Image.fromarray(random.integers(0, 256, (16, 16, 3), np.uint8)).save(root / name / f"{i:02d}.png")
        return root

    return pictures


@pytest.fixture
def photos_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: Callable[..., Path]) -> None:
    """``photos``, in the folder that the test works in: relative paths, as one types them."""
    monkeypatch.chdir(tmp_path)
    pictures(Path("photos"))

"""Run folders and servers of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from nasty_run import serving, write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """``serve(folder)``: its address, until the test ends."""
    with ExitStack() as stack:
        yield lambda folder, **more: stack.enter_context(serving(folder, **more))

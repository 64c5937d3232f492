"""A step recorded once and replayed: the host then launches one graph, not some hundred kernels one by one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

WARM_UP = 3  # steps before the recording: they allocate what lasts and choose the convolutions


class Replayed:
    """Calls ``step``; where it may be recorded, the fourth call and all that follow replay one CUDA graph.

    What such a step reads and writes must stay where it is in memory; what differs from step to step must be read
    from there too. :func:`own_stream` must be in force.
    """

    def __init__(self, step: Callable[[], None], record: bool) -> None:
        self._step, self._record = step, record
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        self._calls += 1
        if self._graph is None and self._record and self._calls > WARM_UP:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=torch.cuda.current_stream()):
                self._step()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._step()


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """A CUDA stream that can be recorded, which the default one cannot; elsewhere nothing changes."""
    if device.type != "cuda":
        yield
        return
    outside, inside = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    inside.wait_stream(outside)
    try:
        with torch.cuda.stream(inside):
            yield
    finally:
        outside.wait_stream(inside)

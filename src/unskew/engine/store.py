"""Where the images live while a network trains: on the device as uint8 where they fit, else on the host."""

from collections.abc import Generator, Iterator, Mapping

import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.data.mapping import ask_for
from unskew.engine.prefetch import Prefetch

SHARE_OF_GPU = 0.5


class Store:
    """``pixels`` (N×H×W×C, uint8) and ``labels`` (on the device).

    :meth:`begin` says which rows each step of an epoch will need, so that they are fetched ahead: from the host to the
    device, or from the disk.
    """

    def __init__(self, data: Dataset, device: torch.device) -> None:
        self.device = device
        self.labels = data.labels.to(device)
        self.pixels = data.pixels
        self._prefetch: Prefetch | None = None
        self._batches: Generator[Tensor] | None = None
        self._coming: Iterator[Tensor] = iter(())
        if not _fits(self.pixels, device):
            self._prefetch = Prefetch(self.pixels, device)
        elif device.type != "cpu":
            self.pixels = self.pixels.contiguous().to(device)

    @property
    def on_device(self) -> bool:
        return self._prefetch is None

    def begin(self, index: Mapping[str, Tensor]) -> None:
        """``index``: steps × batch rows of every stream, on the host."""
        steps = torch.cat(list(index.values()), 1)
        if self._prefetch is None:
            self._coming = iter(steps)
            self._ask()
            return
        self.end()
        self._widths = {name: rows.shape[1] for name, rows in index.items()}
        self._batches = self._prefetch(list(steps))

    def step(self, index: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
        """The images to gather a step's samples from, and the rows in them that ``index`` means, by stream."""
        if self._batches is None:
            self._ask()
            return {name: (self.pixels, rows) for name, rows in index.items()}
        fetched = next(self._batches).split(list(self._widths.values()))
        return {
            name: (pixels, torch.arange(len(pixels), device=self.device)) for name, pixels in zip(self._widths, fetched)
        }

    def _ask(self) -> None:
        """A step ahead, for images that are read from the disk where they are trained on."""
        if self.device.type == "cpu" and (rows := next(self._coming, None)) is not None:
            ask_for(self.pixels, rows)

    def end(self) -> None:
        """Stop fetching."""
        if self._batches is not None:
            self._batches.close()
            self._batches = None


def _fits(pixels: Tensor, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return pixels.numel() <= SHARE_OF_GPU * free

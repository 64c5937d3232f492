"""Where the images live while a network trains: on the device as uint8 where they fit, else on the host."""

from collections.abc import Generator, Mapping

import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.engine.prefetch import Prefetch

SHARE_OF_GPU = 0.5


class Store:
    """``pixels`` (N×H×W×C, uint8) and ``labels`` (on the device).

    Where the images stay on the host, :meth:`begin` says which rows each step of an epoch will need, so that they are
    fetched ahead.
    """

    def __init__(self, data: Dataset, device: torch.device) -> None:
        self.device = device
        self.labels = data.labels.to(device)
        self.pixels = data.pixels
        self._prefetch: Prefetch | None = None
        self._batches: Generator[Tensor] | None = None
        if not _fits(self.pixels, device):
            self._prefetch = Prefetch(self.pixels, device)
        elif device.type != "cpu":
            self.pixels = self.pixels.contiguous().to(device)

    @property
    def on_device(self) -> bool:
        return self._prefetch is None

    def begin(self, index: Mapping[str, Tensor]) -> None:
        """``index``: steps × batch rows of every stream, on the host."""
        if self._prefetch is None:
            return
        self.end()
        self._widths = {name: rows.shape[1] for name, rows in index.items()}
        self._batches = self._prefetch(list(torch.cat(list(index.values()), 1)))

    def step(self, index: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
        """The images to gather a step's samples from, and the rows in them that ``index`` means, by stream."""
        if self._batches is None:
            return {name: (self.pixels, rows) for name, rows in index.items()}
        fetched = next(self._batches).split(list(self._widths.values()))
        return {
            name: (pixels, torch.arange(len(pixels), device=self.device)) for name, pixels in zip(self._widths, fetched)
        }

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

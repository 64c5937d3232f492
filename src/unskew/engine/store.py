"""Where the images live while a network trains: on the device as uint8 where they fit, else on the host."""

from collections.abc import Callable

import torch
from torch import Tensor

from unskew.data.dataset import Dataset

SHARE_OF_GPU = 0.5


class Store:
    """``pixels`` (N×H×W×C, uint8) and ``labels`` (on the device)."""

    def __init__(self, data: Dataset, device: torch.device) -> None:
        self.device = device
        self.labels = data.labels.to(device)
        self.pixels = data.pixels
        if device.type != "cpu" and _fits(self.pixels, device):
            self.pixels = self.pixels.contiguous().to(device)

    @property
    def on_device(self) -> bool:
        return self.pixels.device == self.labels.device

    def rows(self, index: Tensor, on_host: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
        """The images to gather from, and the rows in them that ``index`` (``on_host()`` on the host) means."""
        if self.on_device:
            return self.pixels, index
        chosen = self.pixels[on_host()]
        if self.device.type == "cuda":
            chosen = chosen.pin_memory()
        return chosen.to(self.device, non_blocking=True), torch.arange(len(index), device=self.device)


def _fits(pixels: Tensor, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return pixels.numel() <= SHARE_OF_GPU * free

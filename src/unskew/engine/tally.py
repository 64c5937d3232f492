"""Which step an epoch is at, and its losses and metrics: sums that stay on the device until the epoch ends."""

from collections.abc import Mapping

import torch
from torch import Tensor


class Tally:
    """``now`` is the number of the step, one int64 on the device; all its tensors stay where they are."""

    def __init__(self, device: torch.device) -> None:
        self.now = torch.zeros(1, dtype=torch.int64, device=device)
        self._broken = torch.full((1,), -1, dtype=torch.int64, device=device)
        self._sums: dict[str, Tensor] = {}

    def begin(self) -> None:
        self.now.zero_()
        self._broken.fill_(-1)
        for value in self._sums.values():
            value.zero_()

    def add(self, loss: Tensor, metrics: Mapping[str, Tensor]) -> None:
        """Nothing here waits for the device: a loss that is not a number is looked for when the epoch ends."""
        first = ~torch.isfinite(loss.detach()) & (self._broken < 0)
        self._broken.copy_(torch.where(first, self.now, self._broken))
        for name, value in {"loss": loss, **metrics}.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros((), device=self.now.device)
            self._sums[name] += value.detach()
        self.now += 1

    def first_broken(self) -> int:
        """The first step whose loss was not a number, or −1."""
        return int(self._broken)

    def means(self, steps: int) -> dict[str, float]:
        return {name: float(value) / steps for name, value in self._sums.items()}

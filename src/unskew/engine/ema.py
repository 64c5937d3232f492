"""Averaged weights: an exponential moving average of a model, buffers included."""

import copy

import torch
from torch import nn


class Average:
    """``model`` is the average; call ``update`` after each step."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay, self.updates = decay, 0
        self._pairs = [(average, value) for average, value in zip(_tensors(self.model), _tensors(model))]

    @torch.no_grad()
    def update(self) -> None:
        self.updates += 1
        # Early on the average of few values would be mostly the initial weights.
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        moving = [(a, v) for a, v in self._pairs if a.is_floating_point()]
        torch._foreach_lerp_(  # pyright: ignore[reportPrivateImportUsage]
            [a for a, _ in moving], [v for _, v in moving], 1 - decay
        )
        for average, value in self._pairs:
            if not average.is_floating_point():
                average.copy_(value)

    def state_dict(self) -> dict:
        return {"model": self.model.state_dict(), "updates": self.updates}

    def load_state_dict(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.updates = state["updates"]


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]

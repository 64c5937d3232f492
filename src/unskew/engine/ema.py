"""Averaged weights: an exponential moving average of a model, buffers included."""

import copy

import torch
from torch import nn


class Average:
    """``model`` is the average; call ``update`` after each step."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay
        averages, values = _tensors(self.model), _tensors(model)
        self.updates = torch.zeros((), device=averages[0].device)
        self._moving = [(a, v) for a, v in zip(averages, values) if a.is_floating_point()]
        self._copied = [(a, v) for a, v in zip(averages, values) if not a.is_floating_point()]

    @torch.no_grad()
    def update(self) -> None:
        self.updates += 1
        # Early on the average of few values would be mostly the initial weights.
        share = 1 - ((1 + self.updates) / (10 + self.updates)).clamp(max=self.decay)
        averages, values = ([pair[k] for pair in self._moving] for k in (0, 1))
        change = torch._foreach_sub(values, averages)  # pyright: ignore[reportPrivateImportUsage]
        torch._foreach_mul_(change, share)  # pyright: ignore[reportPrivateImportUsage]
        torch._foreach_add_(averages, change)  # pyright: ignore[reportPrivateImportUsage]
        for average, value in self._copied:
            average.copy_(value)

    def state_dict(self) -> dict:
        return {"model": self.model.state_dict(), "updates": int(self.updates)}

    def load_state_dict(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.updates.fill_(state["updates"])


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]

"""Optimizers (fused) and learning-rate schedules as functions of the step."""

import math
from typing import Any

import torch

from unskew.engine.settings import Settings


def make_optimizer(groups: list[dict[str, Any]], settings: Settings, device: torch.device) -> torch.optim.Optimizer:
    shared: dict[str, Any] = {"lr": settings.lr, "weight_decay": settings.weight_decay}
    shared["fused"] = device.type in ("cuda", "cpu", "mps")
    adam = {**shared, "capturable": device.type == "cuda"}
    if settings.optimizer == "sgd":
        optimizer = torch.optim.SGD(groups, momentum=0.9, nesterov=True, **shared)
    elif settings.optimizer == "adam":
        optimizer = torch.optim.Adam(groups, **adam)
    else:
        optimizer = torch.optim.AdamW(groups, **adam)
    for group in optimizer.param_groups:
        group["base_lr"] = group["lr"]
        if device.type == "cuda":  # read there, so that a recorded step sees it change
            group["lr"] = torch.tensor(group["lr"], device=device)
    return optimizer


def load_optimizer(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """The moments; how and where they are used is decided anew, for the device may be another."""
    optimizer.load_state_dict({"state": saved["state"], "param_groups": optimizer.state_dict()["param_groups"]})


def lr_factor(settings: Settings, progress: float) -> float:
    """What multiplies each group's learning rate when ``progress`` (0 to 1) of the steps are done."""
    rise = settings.warmup or (0.15 if settings.schedule == "one-cycle" else 0.0)
    if progress < rise:
        return max(progress / rise, 0.01)
    left = (1 - progress) / (1 - rise)
    if settings.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * (1 - left)))
    if settings.schedule == "one-cycle":
        return max(left, 1e-3)
    return 1.0


def set_lr(optimizer: torch.optim.Optimizer, factor: float) -> None:
    for group in optimizer.param_groups:
        lr = group["base_lr"] * factor
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr

"""BatchNorm with several processes: over the whole batch on GPUs, over each process's share on CPUs."""

from typing import Any

from torch import nn

PLAIN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def sync_batch_norm(module: nn.Module) -> None:
    """Make every BatchNorm one of all processes, in its place: what else refers to the layer finds it there."""
    layer: Any
    for layer in module.modules():
        if type(layer) in PLAIN:
            layer.plain = type(layer)
            layer.process_group = None
            layer.__class__ = nn.SyncBatchNorm


def plain_batch_norm(module: nn.Module) -> None:
    """Take that back, in copies too: a trained model is for one process."""
    synced: list[Any] = [m for m in module.modules() if isinstance(m, nn.SyncBatchNorm) and "plain" in vars(m)]
    for layer in synced:
        layer.__class__ = layer.plain
        del layer.plain, layer.process_group

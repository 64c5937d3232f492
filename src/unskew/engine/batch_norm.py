"""BatchNorm: of several processes (over the whole batch on GPUs, over each one's share on CPUs), and made anew."""

from typing import Any

import torch
from torch import nn

from unskew.data.dataset import Dataset
from unskew.engine.augment import batch_of
from unskew.engine.inference import NO_DRAWS, default_batch
from unskew.engine.random import generator

MOST, BATCH = 10_000, 250  # images to take statistics from, and at a time
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


@torch.no_grad()
def renew_statistics(model: nn.Module, data: Dataset, device: torch.device) -> nn.Module:
    """Take the means and variances from training images as they are: a network that was trained on mixes has those of
    mixes, and is asked about images that are none."""
    layers = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    momenta, training = [layer.momentum for layer in layers], model.training
    model.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the mean over all batches
        layer.train()
    order = torch.randperm(len(data), generator=generator(0, "statistics"))[:MOST]
    parts = -(-len(order) // min(BATCH, default_batch(data.size, device)))  # of one size, for all weigh alike
    for rows in order.tensor_split(parts) if layers else ():
        images = data.pixels[rows].to(device)
        model(batch_of(images, torch.arange(len(rows), device=device), "none", NO_DRAWS, data.size))
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    return model.train(training)

"""From what the user names to a factory of fresh networks."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unskew.errors import UnskewError, nearest
from unskew.models.cnn import CNN
from unskew.models.network import CAFFE_MEAN, IMAGENET_MEAN, IMAGENET_STD, Network, feature_width
from unskew.models.outside import PACKAGES, normalisation, outside_backbone
from unskew.models.resnet import resnet18, resnet50, resnet50_v1
from unskew.models.weights import load_weights

MODELS: dict[str, Callable[..., Any]] = {
    "cnn": CNN,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "resnet50-v1": resnet50_v1,
}
CUSTOM = "custom"
SMALLEST = 8  # px: below, nothing is left after the CNN's two pools


@dataclass(frozen=True)
class ModelFactory:
    """Makes a fresh `Network` on each call; randomness comes from torch's global generator only."""

    name: str
    stem: str | None
    num_classes: int
    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    build: Callable[[], Network]
    weights: str | Path | None = None

    def __call__(self) -> Network:
        network = self.build()
        if self.weights is not None:
            load_weights(network, self.weights, self.name)
        return network.train()

    def describe(self) -> dict[str, Any]:
        """What it takes to build the same network again, ready for JSON."""
        return {
            "name": self.name,
            "stem": self.stem,
            "num_classes": self.num_classes,
            "size": self.size,
            "mean": list(self.mean),
            "std": list(self.std),
        }


def model_factory(
    model: str | nn.Module | None,
    num_classes: int,
    size: int,
    *,
    weights: str | Path | None = None,
    stem: str | None = None,
) -> ModelFactory:
    """Choose the network.

    Parameters
    ----------
    model : str, Module or None
        "cnn", "resnet18", "resnet50", "resnet50-v1" (for weights that `unskew weights convert` made), "timm:NAME" or
        "torchvision:NAME"; or a backbone of your own, images
        in and N×d or N×d×h×w features out; or a whole `Network`. A module is copied here, and each network
        starts from that copy's weights. None chooses by size: "cnn" below 32 px, otherwise "resnet18".
    num_classes : int
    size : int
        Pixels on a side.
    weights : path or str, optional
        Pretrained weights that each network starts from; see `load_weights`.
    stem : "small" or "photo", optional
        How a ResNet begins; "small" for images up to 64 px, unless told.
    """
    if size < SMALLEST:
        raise UnskewError(f"Images of {size} px are too small for a model: {SMALLEST} px is the least.")
    if model is None:
        model = "cnn" if size < 32 else "resnet18"
    if isinstance(model, str) and model.startswith("resnet"):
        stem = stem or ("small" if size <= 64 else "photo")
    elif stem is not None:
        raise UnskewError(f"stem={stem!r} goes with resnet18 and resnet50 only; leave it out.")

    if isinstance(model, Network):
        return _whole(model, num_classes, size, weights)
    mean, std = IMAGENET_MEAN, IMAGENET_STD
    if isinstance(model, nn.Module):
        name = CUSTOM
        backbone = partial(copy.deepcopy, own := _snapshot(model))
        width = feature_width(own, size, type(model).__name__)
    elif model in MODELS:
        name = model
        mean = CAFFE_MEAN if model == "resnet50-v1" else mean
        backbone = partial(MODELS[model], stem=stem) if stem else MODELS[model]
        width = _probe(backbone).width
    elif model.startswith(tuple(f"{package}:" for package in PACKAGES)):
        name = model
        backbone = partial(outside_backbone, *model.split(":", 1))
        probe = _probe(backbone)
        mean, std = normalisation(probe)
        width = feature_width(probe, size, model)
    else:
        known = [*MODELS, *(f"{package}:NAME" for package in PACKAGES)]
        raise UnskewError(f"Unknown model {model!r}: {nearest(model, known)}")
    build = partial(_build, backbone, width, num_classes, mean, std)
    return ModelFactory(name, stem, num_classes, size, mean, std, build, weights)


def _build(
    backbone: Callable[[], nn.Module],
    width: int,
    num_classes: int,
    mean: Sequence[float],
    std: Sequence[float],
) -> Network:
    return Network(backbone(), width, num_classes, mean, std)


def _whole(network: Network, num_classes: int, size: int, weights: str | Path | None) -> ModelFactory:
    if network.num_classes != num_classes:
        raise UnskewError(
            f"The network tells {network.num_classes} classes apart and the data has {num_classes}; "
            "pass network.backbone to start from its features."
        )
    mean, std = (tuple(values.flatten().tolist()) for values in (network.mean, network.std))
    build = partial(copy.deepcopy, _snapshot(network))
    return ModelFactory(CUSTOM, None, num_classes, size, mean, std, build, weights)


def _snapshot(module: nn.Module) -> Any:
    """The module as it is now, on the CPU in float32: what the user does with it later changes nothing."""
    try:
        return copy.deepcopy(module).cpu().float()
    except Exception as error:  # whatever someone else's module may raise
        raise UnskewError(
            f"{type(module).__name__} cannot be copied, and each network needs a copy: {error}"
        ) from error


def _probe(backbone: Callable[[], Any]) -> Any:
    """One instance to look at, built without moving the random state that the real ones depend on."""
    with torch.random.fork_rng(devices=[]):
        return backbone()

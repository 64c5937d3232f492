"""Backbones out of timm and torchvision, where the extra is installed: "timm:NAME", "torchvision:NAME"."""

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from unskew.errors import UnskewError, nearest
from unskew.models.network import IMAGENET_MEAN, IMAGENET_STD

PACKAGES = ("timm", "torchvision")


def outside_backbone(package: str, name: str) -> nn.Module:
    """A fresh backbone, randomly initialised: pretrained weights come from a file of the user's."""
    library = _load(package)
    known = library.is_model(name) if package == "timm" else name in library.models.list_models()
    if not known:
        listing = "timm.list_models()" if package == "timm" else "torchvision.models.list_models()"
        raise UnskewError(f"{package} has no model {name!r}; {listing} names those it has.")
    if package == "timm":
        return library.create_model(name, pretrained=False, num_classes=0)
    return _without_classifier(library.models.get_model(name, weights=None), name)


def published_weights(model: str, which: str) -> dict[str, Tensor]:
    """torchvision's weights of that name for one of its models, or for ours of the same make."""
    library = _load("torchvision")
    name = model.removeprefix("torchvision:")
    if name not in library.models.list_models():
        raise UnskewError(f"torchvision has no weights for the model {model!r}; give a file.")
    known = {each.name: each for each in library.models.get_model_weights(name)}
    if which not in known:
        raise UnskewError(f"torchvision has no weights {which!r} for {name}; {nearest(which, known)}")
    try:
        return dict(known[which].get_state_dict(progress=False, check_hash=True))
    except (OSError, RuntimeError) as error:  # no network, a full disk, a broken file
        raise UnskewError(f"torchvision could not fetch {which} of {name} ({error}): give a file.") from error


def normalisation(backbone: nn.Module) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and std that the backbone's published weights want; timm's models say so themselves."""
    config: Any = getattr(backbone, "pretrained_cfg", {})
    return tuple(config.get("mean", IMAGENET_MEAN)), tuple(config.get("std", IMAGENET_STD))


def _load(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise UnskewError(f"{package} could not be imported ({error}): pip install 'unskew[vision]'.") from error
    except Exception as error:  # torchvision built for another torch: RuntimeError, or OSError from its .so
        raise UnskewError(
            f"{package} is installed but does not load ({error}): its build does not match torch "
            f"{torch.__version__}; pip install 'unskew[vision]' beside it, or install a matching torchvision."
        ) from error


def _without_classifier(model: nn.Module, name: str) -> nn.Module:
    linear = [path for path, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise UnskewError(f"torchvision:{name} has no last linear layer to take off; pass a module instead.")
    parent, _, child = linear[-1].rpartition(".")
    setattr(model.get_submodule(parent), child, nn.Identity())
    return model

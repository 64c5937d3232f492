"""A trained model as one file: its weights, and the card it takes to build it again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unskew import __version__
from unskew.errors import UnskewError
from unskew.files import replacing
from unskew.models.factory import CUSTOM, model_factory
from unskew.models.network import Network
from unskew.models.weights import check_fit, read_safetensors

FORMAT = 1
FILE_NAME = "model.safetensors"


@dataclass(frozen=True)
class ModelCard:
    """What a saved model is.

    Parameters
    ----------
    name : str
        As `model_factory` takes it; "custom" for a module of the user's.
    stem : str or None
        How a ResNet begins.
    num_classes, size : int
        Classes told apart; pixels on a side of the images it was trained on.
    class_names : tuple of str
        In the order of the logits.
    mean, std : tuple of float
        Of each colour, taken off inside the network.
    version : str
        The unskew that wrote the file.
    """

    name: str
    stem: str | None
    num_classes: int
    size: int
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    version: str


def save_model(network: Network, card: Mapping[str, Any], path: str | Path, class_names: Sequence[str]) -> None:
    """Write the network to one safetensors file, whole or not at all.

    Parameters
    ----------
    network : Network
    card : mapping
        From `ModelFactory.describe`.
    path : path
        `load_model` finds it by its folder if it is called ``model.safetensors``.
    class_names : sequence of str
    """
    if len(class_names) != network.num_classes:
        raise UnskewError(f"{len(class_names)} class names for a network of {network.num_classes} classes.")
    about = {
        "format": FORMAT,
        "model": dict(card),
        "class_names": list(class_names),
        "version": __version__,
    }
    write_safetensors(path, network.state_dict(), {"unskew": json.dumps(about)})


def load_model(path: str | Path, model: str | nn.Module | None = None) -> tuple[Network, ModelCard]:
    """Read a model that `save_model` wrote.

    Parameters
    ----------
    path : path
        The file, or the folder that holds ``model.safetensors``.
    model : str or Module, optional
        What the network was built from; needed only where that was a module of the user's.

    Returns
    -------
    network : Network
        On the CPU, in eval mode.
    card : ModelCard
    """
    path = Path(path)
    if path.is_dir():
        path = path / FILE_NAME
    tensors, metadata = read_safetensors(path)
    card = _read_card(metadata, path)
    if card.name == CUSTOM and model is None:
        raise UnskewError(f"{path} was trained from a module of your own: pass it as load_model(..., model=).")
    with torch.random.fork_rng(devices=[]):  # its first weights are thrown away, and must cost no randomness
        if model is None:
            factory = model_factory(card.name, card.num_classes, card.size, stem=card.stem)
        else:
            factory = model_factory(model, card.num_classes, card.size)
        network = factory()
    check_fit(tensors, network.state_dict(), path)
    network.load_state_dict(tensors, strict=False)
    network.mean.copy_(torch.tensor(card.mean).view_as(network.mean))
    network.std.copy_(torch.tensor(card.std).view_as(network.std))
    return network.eval(), card


def write_safetensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors to a file; those that share memory, which the format does not know, are written twice."""
    from safetensors.torch import save

    plain = {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    with replacing(path) as temporary:
        temporary.write_bytes(save(plain, metadata))


def _read_card(metadata: Mapping[str, str], path: Path) -> ModelCard:
    try:
        about = json.loads(metadata["unskew"])
        if about["format"] > FORMAT:
            raise UnskewError(
                f"{path} was written by a newer unskew ({about['version']}); this is {__version__}: upgrade."
            )
        model = about["model"]
        return ModelCard(
            name=str(model["name"]),
            stem=model["stem"],
            num_classes=int(model["num_classes"]),
            size=int(model["size"]),
            class_names=tuple(about["class_names"]),
            mean=tuple(map(float, model["mean"])),
            std=tuple(map(float, model["std"])),
            version=str(about["version"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnskewError(f"{path} is no model that unskew saved: its card is missing or broken.") from error

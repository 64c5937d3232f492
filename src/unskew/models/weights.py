"""Pretrained weights from a file: torchvision-style, or saved by unskew. A file is read, never run."""

import json
import pickle
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from unskew.errors import UnskewError
from unskew.models.network import Network
from unskew.models.outside import published_weights

# What published models call the classifier that our head stands in for.
CLASSIFIERS = ("backbone.fc.", "backbone.classifier.", "backbone.head.", "backbone.heads.")


def load_weights(network: Network, path: str | Path, model: str | None = None) -> None:
    """Start the network from the weights in a file.

    Parameters
    ----------
    network : Network
        Changed in place, or not at all when the file does not fit.
    path : path
        ``.safetensors``, or else a file of ``torch.save`` that holds tensors only. Either the state dict of
        a backbone under its own names (torchvision's, for a ResNet), where a classifier is left out and the
        network keeps its new head; or weights that unskew wrote, head included. Or ``torchvision:NAME``, such as
        ``torchvision:IMAGENET1K_V1``: torchvision's own for the model, which it downloads.
    model : str, optional
        The network's name, as `model_factory` takes it.
    """
    tensors, path = _read(path, model), Path(path)
    expected = network.state_dict()
    own = _full_names(tensors, expected)
    if not any(name.startswith("head.") for name in own):
        own |= {name: value for name, value in expected.items() if name.startswith("head.")}
    check_fit(own, expected, path)
    network.load_state_dict(own, strict=False)


def _read(path: str | Path, model: str | None) -> Mapping[str, Tensor]:
    if str(path).startswith("torchvision:"):
        return published_weights(model or "", str(path).partition(":")[2])
    path = Path(path)
    if path.suffix != ".safetensors":
        return _read_torch(path)
    tensors, metadata = read_safetensors(path)
    made_for = json.loads(metadata.get("unskew-weights", "{}")).get("model", model)
    if model is not None and made_for != model:
        raise UnskewError(f"{path} holds weights of a {made_for}, not of a {model}: use --model {made_for}.")
    return tensors


def check_fit(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], path: Path) -> None:
    """Refuse, before anything is copied, tensors that are not those of the model."""
    problems = [
        f"{_short(name)} is {_shape(found[name])} in the file and {_shape(value)} in the model"
        for name, value in expected.items()
        if name in found and found[name].shape != value.shape
    ]
    # Files of old torch releases have no batch counters, and nothing here reads them.
    problems += [
        f"{_short(name)} ({_shape(value)}) is not in the file"
        for name, value in expected.items()
        if name not in found and not name.endswith("num_batches_tracked")
    ]
    problems += [
        f"{_short(name)} ({_shape(value)}) is not in the model" for name, value in found.items() if name not in expected
    ]
    if not problems:
        return
    if len(problems) > 3:
        problems[3:] = [f"and {len(problems) - 3} more"]
    stem, hint = "backbone.conv1.weight", ""
    if stem in found and stem in expected and found[stem].shape != expected[stem].shape:
        for kernel, flag in ((7, "photo"), (3, "small")):
            if found[stem].shape == (64, 3, kernel, kernel):
                hint = f" The file has the {kernel}×{kernel} stem: try --stem {flag}."
    raise UnskewError(f"{path} does not fit the model: {'; '.join(problems)}.{hint}")


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, and its metadata."""
    from safetensors import safe_open

    _check_readable(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except Exception as error:  # a damaged file can raise nearly anything
        raise UnskewError(f"{path} is damaged, or is no safetensors file ({error}).") from error


def _read_torch(path: Path) -> dict[str, Tensor]:
    _check_readable(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UnskewError(
            f"{path} was not loaded: it is damaged, or holds Python objects beside tensors, and those could "
            "run code; save its state_dict() alone."
        ) from error
    except Exception as error:
        raise UnskewError(f"{path} is damaged, or is no file of torch weights.") from error
    for outer in ("state_dict", "model"):  # a training checkpoint, which also holds epochs and optimizers
        if isinstance(content, Mapping) and isinstance(content.get(outer), Mapping):
            content = content[outer]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise UnskewError(f"{path} holds no state dict (names to tensors); save model.state_dict().")
    return {str(name): value for name, value in content.items()}


def _check_readable(path: Path) -> None:
    """The readers take some damage for failures of the system; this tells the two apart."""
    try:
        open(path, "rb").close()
    except OSError as error:
        raise UnskewError(f"{path} cannot be read: {error.strerror}.") from error


def _full_names(tensors: Mapping[str, Tensor], expected: Iterable[str]) -> dict[str, Tensor]:
    """The tensors under the names they have in a `Network`, without a published model's classifier."""
    if tensors and all(name.startswith("module.") for name in tensors):
        tensors = {name.removeprefix("module."): value for name, value in tensors.items()}
    expected = set(expected)

    def in_network(name: str) -> str:
        inside = f"backbone.{name}"
        return name if name in expected and inside not in expected else inside

    # A module of the user's may itself have a part called backbone, so the names alone do not tell.
    plain = {in_network(name): value for name, value in tensors.items()}
    full = max((tensors, plain), key=lambda names: len(expected & names.keys()))
    return {name: value for name, value in full.items() if name in expected or not name.startswith(CLASSIFIERS)}


def _short(name: str) -> str:
    return name.removeprefix("backbone.")


def _shape(value: Tensor) -> str:
    return "×".join(map(str, value.shape)) or "a single number"

"""Checkpoints: tensors and plain values only, written whole, and read without running any code."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import torch

from unskew.errors import UnskewError
from unskew.files import replacing

FORMAT = 1


def save_checkpoint(path: Path, identity: dict[str, Any], state: dict[str, Any]) -> None:
    """``identity`` is what must be the same for the run to go on as if it had not stopped."""
    with replacing(path) as temporary:
        try:
            torch.save({"format": FORMAT, "identity": identity, **state}, temporary)
        except RuntimeError as error:  # torch reports a full disk so
            raise OSError(str(error).splitlines()[0]) from error


def load_checkpoint(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():  # torch warns of pickles that it then refuses
            warnings.simplefilter("ignore")
            state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UnskewError(
            f"{path} is not a checkpoint of unskew's: it holds more than weights and was not opened; remove it."
        ) from error
    except (OSError, RuntimeError, EOFError, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnskewError(f"{path} is damaged ({reason}): remove it to start afresh.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT or "identity" not in state:
        raise UnskewError(f"{path} is not a checkpoint of this version of unskew: remove it to start afresh.")
    _same(path, state["identity"], identity)
    return state


def _same(path: Path, saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in sorted(saved.keys() | wanted.keys()):
        if saved.get(name) != wanted.get(name):
            raise UnskewError(
                f"{path} is of another run: {name} was {saved.get(name)!r} there and is {wanted.get(name)!r} now; "
                "continue with the options it was started with, or use another --out."
            )


def load_into(module: torch.nn.Module, state: dict[str, Any], path: Path) -> None:
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise UnskewError(f"{path} is a checkpoint of another model ({first}): use another --out.") from error

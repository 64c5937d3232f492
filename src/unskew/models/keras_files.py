"""The files that Keras and TensorFlow.js keep weights in, read as plain arrays."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unskew.errors import UnskewError
from unskew.models.keras import PARAMETERS, KerasWeights


def read_tfjs(path: Path) -> KerasWeights:
    """model.json names the weights in the order in which they lie, one after another, in the shards beside it."""
    try:
        model = json.loads(path.read_text(encoding="utf-8"))
        manifest = model["weightsManifest"]
        arrays: dict[tuple[str, str], np.ndarray] = {}
        for group in manifest:
            content = b"".join(_shard(path.parent / name) for name in group["paths"])
            arrays |= _cut(content, group["weights"], path)
        return KerasWeights(path, arrays, _layers(model.get("modelTopology")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnskewError(f"{path} is no layers model of TensorFlow.js, or is damaged ({error!r}).") from error


def _shard(path: Path) -> bytes:
    if not path.is_file():
        raise UnskewError(f"{path}, which model.json beside it names, is missing.")
    return path.read_bytes()


def _cut(content: bytes, weights: Sequence[Mapping[str, Any]], path: Path) -> dict[tuple[str, str], np.ndarray]:
    found, at = {}, 0
    for weight in weights:
        packed = weight.get("quantization")
        kind = np.dtype((packed or weight)["dtype"]).newbyteorder("<")
        length = math.prod(weight["shape"]) * kind.itemsize
        if at + length > len(content):
            raise UnskewError(f"the shards beside {path} end before {weight['name']}: they are cut short.")
        array = np.frombuffer(content, kind, count=math.prod(weight["shape"]), offset=at)
        if packed and kind.kind == "u":
            array = array * np.float32(packed["scale"]) + np.float32(packed["min"])
        found[_named(weight["name"])] = array.astype(np.float32).reshape(weight["shape"])
        at += length
    if at != len(content):
        raise UnskewError(f"the shards beside {path} hold {len(content) - at} bytes more than it names.")
    return found


def read_h5(path: Path) -> KerasWeights:
    """Weights alone, or a whole model that Keras saved before its version 3."""
    try:
        import h5py
    except ImportError as error:
        raise UnskewError("Keras .h5 files need h5py: pip install 'unskew[keras]'.") from error
    arrays: dict[tuple[str, str], np.ndarray] = {}

    def take(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and _named(name)[1] in PARAMETERS:
            arrays[_named(name)] = item[()]

    try:
        with h5py.File(path, "r") as file:
            whole = file.get("model_weights", file)
            assert isinstance(whole, h5py.Group)
            whole.visititems(take)
            config = file.attrs.get("model_config")
            topology = {"model_config": json.loads(str(config))} if config is not None else None
        return KerasWeights(path, arrays, _layers(topology))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnskewError(f"{path} is no .h5 of Keras, or is damaged ({error}).") from error


def _named(name: str) -> tuple[str, str]:
    """``resnet50/conv1_conv/kernel:0`` is the kernel of conv1_conv."""
    layer, _, parameter = name.rpartition("/")
    return layer.rpartition("/")[2], parameter.partition(":")[0]


def _layers(topology: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """The configuration of each layer, by name."""
    if topology is None:
        return {}
    config = topology.get("model_config", topology)["config"]
    listed = config["layers"] if isinstance(config, Mapping) else config
    return {layer["config"]["name"]: layer["config"] for layer in listed}

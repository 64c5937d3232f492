"""ResNet-50 weights of Keras (keras.applications, as .h5 or for TensorFlow.js) under torchvision's names.

What Keras does otherwise is worked into the weights, so that the features are the same numbers: kernels are height ×
width × in × out; convolutions have biases (taken off the mean that follows); BatchNorm's ε is another (added to the
variance); images come as blue, green, red from 0 to 255 (turned and scaled in the first kernel). The mean colour, and
the stride on the first convolution of a block, are the network's: ``resnet50-v1``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unskew.errors import UnskewError
from unskew.models.network import IMAGENET_STD
from unskew.models.resnet import DEPTHS_50

MODEL = "resnet50-v1"
EPSILON = 1e-5  # torch's
# By the name of the first BatchNorm: keras.applications since 2019, and before.
DEFAULT_EPSILON = {"conv1_bn": 1.001e-5, "bn_conv1": 1e-3}
PARAMETERS = {"kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance"}


@dataclass(frozen=True)
class KerasWeights:
    """Arrays by (layer, parameter), and what the file says of the layers, where it does."""

    path: Path
    arrays: Mapping[tuple[str, str], np.ndarray]
    layers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def get(self, layer: str, parameter: str) -> Tensor:
        if (layer, parameter) not in self.arrays:
            known = sorted({name for name, _ in self.arrays})
            some = ", ".join(known[:3]) + (", …" if len(known) > 3 else "")
            raise UnskewError(
                f"{self.path} is no ResNet-50 of Keras: it has no {layer}/{parameter}; its layers are {some or 'none'}."
            )
        return torch.from_numpy(np.ascontiguousarray(self.arrays[layer, parameter], dtype=np.float32))

    def has(self, layer: str, parameter: str = "kernel") -> bool:
        return (layer, parameter) in self.arrays


def read(path: Path) -> KerasWeights:
    """``model.json`` of TensorFlow.js, its folder, or an ``.h5``."""
    from unskew.models.keras_files import read_h5, read_tfjs

    if path.is_dir():
        path = path / "model.json"
    if not path.is_file():
        raise UnskewError(f"{path} cannot be read: there is no such file.")
    if path.suffix == ".json":
        return read_tfjs(path)
    if path.suffix in (".h5", ".hdf5"):
        return read_h5(path)
    raise UnskewError(f"{path} is of an unknown kind: give the model.json of TensorFlow.js, or a Keras .h5.")


def convert(source: Path, out: Path) -> int:
    """Write what ``--model resnet50-v1 --weights`` takes; returns how many tensors that are."""
    from unskew.models.saved import write_safetensors

    tensors = torch_names(read(source))
    write_safetensors(out, tensors, {"unskew-weights": json.dumps({"model": MODEL, "from": source.name})})
    return len(tensors)


def torch_names(keras: KerasWeights) -> dict[str, Tensor]:
    """The state dict; the classifier, where there is one, as ``fc``."""
    recent = keras.has("conv1_conv")
    found: dict[str, Tensor] = {}

    def conv_bn(conv: str, bn: str, keras_conv: str, keras_bn: str) -> None:
        kernel = keras.get(keras_conv, "kernel").permute(3, 2, 0, 1)
        if keras_conv in ("conv1", "conv1_conv"):
            kernel = kernel.flip(1) * (255 * torch.tensor(IMAGENET_STD)).view(1, 3, 1, 1)
        bias = keras.get(keras_conv, "bias") if keras.has(keras_conv, "bias") else 0.0
        epsilon = keras.layers.get(keras_bn, {}).get("epsilon", DEFAULT_EPSILON["conv1_bn" if recent else "bn_conv1"])
        found[f"{conv}.weight"] = kernel.contiguous()
        found[f"{bn}.weight"], found[f"{bn}.bias"] = keras.get(keras_bn, "gamma"), keras.get(keras_bn, "beta")
        found[f"{bn}.running_mean"] = keras.get(keras_bn, "moving_mean") - bias
        found[f"{bn}.running_var"] = keras.get(keras_bn, "moving_variance") + (epsilon - EPSILON)

    conv_bn("conv1", "bn1", *(("conv1_conv", "conv1_bn") if recent else ("conv1", "bn_conv1")))
    for stage, depth in enumerate(DEPTHS_50, start=1):
        for block in range(depth):
            at = f"layer{stage}.{block}"
            if stage > 1 and block == 0:
                _check_stride(keras, _block(stage, block, 1, recent)[0])
            for k in (1, 2, 3):
                conv_bn(f"{at}.conv{k}", f"{at}.bn{k}", *_block(stage, block, k, recent))
            if block == 0:
                conv_bn(f"{at}.downsample.0", f"{at}.downsample.1", *_block(stage, block, 0, recent))
    top = "predictions" if keras.has("predictions") else "fc1000"
    if keras.has(top):
        found["fc.weight"], found["fc.bias"] = keras.get(top, "kernel").T.contiguous(), keras.get(top, "bias")
    return found


def _block(stage: int, block: int, k: int, recent: bool) -> tuple[str, str]:
    """What Keras calls convolution ``k`` of a block, 0 being the shortcut, and the BatchNorm after it."""
    if recent:
        at = f"conv{stage + 1}_block{block + 1}_{k}"
        return f"{at}_conv", f"{at}_bn"
    at = f"{stage + 1}{'abcdef'[block]}_branch{'1' if k == 0 else '2' + 'abc'[k - 1]}"
    return f"res{at}", f"bn{at}"


def _check_stride(keras: KerasWeights, layer: str) -> None:
    strides = keras.layers.get(layer, {}).get("strides")
    if strides is not None and tuple(strides) != (2, 2):
        raise UnskewError(f"{keras.path} is no ResNet-50 v1: {layer} has stride {tuple(strides)} instead of (2, 2).")

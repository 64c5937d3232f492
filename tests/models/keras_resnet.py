"""ResNet-50 as Keras has it, without our code: made-up weights, the files they are kept in, and the forward."""

import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

DEPTHS = (3, 4, 6, 3)
Weights = dict[str, np.ndarray]  # "layer/parameter"
MEAN_BGR = (103.939, 116.779, 123.68)


def conv_bn_names(stage: int, block: int, k: int, recent: bool) -> tuple[str, str]:
    if stage == 1:
        return ("conv1_conv", "conv1_bn") if recent else ("conv1", "bn_conv1")
    if recent:
        return f"conv{stage}_block{block + 1}_{k}_conv", f"conv{stage}_block{block + 1}_{k}_bn"
    branch = {0: "1", 1: "2a", 2: "2b", 3: "2c"}[k]
    return f"res{stage}{chr(97 + block)}_branch{branch}", f"bn{stage}{chr(97 + block)}_branch{branch}"


def made_up(recent: bool, seed: int = 0) -> Weights:
    random = np.random.RandomState(seed)
    weights: Weights = {}

    def add(stage: int, block: int, k: int, size: int, inputs: int, outputs: int) -> None:
        conv, bn = conv_bn_names(stage, block, k, recent)
        kernel = random.randn(size, size, inputs, outputs) * (2 / (size * size * inputs)) ** 0.5
        weights[f"{conv}/kernel"] = kernel * (0.02 if stage == 1 else 1)  # its images go up to 255
        weights[f"{conv}/bias"] = 0.3 * random.randn(outputs)
        weights[f"{bn}/gamma"] = (0.3 if k == 3 else 1) + 0.1 * random.randn(outputs)
        weights[f"{bn}/beta"] = 0.1 * random.randn(outputs)
        weights[f"{bn}/moving_mean"] = 0.1 * random.randn(outputs)
        weights[f"{bn}/moving_variance"] = 0.5 + random.rand(outputs)

    add(1, 0, 0, 7, 3, 64)
    inputs = 64
    for stage, depth in enumerate(DEPTHS, start=2):
        planes = 2 ** (stage + 4)
        for block in range(depth):
            if block == 0:
                add(stage, block, 0, 1, inputs, 4 * planes)
            add(stage, block, 1, 1, inputs, planes)
            add(stage, block, 2, 3, planes, planes)
            add(stage, block, 3, 1, planes, 4 * planes)
            inputs = 4 * planes
    top = "predictions" if recent else "fc1000"
    weights[f"{top}/kernel"], weights[f"{top}/bias"] = random.randn(2048, 10), random.randn(10)
    return {name: value.astype(np.float32) for name, value in weights.items()}


def forward(weights: Weights, images: torch.Tensor, recent: bool, epsilon: float) -> torch.Tensor:
    """Float images in [0, 1], RGB, as Keras would take them; the features after the average."""
    x = 255 * images.flip(1).double() - torch.tensor(MEAN_BGR, dtype=torch.float64).view(1, 3, 1, 1)

    def conv_bn(x, stage, block, k, stride=1, padding=0):
        conv, bn = conv_bn_names(stage, block, k, recent)
        kernel = torch.from_numpy(weights[f"{conv}/kernel"]).double().permute(3, 2, 0, 1)
        bias, gamma, beta, mean, variance = (
            torch.from_numpy(weights[name]).double()
            for name in (f"{conv}/bias", *(f"{bn}/{p}" for p in ("gamma", "beta", "moving_mean", "moving_variance")))
        )
        x = F.conv2d(x, kernel, bias, stride, padding)
        scale = gamma / (variance + epsilon).sqrt()
        return x * scale.view(1, -1, 1, 1) + (beta - mean * scale).view(1, -1, 1, 1)

    x = conv_bn(F.pad(x, (3, 3, 3, 3)), 1, 0, 0, stride=2).relu()
    x = F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2)
    for stage, depth in enumerate(DEPTHS, start=2):
        for block in range(depth):
            stride = 2 if stage > 2 and block == 0 else 1
            shortcut = conv_bn(x, stage, block, 0, stride) if block == 0 else x
            y = conv_bn(x, stage, block, 1, stride).relu()
            y = conv_bn(y, stage, block, 2, padding=1).relu()
            x = (conv_bn(y, stage, block, 3) + shortcut).relu()
    return x.mean((2, 3))


def save_tfjs(folder: Path, weights: Weights, epsilon: float | None, stride: int = 2, shards: int = 3) -> Path:
    """model.json, and the weights one after another, cut anywhere."""
    folder.mkdir(parents=True)
    content = b"".join(value.tobytes() for value in weights.values())
    step = -(-len(content) // shards)
    paths = [f"group1-shard{i + 1}of{shards}.bin" for i in range(shards)]
    for i, path in enumerate(paths):
        (folder / path).write_bytes(content[i * step : (i + 1) * step])
    specs = [{"name": name, "shape": list(value.shape), "dtype": "float32"} for name, value in weights.items()]
    model: dict = {"format": "layers-model", "weightsManifest": [{"paths": paths, "weights": specs}]}
    if epsilon is not None:
        layers = []
        for layer in dict.fromkeys(name.rpartition("/")[0] for name in weights):
            config = {"name": layer}
            if f"{layer}/gamma" in weights:
                config["epsilon"] = epsilon
            elif layer in ("res3a_branch2a", "conv3_block1_1_conv"):
                config["strides"] = [stride, stride]
            layers.append({"class_name": "Layer", "name": layer, "config": config})
        model["modelTopology"] = {"model_config": {"class_name": "Model", "config": {"layers": layers}}}
    (folder / "model.json").write_text(json.dumps(model))
    return folder / "model.json"


def save_h5(path: Path, weights: Weights, whole: bool) -> Path:
    import h5py

    with h5py.File(path, "w") as file:
        root = file.create_group("model_weights") if whole else file
        for name, value in weights.items():
            layer, _, parameter = name.partition("/")
            root.create_dataset(f"{layer}/{layer}/{parameter}:0", data=value)
    return path

"""ResNet as it was published, without our code: the names and shapes of its weights, and its forward."""

import torch
import torch.nn.functional as F
from torch import Tensor

DEPTHS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
EXPANSION = {"resnet18": 1, "resnet50": 4}


def shapes(name: str, kernel: int = 7) -> dict[str, tuple[int, ...]]:
    """Every entry of the state dict, with a classifier of 1000 classes, in torchvision's order."""
    found: dict[str, tuple[int, ...]] = {}

    def conv_bn(conv: str, bn: str, outputs: int, inputs: int, kernel: int) -> None:
        found[f"{conv}.weight"] = (outputs, inputs, kernel, kernel)
        for part in ("weight", "bias", "running_mean", "running_var"):
            found[f"{bn}.{part}"] = (outputs,)
        found[f"{bn}.num_batches_tracked"] = ()

    conv_bn("conv1", "bn1", 64, 3, kernel)
    inputs = 64
    for layer, depth in enumerate(DEPTHS[name], start=1):
        planes = 32 * 2**layer
        outputs = planes * EXPANSION[name]
        for block in range(depth):
            at = f"layer{layer}.{block}"
            if name == "resnet18":
                conv_bn(f"{at}.conv1", f"{at}.bn1", planes, inputs, 3)
                conv_bn(f"{at}.conv2", f"{at}.bn2", planes, planes, 3)
            else:
                conv_bn(f"{at}.conv1", f"{at}.bn1", planes, inputs, 1)
                conv_bn(f"{at}.conv2", f"{at}.bn2", planes, planes, 3)
                conv_bn(f"{at}.conv3", f"{at}.bn3", outputs, planes, 1)
            if block == 0 and inputs != outputs:
                conv_bn(f"{at}.downsample.0", f"{at}.downsample.1", outputs, inputs, 1)
            inputs = outputs
    found["fc.weight"] = (1000, inputs)
    found["fc.bias"] = (1000,)
    return found


def random_weights(name: str, kernel: int = 7, seed: int = 0) -> dict[str, Tensor]:
    """A state dict of the size of activations that training leaves, and with statistics that matter."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for key, shape in shapes(name, kernel).items():
        noise = torch.randn(shape, generator=generator)
        if key.endswith("num_batches_tracked"):
            weights[key] = torch.tensor(7)
        elif len(shape) == 4:
            weights[key] = noise * (2 / noise[0].numel()) ** 0.5
        elif key.endswith("running_var"):
            weights[key] = 1 + noise.abs()
        elif key.endswith("weight") and len(shape) == 1:
            weights[key] = 1 + 0.1 * noise
        else:
            weights[key] = 0.1 * noise
    return weights


def forward(name: str, weights: dict[str, Tensor], x: Tensor, stem: str = "photo") -> Tensor:
    """The features before fc, in eval mode; the 3×3 convolution of a bottleneck carries the stride."""

    def conv(at: str, x: Tensor, stride: int = 1) -> Tensor:
        kernel = weights[f"{at}.weight"]
        return F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)

    def bn(at: str, x: Tensor) -> Tensor:
        mean, variance, scale, shift = (
            weights[f"{at}.{part}"].view(1, -1, 1, 1) for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (variance + 1e-5).sqrt() * scale + shift

    if stem == "photo":
        x = F.max_pool2d(bn("bn1", conv("conv1", x, 2)).relu(), 3, 2, 1)
    else:
        x = bn("bn1", conv("conv1", x)).relu()
    for layer, depth in enumerate(DEPTHS[name], start=1):
        for block in range(depth):
            at = f"layer{layer}.{block}"
            stride = 2 if layer > 1 and block == 0 else 1
            shortcut = x
            if f"{at}.downsample.0.weight" in weights:
                shortcut = bn(f"{at}.downsample.1", conv(f"{at}.downsample.0", x, stride))
            if name == "resnet18":
                x = bn(f"{at}.bn1", conv(f"{at}.conv1", x, stride)).relu()
                x = bn(f"{at}.bn2", conv(f"{at}.conv2", x))
            else:
                x = bn(f"{at}.bn1", conv(f"{at}.conv1", x)).relu()
                x = bn(f"{at}.bn2", conv(f"{at}.conv2", x, stride)).relu()
                x = bn(f"{at}.bn3", conv(f"{at}.conv3", x))
            x = (x + shortcut).relu()
    return x.mean((2, 3))

"""ResNet-18 and ResNet-50 without their classifier; parameter names and forward are torchvision's."""

import torch.nn.functional as F
from torch import Tensor, nn

from unskew.errors import UnskewError, nearest
from unskew.models.pooling import spatial_mean

STEMS = ("small", "photo")
DEPTHS_50 = (3, 4, 6, 3)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = _downsample(inputs, planes, stride)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.bn2(self.conv2(x))
        return F.relu(x + shortcut, inplace=True)


class Bottleneck(nn.Module):
    """1×1, 3×3, 1×1 and a shortcut. The 3×3 carries the stride ("v1.5"), as in torchvision's weights."""

    expansion = 4
    stride_on_first = False

    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        first, second = (stride, 1) if self.stride_on_first else (1, stride)
        self.conv1 = nn.Conv2d(inputs, planes, 1, first, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, second, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, planes * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * self.expansion)
        self.downsample = _downsample(inputs, planes * self.expansion, stride)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.relu(self.bn2(self.conv2(x)), inplace=True)
        x = self.bn3(self.conv3(x))
        return F.relu(x + shortcut, inplace=True)


class FirstBottleneck(Bottleneck):
    """The first 1×1 carries the stride ("v1"), as in the paper's weights and Keras's."""

    stride_on_first = True


def _downsample(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """Give the shortcut the shape of the block's output, where it differs."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """A residual network, images in and N×``width`` features out.

    Parameters
    ----------
    block : BasicBlock or Bottleneck
    depths : sequence of int
        Blocks in each of the four layers.
    stem : "photo" or "small"
        "photo" starts with a 7×7 convolution of stride 2 and a max pool; "small" with a 3×3 convolution of
        stride 1 and no pool, which leaves something to see in images up to 64 px.
    """

    def __init__(
        self, block: type[BasicBlock] | type[Bottleneck], depths: tuple[int, int, int, int], stem: str
    ) -> None:
        super().__init__()
        if stem not in STEMS:
            raise UnskewError(f"Unknown stem {stem!r}: {nearest(stem, STEMS)}")
        if stem == "photo":
            self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
            self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        else:
            self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = nn.BatchNorm2d(64)

        def layer(inputs: int, planes: int, depth: int, stride: int) -> nn.Sequential:
            first = block(inputs, planes, stride)
            rest = (block(planes * block.expansion, planes, 1) for _ in range(depth - 1))
            return nn.Sequential(first, *rest)

        self.layer1 = layer(64, 64, depths[0], 1)
        self.layer2 = layer(64 * block.expansion, 128, depths[1], 2)
        self.layer3 = layer(128 * block.expansion, 256, depths[2], 2)
        self.layer4 = layer(256 * block.expansion, 512, depths[3], 2)
        self.width = 512 * block.expansion

        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return spatial_mean(self.layer4(self.layer3(self.layer2(self.layer1(x)))))


def resnet18(stem: str) -> ResNet:
    return ResNet(BasicBlock, (2, 2, 2, 2), stem)


def resnet50(stem: str) -> ResNet:
    return ResNet(Bottleneck, DEPTHS_50, stem)


def resnet50_v1(stem: str) -> ResNet:
    return ResNet(FirstBottleneck, DEPTHS_50, stem)

"""The classifier that every method trains: f (the backbone) and g (the head) over normalised images."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unskew.errors import UnskewError
from unskew.models.pooling import spatial_mean

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CAFFE_MEAN = (123.68 / 255, 116.779 / 255, 103.939 / 255)  # what Keras's and the first ResNets take off


class Network(nn.Module):
    """Images in [0, 1], N×3×H×W, to logits, N×classes.

    Parameters
    ----------
    backbone : Module
        f: normalised images in; N×d features out, or N×d×h×w, which are averaged over space.
    feature_width : int
        d.
    num_classes : int
    mean, std : sequence of float
        Of each colour, taken off inside the network; ImageNet's by default.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        feature_width: int,
        num_classes: int,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(
            nn.Linear(feature_width, feature_width), nn.ReLU(), nn.Linear(feature_width, num_classes)
        )
        self.feature_width = feature_width
        self.num_classes = num_classes
        # Not in the state dict: the model's card holds them, and plain weights stay plain.
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1), persistent=False)

    def features(self, images: Tensor) -> Tensor:
        """f: the N×d features of the images."""
        features = self.backbone((images - self.mean) / self.std)
        return spatial_mean(features) if features.ndim == 4 else features

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images))


def feature_width(backbone: nn.Module, size: int, name: str) -> int:
    """Find d by one dry run on two black images; leaves the backbone in eval mode."""
    backbone.eval()
    shape = (2, 3, size, size)
    try:
        with torch.no_grad():
            features = backbone(torch.zeros(shape))
    except Exception as error:  # whatever the forward of someone else's module may raise
        raise UnskewError(f"{name} fails on a batch of {shape} images: {error}") from error
    if not isinstance(features, Tensor):
        found = type(features).__name__
    elif features.ndim not in (2, 4) or len(features) != 2:
        found = f"a tensor of shape {tuple(features.shape)}"
    else:
        return features.shape[1]
    raise UnskewError(
        f"{name} must turn 2 images into 2×d features (or 2×d×h×w, which are averaged), but gives {found}."
    )

"""A three-layer CNN for images below 32 px, quick on a CPU."""

from torch import Tensor, nn

from unskew.models.pooling import spatial_mean


class CNN(nn.Module):
    """Three 3×3 convolutions with batch normalisation; images in, N×128 features out."""

    width = 128

    def __init__(self) -> None:
        super().__init__()
        # Pooled before the normalisation, which then has a quarter of the pixels to go over.
        self.layers = nn.Sequential(
            *(nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(64), nn.ReLU()),
            *(nn.Conv2d(64, self.width, 3, padding=1, bias=False), nn.BatchNorm2d(self.width), nn.ReLU()),
        )

    def forward(self, x: Tensor) -> Tensor:
        return spatial_mean(self.layers(x))

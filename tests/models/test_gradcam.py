import pytest
import torch
from torch import Tensor, nn

from unskew.models.gradcam import gradcam
from unskew.models.network import Network


class Corner(nn.Module):
    """Its one feature is the brightness of an image, place by place."""

    def __init__(self, spatial: bool) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(4)
        self.spatial = spatial

    def forward(self, images):
        maps = self.pool(images.mean(1, keepdim=True))
        return maps if self.spatial else maps.mean((2, 3))


def network(backbone: nn.Module, width: int) -> Network:
    made = Network(backbone, width, 2, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0)).eval()
    with torch.no_grad():
        for parameter in made.head.parameters():
            parameter.fill_(0)
        made.head.get_parameter("0.weight").fill_(1)
        made.head.get_parameter("2.weight")[1].fill_(1)  # more light, more of class 1
    return made


def looked(made: Network, images: Tensor) -> tuple[Tensor, Tensor]:
    found = gradcam(made, images)
    assert found is not None
    return found


@pytest.mark.parametrize("spatial", [True, False])
def test_it_points_at_what_speaks_for_the_class(spatial):
    images = torch.zeros(2, 3, 16, 16)
    images[0, :, :4, :4] = 1
    images[1, :, 12:, 12:] = 1
    maps, predictions = looked(network(Corner(spatial), 1), images)
    assert predictions.tolist() == [1, 1]
    assert maps.shape == (2, 16, 16)
    assert divmod(int(maps[0].argmax()), 16) < (5, 5)
    assert divmod(int(maps[1].argmax()), 16) > (10, 10)
    assert maps.amax((1, 2)).tolist() == [1, 1]
    assert maps.min() >= 0


def test_the_networks_that_come_with_it_have_a_map():
    from unskew.models.factory import model_factory

    for name, size in (("cnn", 24), ("resnet18", 32)):
        made = model_factory(name, 3, size)().eval()
        images = torch.rand(2, 3, size, size)
        maps, predictions = looked(made, images)
        assert maps.shape == (2, size, size)
        with torch.no_grad():
            assert torch.equal(predictions, made(images).argmax(1))


def test_tokens_have_no_place():
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 8, 4, stride=4)
            self.mix = nn.Linear(8, 8)

        def forward(self, images):
            return self.mix(self.patches(images).flatten(2).transpose(1, 2)).mean(1)

    assert gradcam(Network(Tokens(), 8, 2).eval(), torch.rand(1, 3, 16, 16)) is None
    assert gradcam(Network(nn.Flatten(), 768, 2).eval(), torch.rand(1, 3, 16, 16)) is None

import published_resnet
import pytest
import torch
from torch import nn

from unskew.errors import UnskewError
from unskew.models.resnet import resnet18, resnet50

MAKERS = {"resnet18": resnet18, "resnet50": resnet50}


@pytest.mark.parametrize(("name", "parameters"), [("resnet18", 11_689_512), ("resnet50", 25_557_032)])
def test_names_shapes_and_number_of_parameters_are_the_published_ones(name, parameters):
    model = MAKERS[name]("photo")
    model.fc = nn.Linear(model.width, 1000)
    found = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    assert found == published_resnet.shapes(name)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_a_few_names_and_shapes_spelled_out():
    basic, deep = resnet18("photo").state_dict(), resnet50("photo").state_dict()
    assert basic["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert basic["layer4.1.conv2.weight"].shape == (512, 512, 3, 3)
    assert "layer1.0.downsample.0.weight" not in basic
    assert deep["layer1.0.downsample.0.weight"].shape == (256, 64, 1, 1)
    assert deep["layer4.2.conv3.weight"].shape == (2048, 512, 1, 1)
    assert deep["layer3.5.bn2.running_var"].shape == (256,)


@pytest.mark.parametrize("stem", ["photo", "small"])
@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_forward_is_the_published_one(name, stem):
    weights = published_resnet.random_weights(name, kernel=7 if stem == "photo" else 3)
    model = MAKERS[name](stem).eval()
    model.load_state_dict({key: value for key, value in weights.items() if not key.startswith("fc.")})
    images = torch.randn(2, 3, 65 if stem == "photo" else 17, 65 if stem == "photo" else 17)
    with torch.no_grad():
        found, expected = model(images), published_resnet.forward(name, weights, images, stem)
        assert found.shape == (2, model.width)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        assert expected.std() > 0.01  # the comparison is of something


@pytest.mark.parametrize(("stem", "size", "side"), [("photo", 64, 2), ("small", 32, 4), ("small", 64, 8)])
def test_what_each_stem_leaves_to_the_last_layer(stem, size, side):
    model = resnet18(stem).eval()
    sides = []
    model.layer4.register_forward_hook(lambda module, inputs, output: sides.append(tuple(output.shape)))
    with torch.no_grad():
        model(torch.zeros(1, 3, size, size))
    assert sides == [(1, 512, side, side)]


def test_initialisation_is_kaiming_over_fan_out():
    torch.manual_seed(0)
    model = resnet18("photo")
    kernel = model.state_dict()["layer2.0.conv1.weight"]  # fan in 576, fan out 1152
    assert kernel.std().item() == pytest.approx((2 / 1152) ** 0.5, rel=0.01)
    assert kernel.mean().abs() < 1e-3


def test_unknown_stem():
    with pytest.raises(UnskewError, match="Unknown stem 'foto': did you mean photo"):
        resnet18("foto")

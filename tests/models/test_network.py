import pytest
import torch
from torch import nn

from unskew.errors import UnskewError
from unskew.models import Mixer, Network, model_factory
from unskew.models.network import feature_width


def test_normalises_with_imagenets_values_inside():
    seen = []

    class Spy(nn.Module):
        def forward(self, x):
            seen.append(x)
            return x.mean((2, 3))

    network = Network(Spy(), 3, 2)
    colours = torch.tensor([0.485, 0.456 + 0.224, 0.406 - 2 * 0.225]).view(1, 3, 1, 1)
    network(colours.expand(2, 3, 4, 4))
    torch.testing.assert_close(seen[0], torch.tensor([0.0, 1.0, -2.0]).view(1, 3, 1, 1).expand(2, 3, 4, 4))
    assert list(network.state_dict()) == ["head.0.weight", "head.0.bias", "head.2.weight", "head.2.bias"]


def test_g_is_a_two_layer_mlp_over_f():
    network = model_factory("cnn", 7, 24)().eval()
    assert (network.feature_width, network.num_classes) == (128, 7)
    shapes = [tuple(parameter.shape) for parameter in network.head.parameters()]
    assert shapes == [(128, 128), (128,), (7, 128), (7,)]
    images = torch.rand(3, 3, 24, 24)
    features = network.features(images)
    assert features.shape == (3, 128)
    w1, b1, w2, b2 = network.head.parameters()
    torch.testing.assert_close(network(images), (features @ w1.T + b1).relu() @ w2.T + b2)


def test_maps_of_features_are_averaged():
    network = Network(nn.Conv2d(3, 5, 1), 5, 2)
    images = torch.rand(2, 3, 4, 6)
    assert network(images).shape == (2, 2)
    maps = network.backbone((images - network.mean) / network.std)
    torch.testing.assert_close(network.features(images), maps.mean((2, 3)))


@pytest.mark.parametrize(("model", "size"), [("cnn", 24), ("resnet18", 32)])
def test_channels_last_and_compile_change_nothing(model, size):
    network = model_factory(model, 4, size)().eval()
    images = torch.rand(2, 3, size, size)
    with torch.no_grad():
        expected = network(images)
        # fullgraph: a break of the graph is an error
        compiled = torch.compile(network, backend="eager", fullgraph=True)(images)
        network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        last = network(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(compiled, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(last, expected, rtol=1e-4, atol=1e-5)


def test_dry_run_keeps_statistics():
    backbone = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6))
    before = {key: value.clone() for key, value in backbone.state_dict().items()}
    assert feature_width(backbone, 16, "mine") == 6
    assert all(torch.equal(value, before[key]) for key, value in backbone.state_dict().items())


class Gives(nn.Module):
    def __init__(self, output):
        super().__init__()
        self.output = output

    def forward(self, x):
        return self.output


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (torch.zeros(2, 5, 7), r"\(2, 5, 7\)"),
        (torch.zeros(2), r"\(2,\)"),
        (torch.zeros(1, 5), r"\(1, 5\)"),
        ((torch.zeros(2, 5),), "tuple"),
        ({"logits": torch.zeros(2, 5)}, "dict"),
    ],
)
def test_other_outputs_are_refused(output, found):
    with pytest.raises(UnskewError, match=rf"Gives must turn 2 images into 2×d features .*, but gives .*{found}"):
        model_factory(Gives(output), 2, 16)


def test_a_forward_that_fails_is_named():
    with pytest.raises(UnskewError, match=r"Linear fails on a batch of \(2, 3, 16, 16\) images: mat1"):
        model_factory(nn.Linear(5, 5), 2, 16)


def test_h_is_an_mlp_with_a_floor():
    mixer = Mixer(10)
    assert [tuple(p.shape) for p in mixer.parameters() if p.ndim == 2] == [(64, 20), (64, 64), (2, 64)]
    alpha, beta = mixer(torch.randn(6, 10), torch.randn(6, 10))
    assert alpha.shape == beta.shape == (6,)
    assert not torch.equal(alpha, beta)
    *_, last = mixer.parameters()
    last.data[:] = torch.tensor([-1000.0, 5.0])
    alpha, beta = mixer(torch.zeros(1, 10), torch.zeros(1, 10))
    assert alpha.item() == pytest.approx(0.1)
    assert 4.5 < beta.item() < 5.7


def test_h_sees_the_first_and_then_the_second():
    mixer = Mixer(4)
    first, second = torch.randn(3, 4), torch.randn(3, 4)
    expected = (1 + mixer.layers(torch.cat([first, second], 1)).exp()).log() + 0.1
    torch.testing.assert_close(torch.stack(mixer(first, second), 1), expected)


def test_h_is_float32_under_autocast():
    mixer = Mixer(8)
    first, second = torch.randn(5, 8), torch.randn(5, 8)
    expected = mixer(first, second)
    with torch.autocast("cpu", torch.bfloat16):
        assert nn.functional.linear(first, first).dtype == torch.bfloat16  # autocast is on
        found = mixer(first, second)
        from_half = mixer(first.bfloat16(), second.bfloat16())
    assert {value.dtype for value in (*found, *from_half)} == {torch.float32}
    assert all(torch.equal(a, b) for a, b in zip(found, expected))
    rounded = mixer(first.bfloat16().float(), second.bfloat16().float())
    assert all(torch.equal(a, b) for a, b in zip(from_half, rounded))

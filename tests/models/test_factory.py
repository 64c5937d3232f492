import json
import pickle
import sys
import types

import pytest
import torch
from torch import nn

from unskew.errors import UnskewError
from unskew.models import MODELS, Network, model_factory
from unskew.models.cnn import CNN


def same(first: nn.Module, second: nn.Module) -> bool:
    a, b = first.state_dict(), second.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize(
    ("size", "name", "stem"),
    [
        (8, "cnn", None),
        (31, "cnn", None),
        (32, "resnet18", "small"),
        (64, "resnet18", "small"),
        (65, "resnet18", "photo"),
    ],
)
def test_default_by_size(size, name, stem):
    factory = model_factory(None, 3, size)
    assert (factory.name, factory.stem) == (name, stem)
    assert factory().eval()(torch.rand(2, 3, size, size)).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "width"), [("cnn", 128), ("resnet18", 512), ("resnet50", 2048), ("resnet50-v1", 2048)]
)
def test_every_name(name, width):
    network = model_factory(name, 5, 32)()
    assert network.training
    assert network.feature_width == width
    assert network.eval()(torch.rand(1, 3, 32, 32)).shape == (1, 5)
    assert len(MODELS) == 4


def test_stem_can_be_chosen():
    networks = [model_factory("resnet18", 2, 32, stem=stem)() for stem in ("small", "photo")]
    assert [network.state_dict()["backbone.conv1.weight"].shape[-1] for network in networks] == [3, 7]


def test_the_card_is_json():
    card = model_factory("resnet50", 5, 224).describe()
    assert json.loads(json.dumps(card)) == {
        "name": "resnet50",
        "stem": "photo",
        "num_classes": 5,
        "size": 224,
        "mean": [0.485, 0.456, 0.406],
        "std": [0.229, 0.224, 0.225],
    }


def test_networks_are_fresh_and_follow_the_seed_alone():
    torch.manual_seed(3)
    factory = model_factory("cnn", 2, 24)
    state = torch.get_rng_state()
    first, second = factory(), factory()
    assert not same(first, second)
    torch.set_rng_state(state)
    assert same(factory(), first)
    # making the factory moves no randomness
    torch.manual_seed(3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(3)
    assert same(pickle.loads(pickle.dumps(factory))(), first)


def test_copies_of_a_users_module_start_from_its_weights_and_are_independent():
    torch.manual_seed(0)
    own = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
    before = {key: value.clone() for key, value in own.state_dict().items()}
    factory = model_factory(own, 4, 16)
    assert factory.describe()["name"] == "custom"
    first, second = factory(), factory()
    assert first.training
    assert first.backbone.training
    assert first.feature_width == 6
    assert same(first.backbone, own)
    assert not same(first.head, second.head)
    with torch.no_grad():
        first(torch.rand(2, 3, 16, 16))  # moves the running statistics
        for parameter in (*first.parameters(), *own.parameters()):
            parameter.add_(1)
    for untouched in (second.backbone, factory().backbone):
        assert all(torch.equal(value, before[key]) for key, value in untouched.state_dict().items())


def test_a_whole_network_is_copied_whole():
    own = Network(CNN(), 128, 4, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)).double()
    factory = model_factory(own, 4, 24)
    network = factory()
    assert network is not own
    assert same(network, own.float())
    assert network.backbone is not factory().backbone
    assert factory.describe()["mean"] == [0.5, 0.5, 0.5]
    assert factory.describe()["std"] == [0.25, 0.25, 0.25]
    assert torch.equal(network.mean, own.mean)


def test_a_network_of_other_classes():
    with pytest.raises(UnskewError, match=r"tells 4 classes apart and the data has 3; pass network\.backbone"):
        model_factory(Network(CNN(), 128, 4), 3, 24)


def test_a_module_that_cannot_be_copied():
    class Locked(nn.Module):
        def __deepcopy__(self, memo):
            raise TypeError("no copies")

    with pytest.raises(UnskewError, match="Locked cannot be copied, and each network needs a copy: no copies"):
        model_factory(Locked(), 2, 24)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("resnet81", 2, 32), "Unknown model 'resnet81': did you mean resnet18"),
        (("vit", 2, 32), "Unknown model 'vit': .*known: cnn, resnet18, resnet50, resnet50-v1, timm:NAME"),
        (("timm", 2, 32), "Unknown model 'timm': did you mean timm:NAME"),
        (("cnn", 2, 4), "Images of 4 px are too small"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(UnskewError, match=message):
        model_factory(*arguments)


def test_stem_errors():
    with pytest.raises(UnskewError, match="stem='small' goes with resnet18 and resnet50 only"):
        model_factory("cnn", 2, 24, stem="small")
    with pytest.raises(UnskewError, match="Unknown stem 'smal': did you mean small"):
        model_factory("resnet18", 2, 24, stem="smal")


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_absent_package_names_the_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed, wherever this runs
    with pytest.raises(UnskewError, match=rf"{package} could not be imported .*pip install 'unskew\[vision\]'"):
        model_factory(f"{package}:resnet18", 2, 32)


def test_broken_torchvision_is_told(tmp_path, monkeypatch):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnskewError, match=r"does not load \(operator torchvision::nms.*does not match torch \d"):
        model_factory("torchvision:resnet18", 2, 32)


class Published(nn.Module):
    """Stands for a model of another library."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3)
        self.classifier = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, classes or 20))
        self.pretrained_cfg = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.2, 0.1)}

    def forward(self, x):
        return self.classifier(self.conv(x).mean((2, 3)))


def test_a_timm_model(monkeypatch):
    def create_model(name, pretrained, num_classes):
        assert (name, pretrained, num_classes) == ("some_net", False, 0)
        return Published(num_classes)

    timm = types.ModuleType("timm")
    vars(timm).update(create_model=create_model, is_model=lambda name: name == "some_net")
    monkeypatch.setitem(sys.modules, "timm", timm)
    factory = model_factory("timm:some_net", 3, 32)
    assert factory.describe()["name"] == "timm:some_net"
    assert factory.describe()["mean"] == [0.5, 0.4, 0.3]
    network = factory()
    assert network.feature_width == 20
    assert network.std.flatten().tolist() == pytest.approx([0.2, 0.2, 0.1])
    with pytest.raises(UnskewError, match=r"timm has no model 'other'; timm\.list_models\(\)"):
        model_factory("timm:other", 3, 32)


def test_a_torchvision_model_loses_its_last_layer(monkeypatch):
    def get_model(name, weights):
        assert weights is None
        return Published(1000) if name == "some_net" else nn.Conv2d(3, 4, 1)

    torchvision = types.ModuleType("torchvision")
    models = types.SimpleNamespace(get_model=get_model, list_models=lambda: ["some_net", "no_linear"])
    vars(torchvision).update(models=models)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    network = model_factory("torchvision:some_net", 3, 32)()
    assert network.feature_width == 20
    assert network(torch.rand(2, 3, 32, 32)).shape == (2, 3)
    assert not [key for key in network.state_dict() if key.startswith("backbone.classifier.2")]
    with pytest.raises(UnskewError, match="has no last linear layer"):
        model_factory("torchvision:no_linear", 3, 32)
    with pytest.raises(UnskewError, match="torchvision has no model 'other'"):
        model_factory("torchvision:other", 3, 32)

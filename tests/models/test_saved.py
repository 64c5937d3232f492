import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import unskew
from unskew.errors import UnskewError
from unskew.models import Network, load_model, model_factory, save_model
from unskew.models.cnn import CNN

NAMES = ["cat", "dog", "ħen"]


def trained(factory, size):
    """A network whose running statistics are no longer the initial ones."""
    network = factory()
    network(torch.rand(4, 3, size, size))
    return network


@pytest.mark.parametrize(("model", "size", "stem"), [("cnn", 24, None), ("resnet18", 32, "photo")])
def test_the_same_logits_bit_for_bit(model, size, stem, tmp_path):
    factory = model_factory(model, 3, size, stem=stem)
    network = trained(factory, size)
    save_model(network, factory.describe(), tmp_path / "run" / "model.safetensors", NAMES)
    images = torch.rand(5, 3, size, size)
    state = torch.get_rng_state()
    for path in (tmp_path / "run", str(tmp_path / "run" / "model.safetensors")):
        again, card = load_model(path)
        assert not again.training
        assert torch.equal(again(images), network.eval()(images))
    assert torch.equal(torch.get_rng_state(), state)
    assert (card.name, card.stem, card.num_classes, card.size) == (model, stem, 3, size)
    assert (card.class_names, card.version) == (tuple(NAMES), unskew.__version__)
    assert card.mean == (0.485, 0.456, 0.406)
    assert card.std == (0.229, 0.224, 0.225)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["model.safetensors"]


def test_channels_last_weights_and_tied_weights_are_saved(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 3, 3, padding=1)
            self.second = nn.Conv2d(3, 3, 3, padding=1)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x))

    factory = model_factory(Tied(), 3, 16)
    network = factory().eval()
    network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    save_model(network, factory.describe(), tmp_path / "model.safetensors", NAMES)
    again, card = load_model(tmp_path, model=Tied())
    images = torch.rand(2, 3, 16, 16)
    torch.testing.assert_close(again(images), network(images))
    assert card.name == "custom"


def test_a_module_of_the_users_must_be_passed(tmp_path):
    own = nn.Conv2d(3, 4, 3)
    factory = model_factory(own, 3, 16)
    network = trained(factory, 16).eval()
    save_model(network, factory.describe(), tmp_path / "model.safetensors", NAMES)
    with pytest.raises(UnskewError, match=r"module of your own.* load_model\(\.\.\., model="):
        load_model(tmp_path)
    with pytest.raises(UnskewError, match="does not fit the model: weight is 4×3×3×3 in the file and 4×3×1×1"):
        load_model(tmp_path, model=nn.Conv2d(3, 4, 1))
    images = torch.rand(2, 3, 16, 16)
    again, _ = load_model(tmp_path, model=nn.Conv2d(3, 4, 3))
    assert torch.equal(again(images), network(images))


def test_mean_and_std_come_back(tmp_path):
    own = Network(CNN(), 128, 3, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7)).eval()
    save_model(own, model_factory(own, 3, 24).describe(), tmp_path / "model.safetensors", NAMES)
    again, card = load_model(tmp_path, model=CNN())
    assert card.mean == pytest.approx((0.1, 0.2, 0.3))
    images = torch.rand(2, 3, 24, 24)
    assert torch.equal(again(images), own(images))


def test_the_metadata(tmp_path):
    factory = model_factory("cnn", 3, 24)
    save_model(factory(), factory.describe(), tmp_path / "m.safetensors", NAMES)
    with safe_open(tmp_path / "m.safetensors", framework="pt") as file:
        about = json.loads(file.metadata()["unskew"])
    assert about == {
        "format": 1,
        "model": factory.describe(),
        "class_names": NAMES,
        "version": unskew.__version__,
    }


def test_errors_of_saving(tmp_path):
    factory = model_factory("cnn", 3, 24)
    with pytest.raises(UnskewError, match="2 class names for a network of 3 classes"):
        save_model(factory(), factory.describe(), tmp_path / "m.safetensors", NAMES[:2])
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnskewError, match="could not be written"):
        save_model(factory(), factory.describe(), tmp_path / "folder", NAMES)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_errors_of_loading(tmp_path):
    with pytest.raises(UnskewError, match=r"model\.safetensors cannot be read: No such file"):
        load_model(tmp_path)

    factory = model_factory("cnn", 3, 24)
    path = tmp_path / "model.safetensors"
    save_model(factory(), factory.describe(), path, NAMES)
    content = path.read_bytes()
    for keep in (0, 5, 1000, len(content) - 1):
        path.write_bytes(content[:keep])
        with pytest.raises(UnskewError, match="is damaged"):
            load_model(path)

    save_file(factory().state_dict(), path)
    with pytest.raises(UnskewError, match="is no model that unskew saved"):
        load_model(path)
    save_file(factory().state_dict(), path, {"unskew": '{"format": 1, "model": 3}'})
    with pytest.raises(UnskewError, match="is no model that unskew saved"):
        load_model(path)
    save_file(factory().state_dict(), path, {"unskew": '{"format": 2, "version": "9.0"}'})
    with pytest.raises(UnskewError, match=r"written by a newer unskew \(9\.0\)"):
        load_model(path)

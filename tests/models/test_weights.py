import io
import os
import pickle
import sys
import types

import published_resnet
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from unskew.errors import UnskewError
from unskew.export import export_safetensors
from unskew.models import Network, load_weights, model_factory
from unskew.models.cnn import CNN


def snapshot(network):
    return {key: value.clone() for key, value in network.state_dict().items()}


def unchanged(network, before):
    return all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


@pytest.fixture(scope="module")
def published():
    return published_resnet.random_weights("resnet18")


def old(weights):
    """Files from before torch counted the batches."""
    return {key: value for key, value in weights.items() if not key.endswith("num_batches_tracked")}


WRAPPINGS = {
    "plain.pth": lambda weights: weights,
    "without_fc.pt": lambda weights: {key: value for key, value in weights.items() if "fc." not in key},
    "old.pth": old,
    "nested.pth": lambda weights: {"epoch": 3, "state_dict": weights},
    "parallel.pth.tar": lambda weights: {"state_dict": {f"module.{key}": value for key, value in weights.items()}},
    "plain.safetensors": lambda weights: weights,
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_published_weights_give_the_published_features(name, published, tmp_path):
    content = WRAPPINGS[name](published)
    path = tmp_path / name
    save_file(content, path) if name.endswith("safetensors") else torch.save(content, path)
    torch.manual_seed(1)
    network = model_factory("resnet18", 3, 96)().eval()
    head = snapshot(network.head)
    images = torch.rand(2, 3, 40, 40)
    with torch.no_grad():
        expected = published_resnet.forward("resnet18", published, (images - network.mean) / network.std)
        assert not torch.allclose(network.features(images), expected, atol=0.01)
        load_weights(network, path)
        torch.testing.assert_close(network.features(images), expected, rtol=1e-4, atol=1e-4)
    assert unchanged(network.head, head)


def test_each_network_of_a_factory_starts_from_the_file(published, tmp_path):
    torch.save(published, tmp_path / "w.pth")
    factory = model_factory("resnet18", 3, 96, weights=tmp_path / "w.pth")
    first, second = factory(), factory()
    assert torch.equal(first.state_dict()["backbone.conv1.weight"], published["conv1.weight"])
    assert unchanged(second.backbone, first.backbone.state_dict())
    assert not unchanged(second.head, first.head.state_dict())


@pytest.mark.parametrize("name", ["own.pth", "own.safetensors", "exported.safetensors"])
def test_weights_of_unskew_bring_the_head(name, tmp_path):
    first, second = Network(CNN(), 128, 3), Network(CNN(), 128, 3)
    if name == "own.pth":
        torch.save(first.state_dict(), tmp_path / name)
    elif name == "own.safetensors":
        save_file(first.state_dict(), tmp_path / name)
    else:
        export_safetensors(first, tmp_path / name)
    load_weights(second, tmp_path / name)
    assert unchanged(second, first.state_dict())


def test_a_module_with_a_backbone_of_its_own(tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = nn.Conv2d(3, 4, 1)
            self.head = nn.Conv2d(4, 5, 1)

        def forward(self, x):
            return self.head(self.backbone(x))

    own = Own()
    torch.save(own.state_dict(), tmp_path / "own.pt")
    network = model_factory(Own(), 2, 16)()
    head = snapshot(network.head)
    load_weights(network, tmp_path / "own.pt")
    assert unchanged(network.backbone, own.state_dict())
    assert unchanged(network.head, head)


def refused(network, path):
    """The message; the network must be as it was."""
    before = snapshot(network)
    with pytest.raises(UnskewError) as caught:
        load_weights(network, path)
    assert unchanged(network, before)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_photo_stem_does_not_fit_small_images(published, tmp_path):
    path = tmp_path / "w.pth"
    torch.save(published, path)
    assert refused(model_factory("resnet18", 3, 32)(), path) == (
        f"{path} does not fit the model: conv1.weight is 64×3×7×7 in the file and 64×3×3×3 in the model. "
        "The file has the 7×7 stem: try --stem photo."
    )


def test_the_first_three_mismatches_are_listed(published, tmp_path):
    path = tmp_path / "w.pth"
    torch.save(published, path)
    message = refused(model_factory("resnet50", 3, 96)(), path)
    assert "layer1.0.conv1.weight is 64×64×3×3 in the file and 64×64×1×1 in the model; " in message
    assert message.count(" in the file and ") == 3
    assert message.endswith(" more.")


def test_missing_and_unknown_names(published, tmp_path):
    network = model_factory("resnet18", 3, 96)()
    without = {key: value for key, value in published.items() if key not in ("bn1.bias", "layer4.1.conv2.weight")}
    torch.save(without, tmp_path / "without.pth")
    message = refused(network, tmp_path / "without.pth")
    assert "bn1.bias (64) is not in the file; layer4.1.conv2.weight (512×512×3×3) is not in the file." in message
    # a deeper network has all that a shallow one wants, and is still another network
    torch.save({**published, "layer1.2.conv1.weight": torch.zeros(64, 64, 3, 3)}, tmp_path / "deeper.pth")
    assert "layer1.2.conv1.weight (64×64×3×3) is not in the model." in refused(network, tmp_path / "deeper.pth")


def test_a_head_for_other_classes(tmp_path):
    torch.save(Network(CNN(), 128, 3).state_dict(), tmp_path / "w.pt")
    message = refused(Network(CNN(), 128, 4), tmp_path / "w.pt")
    assert "head.2.weight is 3×128 in the file and 4×128 in the model" in message


class Malicious:
    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (str(self.canary),)


@pytest.mark.parametrize("form", ["zip", "raw"])
def test_a_pickle_that_runs_code_is_not_run(form, tmp_path):
    canary, path = tmp_path / "ran", tmp_path / "w.pth"
    if form == "zip":
        torch.save({"conv1.weight": Malicious(canary)}, path)
    else:
        path.write_bytes(pickle.dumps(Malicious(canary)))
    message = refused(Network(CNN(), 128, 2), path)
    assert "was not loaded: it is damaged, or holds Python objects beside tensors" in message
    assert not canary.exists()
    if form == "raw":  # the trap does work
        pickle.loads(path.read_bytes())
        assert canary.exists()


@pytest.mark.parametrize("keep", [0, 50, 0.5, 0.999])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_truncated_files(suffix, keep, tmp_path):
    network, whole, path = Network(CNN(), 128, 2), tmp_path / f"whole{suffix}", tmp_path / f"w{suffix}"
    save_file(network.state_dict(), whole) if suffix == ".safetensors" else torch.save(network.state_dict(), whole)
    content = whole.read_bytes()
    path.write_bytes(content[: keep if isinstance(keep, int) else int(len(content) * keep)])
    assert "damaged" in refused(network, path)


def test_files_that_are_something_else(tmp_path):
    network = Network(CNN(), 128, 2)
    (tmp_path / "text.pth").write_text("hello")
    assert "damaged" in refused(network, tmp_path / "text.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    assert "holds no state dict" in refused(network, tmp_path / "list.pth")
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(1)}, buffer)
    (tmp_path / "pickle.safetensors").write_bytes(buffer.getvalue())
    assert "no safetensors file" in refused(network, tmp_path / "pickle.safetensors")


@pytest.mark.parametrize("name", ["none.pth", "none.safetensors"])
def test_missing_file(name, tmp_path):
    message = refused(Network(CNN(), 128, 2), tmp_path / name)
    assert message == f"{tmp_path / name} cannot be read: No such file or directory."


def test_weights_by_name_are_torchvisions(published, monkeypatch):
    class Entry:
        name = "IMAGENET1K_V1"

        def get_state_dict(self, progress, check_hash):
            assert check_hash
            return published

    models = types.SimpleNamespace(list_models=lambda: ["resnet18"], get_model_weights=lambda name: [Entry()])
    torchvision = types.ModuleType("torchvision")
    vars(torchvision).update(models=models)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    network = model_factory("resnet18", 3, 96, weights="torchvision:IMAGENET1K_V1")()
    assert torch.equal(network.state_dict()["backbone.conv1.weight"], published["conv1.weight"])
    with pytest.raises(UnskewError, match="no weights 'IMAGENET1K_V7' for resnet18; did you mean IMAGENET1K_V1"):
        model_factory("resnet18", 3, 96, weights="torchvision:IMAGENET1K_V7")()
    with pytest.raises(UnskewError, match="torchvision has no weights for the model 'resnet50-v1'; give a file"):
        model_factory("resnet50-v1", 3, 96, weights="torchvision:IMAGENET1K_V1")()
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(UnskewError, match=r"pip install 'unskew\[vision\]'"):
        model_factory("resnet18", 3, 96, weights="torchvision:IMAGENET1K_V1")()

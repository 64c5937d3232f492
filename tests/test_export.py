import json
import logging
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

from unskew import export
from unskew.errors import UnskewError
from unskew.export import export_onnx, export_safetensors
from unskew.models import Network, model_factory

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


@pytest.mark.parametrize(("model", "size"), [("cnn", 24), ("resnet18", 32)])
def test_onnx_gives_torchs_logits(model, size, tmp_path, capfd, recwarn):
    network = model_factory(model, 3, size)()
    network(torch.rand(4, 3, size, size))
    random_state, disabled = torch.get_rng_state(), logging.root.manager.disable
    difference = export_onnx(network, tmp_path / "out" / "model.onnx", size)
    assert 0 <= difference <= 1e-4
    assert network.training
    assert torch.equal(torch.get_rng_state(), random_state)
    assert logging.root.manager.disable == disabled
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["model.onnx"]

    content = (tmp_path / "out" / "model.onnx").read_bytes()
    for trace in (b"stack_trace", b"network.py"):  # the paths of whoever exported it
        assert trace not in content
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (images,), (logits,) = session.get_inputs(), session.get_outputs()
    assert (images.name, images.type, images.shape[1:]) == ("images", "tensor(float)", [3, size, size])
    assert (logits.name, logits.shape[1:]) == ("logits", [3])
    batch = torch.rand(7, 3, size, size)
    (found,) = session.run(["logits"], {"images": batch.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(found, network.eval()(batch).numpy(), atol=1e-4)


def test_an_onnx_model_that_differs_is_not_written(tmp_path, monkeypatch):
    network = Network(nn.Conv2d(3, 4, 3), 4, 2)
    path = tmp_path / "model.onnx"
    path.write_text("from before")
    write = export._write

    def wrong(network, images, path):
        with torch.no_grad():
            network.head[2].bias.add_(0.01)
        write(network, images, path)
        with torch.no_grad():
            network.head[2].bias.sub_(0.01)

    monkeypatch.setattr(export, "_write", wrong)
    with pytest.raises(UnskewError, match=r"logits differ from torch's by 0\.01, more than 0\.0001; .* not written"):
        export_onnx(network, path, 16)
    assert path.read_text() == "from before"
    assert len(list(tmp_path.iterdir())) == 1
    assert export_onnx(network, path, 16, tolerance=0.1) == pytest.approx(0.01, rel=1e-3)


def test_a_network_that_gives_nan_is_not_written(tmp_path):
    network = Network(nn.Conv2d(3, 4, 3), 4, 2)
    network.head.state_dict()["2.bias"].fill_(float("nan"))
    with pytest.raises(UnskewError, match="differ"):
        export_onnx(network, tmp_path / "model.onnx", 16)
    assert not list(tmp_path.iterdir())


def test_a_network_that_cannot_be_traced(tmp_path, capfd):
    class Stubborn(nn.Module):
        def forward(self, x):
            return x.mean((2, 3)) if x.sum().item() > 0 else x.amax((2, 3))

    with pytest.raises(UnskewError, match="The network could not be exported to ONNX: ") as caught:
        export_onnx(Network(Stubborn(), 3, 2), tmp_path / "model.onnx", 16)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["onnxruntime", "onnxscript"])
def test_absent_packages_name_the_extra(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnskewError, match=rf"{package}.*pip install 'unskew\[export\]'"):
        export_onnx(Network(nn.Conv2d(3, 4, 3), 4, 2), tmp_path / "model.onnx", 16)


def test_plain_weights_have_the_backbones_names(tmp_path):
    network = model_factory("resnet18", 3, 96)()
    export_safetensors(network, tmp_path / "w.safetensors")
    with safe_open(tmp_path / "w.safetensors", framework="pt") as file:
        names = set(file.keys())
        inside = {"layer1.0.conv1.weight": "backbone.layer1.0.conv1.weight", "head.2.bias": "head.2.bias"}
        for name, own in inside.items():
            assert torch.equal(file.get_tensor(name), network.state_dict()[own])
        normalisation = json.loads(file.metadata()["normalisation"])
    head = {"head.0.weight", "head.0.bias", "head.2.weight", "head.2.bias"}
    assert names == set(network.backbone.state_dict()) | head
    assert normalisation["mean"] == pytest.approx([0.485, 0.456, 0.406])
    assert normalisation["std"] == pytest.approx([0.229, 0.224, 0.225])


def test_plain_weights_of_a_backbone_with_a_head(tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Sequential(nn.Conv2d(3, 4, 1))

        def forward(self, x):
            return self.head(x)

    with pytest.raises(UnskewError, match=r"has a head\.0\.bias of its own"):
        export_safetensors(Network(Own(), 4, 2), tmp_path / "w.safetensors")
    assert not list(tmp_path.iterdir())

import json

import numpy as np
import pytest
import torch
from keras_resnet import forward, made_up, save_h5, save_tfjs
from safetensors.torch import load_file

from unskew.errors import UnskewError
from unskew.models import model_factory
from unskew.models.keras import convert, read


@pytest.fixture(scope="module")
def weights():
    return {recent: made_up(recent) for recent in (True, False)}


@pytest.fixture(scope="module")
def images():
    return torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def features(path, images):
    network = model_factory("resnet50-v1", 3, 96, weights=path)().eval()
    with torch.no_grad():
        return network.double().features(images.double())


@pytest.mark.parametrize(
    ("recent", "kind", "told", "epsilon"),
    [
        (True, "tfjs", 0.01, 0.01),
        (False, "tfjs", None, 1e-3),
        (True, "h5", None, 1.001e-5),
        (False, "whole h5", None, 1e-3),
    ],
)
def test_features_are_those_of_keras(weights, images, tmp_path, recent, kind, told, epsilon):
    own = weights[recent]
    if kind == "tfjs":
        source = save_tfjs(tmp_path / "model", own, told)
    else:
        pytest.importorskip("h5py")
        source = save_h5(tmp_path / "weights.h5", own, whole=kind == "whole h5")
    out = tmp_path / "converted.safetensors"
    assert convert(source, out) == 53 * 5 + 2
    expected = forward(own, images, recent, epsilon)
    assert expected.std() > 0.1
    torch.testing.assert_close(features(out, images), expected, rtol=1e-4, atol=1e-4)


def test_the_classifier_is_kept_under_torchvisions_name(weights, tmp_path):
    convert(save_tfjs(tmp_path / "model", weights[True], None), tmp_path / "out.safetensors")
    found = load_file(tmp_path / "out.safetensors")
    assert np.array_equal(found["fc.weight"].numpy(), weights[True]["predictions/kernel"].T)
    assert np.array_equal(found["fc.bias"].numpy(), weights[True]["predictions/bias"])


def test_colours_and_the_stride_matter(weights, images, tmp_path):
    """What a wrong conversion would give is far from right: the comparison above can fail."""
    own = weights[True]
    convert(save_tfjs(tmp_path / "model", own, None), tmp_path / "out.safetensors")
    right = forward(own, images, True, 1.001e-5)
    assert (features(tmp_path / "out.safetensors", images.flip(1)) - right).abs().max() > 0.01
    with pytest.raises(UnskewError, match=r"of a resnet50-v1, not of a resnet50: use --model resnet50-v1"):
        model_factory("resnet50", 3, 96, weights=tmp_path / "out.safetensors")()


def test_packed_weights_are_unpacked(weights, tmp_path):
    path = save_tfjs(tmp_path / "model", {"a/kernel": np.arange(6, dtype=np.uint8).reshape(2, 3)}, None, shards=1)
    model = json.loads(path.read_text())
    model["weightsManifest"][0]["weights"][0]["quantization"] = {"dtype": "uint8", "scale": 0.5, "min": -1.0}
    path.write_text(json.dumps(model))
    assert read(path).get("a", "kernel").tolist() == [[-1.0, -0.5, 0.0], [0.5, 1.0, 1.5]]


def test_the_command(weights, tmp_path, run, cli):
    source = save_tfjs(tmp_path / "model", weights[False], 1e-3)
    done = run("weights", "convert", source.parent, "--out", tmp_path / "w.safetensors")
    assert "267 tensors; use it with --model resnet50-v1 --weights" in done.out
    assert cli("weights", "convert", tmp_path / "none.h5").status == 2


def test_bad_files_are_told(weights, tmp_path):
    pytest.importorskip("h5py")
    small = {"dense/kernel": np.zeros((2, 2), np.float32)}
    out = tmp_path / "out.safetensors"
    cases = {
        save_tfjs(tmp_path / "other", small, None): "no ResNet-50 of Keras: it has no conv1/kernel; its layers",
        save_h5(tmp_path / "other.h5", small, whole=False): "no ResNet-50 of Keras",
        save_tfjs(tmp_path / "v15", weights[True], 1e-5, stride=1): r"no ResNet-50 v1: conv3_block1_1_conv has stride",
    }
    cut = save_tfjs(tmp_path / "cut", small, None, shards=1)
    (cut.parent / "group1-shard1of1.bin").write_bytes(b"\0" * 12)
    cases[cut] = "end before dense/kernel: they are cut short"
    lost = save_tfjs(tmp_path / "lost", small, None)
    (lost.parent / "group1-shard2of3.bin").unlink()
    cases[lost] = "group1-shard2of3.bin, which model.json beside it names, is missing"
    for name, content, words in (
        ("text.json", "{", "no layers model"),
        ("text.h5", "no", "no .h5 of Keras"),
        ("weights.bin", "", "unknown kind"),
    ):
        (tmp_path / name).write_text(content)
        cases[tmp_path / name] = words
    cases[tmp_path / "gone.h5"] = "there is no such file"
    for path, words in cases.items():
        with pytest.raises(UnskewError, match=words):
            convert(path, out)
    assert not out.exists()

"""The benchmarks run, and what they compute from times is right; no test looks at a time itself."""

import json
import threading

import pytest
import torch

from benchmarks import __main__ as run
from benchmarks import decode, growth, loops, table, watch
from benchmarks.setup import Setup, noise
from benchmarks.turns import Turns
from unskew.engine.method import Batch, Loss
from unskew.methods import METHODS
from unskew.methods.erm import ERM

TINY = Setup("cpu", "cnn", None, 16, 64, 16)


def test_everything_in_small(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "OUT", tmp_path / "out")
    monkeypatch.setattr(loops, "WINDOWS", 2)
    monkeypatch.setattr(growth, "EPOCHS", (1, 2))
    monkeypatch.setattr(growth, "COUNTS", (256, 512, 1024))
    monkeypatch.setattr(decode, "measure", lambda: {"images_per_second_on_cores": {"1": 500.0}})
    run.main(["--device", "cpu", "--model", "cnn", "--size", "16", "--samples", "256", "--batch-size", "32"])
    found = json.loads((tmp_path / "out" / "cpu.json").read_text())
    assert set(found["ratios"]) == {"erm", "ph", "smix", "lmix", "lff", "erm, streamed"}
    assert all(ratio > 0 for ratio in found["ratios"].values())
    assert set(found["images_per_second"]) >= {"bare", "evaluation", "input pipeline"}
    assert found["host_syncs_per_step"] == dict.fromkeys(loops.METHODS_TIMED, 0)
    assert 0.5 < sum(found["operator_shares"]["erm"].values()) <= 1
    assert {"device", "versions", "threads", "precision", "stem", "batch_size"} <= set(found["setup"])
    assert (tmp_path / "out" / "cpu.md").read_text() == capsys.readouterr().out[:-1]


def test_a_stem_goes_with_a_resnet_only():
    import argparse

    def chosen(**given):
        return run.setup_from(argparse.Namespace(device="cpu", size=32, compile=False, **given))

    assert (chosen(model=None).model, chosen(model=None).stem) == ("resnet18", "photo")
    assert chosen(model="cnn").stem is None


def test_variants_take_turns():
    order: list[str] = []

    def variant(name):
        def go(turn):
            turn.start()
            for window in range(2):
                order.append(f"{name}{window}")
                turn.epoch()

        return go

    ticks = iter(range(100))
    turns = Turns(lambda: next(ticks))
    for name in "ab":
        turns.add(name, variant(name))
    seconds = turns.seconds(2)
    assert order == ["a0", "b0", "a1", "b1"]
    assert seconds == {"a": [1, 1], "b": [1, 1]}
    assert threading.active_count() < 10


def test_a_variant_that_fails_is_not_waited_for():
    def broken(turn):
        turn.start()
        raise ValueError("no such thing")

    turns = Turns(lambda: 0.0)
    turns.add("broken", broken)
    with pytest.raises(ValueError, match="no such thing"):
        turns.seconds(1)


def test_a_step_that_waits_is_counted(monkeypatch):
    class Waits(ERM):
        def forward(self, batch: Batch) -> Loss:
            loss, metrics = super().forward(batch)
            return loss * (1.0 if loss.item() > 0 else 2.0), metrics

    monkeypatch.setitem(METHODS, "waits", Waits)
    data = noise(TINY.samples, TINY.size)
    assert watch.host_syncs(TINY, "waits", data) == 1
    assert watch.host_syncs(TINY, "erm", data) == 0


def test_the_line_through_times():
    fit = growth.line([1000, 2000, 4000], [1.5, 2.5, 4.5])
    assert fit == pytest.approx({"fixed_seconds": 0.5, "microseconds_each": 1000.0, "r_squared": 1.0})
    assert growth.line([1000, 2000, 4000], [1.0, 4.0, 16.0])["r_squared"] < 0.99


def test_photos_are_decoded(tmp_path):
    paths = decode.made_up(tmp_path, 2)
    assert decode.speed(paths, 1) > 0
    paths[0].write_bytes(b"no photo")
    with pytest.raises(AssertionError, match="1 photos cannot be read"):
        decode.speed(paths, 1)


def test_noise_is_what_it_says():
    data = noise(400, 224)
    assert (data.images.shape[-1], data.size) == (256, 224)
    assert data.aligned.float().mean() == pytest.approx(0.95)
    assert torch.equal(data.bias == data.labels, data.aligned)


def test_the_table():
    found = {
        "setup": {"model": "cnn", "stem": None, "size": 32, "samples": 2048, "batch_size": 128, "precision": "float32",
                  "compile": False, "device": "cpu", "versions": {"torch": "2.13"}},
        "images_per_second": {"bare": 2400.0, "erm": 2300.0},
        "ratios": {"erm": 1.04},
        "host_syncs_per_step": {"erm": 0.0},
        "memory_gb": {"erm": {"epoch 2": 0.5, "epoch 10": None}},
        "against_samples": {"samples": [5000, 500000], "size": 8,
                            "ph": {"fixed_seconds": 0.5, "microseconds_each": 20.0, "r_squared": 0.999}},
        "operator_shares": {"erm": {"convolution": 0.6}},
        "decode": {"images_per_second_on_cores": {"1": 500.0}},
    }  # fmt: skip
    text = table.markdown(found)
    assert "cnn, 32 px, 2,048 images, batch 128, float32; cpu, torch 2.13" in text
    assert "| erm | 2,300 | 1.04 | 0 | 0.500 |  |" in text
    assert "| decode, 1 core | 500 | | | | |" in text
    assert "- ph, 5,000 to 500,000 images of 8 px: 0.50 s + 20.0 µs an image, R² = 0.99900" in text
    assert "- erm's time: convolution 60%" in text

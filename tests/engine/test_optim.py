from typing import Any

import pytest
import torch

from unskew.engine.ema import Average
from unskew.engine.optim import lr_factor, make_optimizer, set_lr
from unskew.engine.settings import Settings, default_batch_size
from unskew.errors import UnskewError
from unskew.options import build


def test_constant():
    assert [lr_factor(Settings(), p) for p in (0, 0.5, 0.99)] == [1, 1, 1]


def test_warmup_rises_to_one():
    settings = Settings(warmup=0.2)
    assert lr_factor(settings, 0.1) == pytest.approx(0.5)
    assert lr_factor(settings, 0.2) == 1


def test_cosine_halves_in_the_middle_and_ends_at_zero():
    settings = Settings(schedule="cosine")
    assert lr_factor(settings, 0) == 1
    assert lr_factor(settings, 0.5) == pytest.approx(0.5)
    assert lr_factor(settings, 1) == pytest.approx(0)


def test_one_cycle_peaks_after_fifteen_percent():
    settings = Settings(schedule="one-cycle")
    assert lr_factor(settings, 0.075) == pytest.approx(0.5)
    assert lr_factor(settings, 0.15) == 1
    assert lr_factor(settings, 0.575) == pytest.approx(0.5)


def test_a_group_keeps_its_own_rate_under_the_schedule():
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    groups = [{"params": [a]}, {"params": [b], "lr": 0.5, "weight_decay": 0.0}]
    optimizer = make_optimizer(groups, Settings(lr=0.1, weight_decay=0.3), torch.device("cpu"))
    set_lr(optimizer, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.25]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.0]


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_optimizers_are_fused_and_descend(name):
    x = torch.nn.Parameter(torch.tensor([3.0]))
    optimizer = make_optimizer([{"params": [x]}], Settings(optimizer=name, lr=0.1), torch.device("cpu"))
    assert optimizer.defaults["fused"]
    for _ in range(100):
        optimizer.zero_grad()
        (x**2).sum().backward()
        optimizer.step()
    assert abs(x.item()) < 0.5


def test_average_is_a_running_mean_of_weights_and_buffers():
    layer = torch.nn.BatchNorm1d(1)
    average: Any = Average(layer, decay=0.9)
    layer.weight.data.fill_(2.0)
    layer.running_mean.fill_(4.0)
    layer.num_batches_tracked.fill_(7)
    average.update()  # the first step weighs the new value 1 − 2/11
    assert average.model.weight.item() == pytest.approx(1 + (1 - 2 / 11))
    assert average.model.running_mean.item() == pytest.approx(4 * (1 - 2 / 11))
    assert average.model.num_batches_tracked.item() == 7
    for _ in range(300):
        average.update()
    assert average.model.weight.item() == pytest.approx(2.0)


@pytest.mark.parametrize("bad", [{"epochs": 0}, {"lr": -1.0}, {"ema": 1.0}, {"warmup": 1.5}, {"weight_decay": -0.1}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(UnskewError, match=f"'erm': {next(iter(bad))} must be "):
        build(Settings, bad, "'erm'")


def test_default_batch_size_gives_small_sets_steps():
    sizes = [default_batch_size(n, 32) for n in (10, 320, 1200, 5120, 50_000)]
    assert sizes == [16, 16, 32, 256, 256]
    assert default_batch_size(50_000, 224) == 128

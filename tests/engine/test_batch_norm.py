"""BatchNorm of all processes, and back; and its statistics made anew."""

import copy
from typing import Any

import torch
from torch import nn

import unskew
from unskew.engine.batch_norm import plain_batch_norm, renew_statistics, sync_batch_norm
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.methods.erm import ERM
from unskew.testing import tiny_data


def test_there_and_back_changes_nothing_but_the_kind():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(5), nn.BatchNorm1d(5))
    images = torch.rand(8, 3, 6, 6)
    network(images)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    layer = network[1]
    sync_batch_norm(network)
    assert [type(m) for m in (network[1], network[4])] == [nn.SyncBatchNorm] * 2
    assert network[1] is layer
    average = copy.deepcopy(network)
    for one in (network, average):
        plain_batch_norm(one)
        assert [type(m) for m in (one[1], one[4])] == [nn.BatchNorm2d, nn.BatchNorm1d]
        assert vars(one[1]).keys() == vars(nn.BatchNorm2d(4)).keys()
        assert all(torch.equal(value, before[name]) for name, value in one.state_dict().items())


def test_a_users_own_is_left_alone():
    network = nn.Sequential(nn.SyncBatchNorm(4))
    sync_batch_norm(network)
    plain_batch_norm(network)
    assert type(network[0]) is nn.SyncBatchNorm


class Mixed(ERM):
    """Learns images that are half as bright as they are."""

    changed = True

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        return losses(self.model(samples.x / 2), samples.y).mean(), {}


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x).flatten(1)[:, ::7]


def statistics(method: type[Method] = Mixed, **options) -> tuple[nn.Module, torch.Tensor]:
    """A network trained on the tiny set, and the mean of its images as the network's BatchNorm sees them."""
    data = tiny_data(300)
    given = {"epochs": 2, "device": "cpu", "augment": "none", "precision": "float32", "progress": False, **options}
    run = unskew.train(data, method=method, model=Normed(), **given)
    network: Any = run.model
    seen = (data.images.float() / 255 - network.mean) / network.std
    return network.backbone.norm, seen.mean((0, 2, 3))


def test_what_learned_changed_images_gets_the_statistics_of_images_as_they_are():
    norm, mean = statistics()
    assert torch.allclose(norm.running_mean, mean, atol=0.01)
    assert norm.momentum == 0.1
    assert not norm.training
    of_changed, _ = statistics(batch_norm="trained")
    assert not torch.allclose(of_changed.running_mean, mean, atol=0.1)


def test_plain_training_keeps_its_own_unless_told():
    kept, again = statistics(ERM)[0], statistics(ERM, batch_norm="renewed")[0]
    assert not torch.equal(kept.running_mean, again.running_mean)
    assert torch.equal(kept.weight, again.weight)


def test_an_epoch_is_chosen_by_the_statistics_that_it_would_end_with():
    norm, mean = statistics(select="val", epochs=3)
    assert torch.allclose(norm.running_mean, mean, atol=0.05)  # of the four fifths that were learnt


def test_a_network_without_batch_norm_is_left_as_it_is():
    model = nn.Sequential(nn.Flatten(), nn.Linear(3, 2)).train()
    assert renew_statistics(model, tiny_data(), torch.device("cpu")) is model
    assert model.training

"""BatchNorm of all processes, and back."""

import copy

import torch
from torch import nn

from unskew.engine.batch_norm import plain_batch_norm, sync_batch_norm


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

import pytest
import torch

import unskew
from unskew.errors import UnskewError
from unskew.scores import evaluate
from unskew.testing import tiny_data
from unskew.validation import hold_out, validate


@pytest.fixture
def data():
    return tiny_data(samples=240)


def test_every_class_and_side_gives_its_share(data):
    partition = unskew.identify(data, "oracle")
    rest, held = hold_out(data, partition, 0.25, seed=3)
    assert set(rest.ids).isdisjoint(held.ids)
    assert len(rest) + len(held) == len(data)
    for label in range(3):
        for side in (True, False):
            whole = ((data.labels == label) & (data.aligned == side)).sum()
            assert ((held.labels == label) & (held.aligned == side)).sum() == pytest.approx(0.25 * whole, abs=0.5)


def test_the_sides_are_the_partitions_word_not_the_truth(data):
    partition = unskew.identify(data, "random", seed=1)
    _, held = hold_out(data, partition, 0.25)
    said = dict(zip(partition.ids, (~partition.conflicting).tolist()))
    assert held.aligned.tolist() == [said[i] for i in held.ids]
    assert held.bias is None


def test_a_seed_decides_what_is_held_out(data):
    partition = unskew.identify(data, "oracle")
    ids = [set(hold_out(data, partition, 0.25, seed=s)[1].ids) for s in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]


def test_balanced_is_as_if_looks_were_spread_evenly_over_the_classes(data):
    class Guesses(torch.nn.Module):
        def forward(self, images):
            return torch.eye(3)[torch.zeros(len(images), dtype=torch.int64)]

    _, held = hold_out(data, unskew.identify(data, "oracle"), 0.25)
    found, scores = validate(Guesses(), held, "cpu"), evaluate(Guesses(), held, device="cpu")
    assert (found.aligned, found.conflicting, found.count) == (scores.aligned, scores.unbiased, len(held))
    assert data.num_classes == 3
    assert found.balanced == pytest.approx(found.aligned / 3 + 2 * found.conflicting / 3)


def test_a_share_without_conflicting_samples_is_refused(data):
    with pytest.raises(UnskewError, match="holds no sample of one side .*: hold out more"):
        hold_out(data, unskew.identify(data, "oracle"), 0.01)

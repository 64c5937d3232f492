import pytest
import torch

from unskew.engine.streams import Stream, Streams, batch_and_steps, make_plan

POOL = torch.arange(100, 130)


def one(stream: Stream, samples: int = 30, parts: int = 1) -> Streams:
    return Streams({"x": stream}, samples=samples, parts=parts)


def test_an_epoch_is_a_permutation_of_the_pool():
    plan = make_plan(one(Stream(POOL)), 10, seed=0, epoch=0)
    assert plan.streams["x"].index.shape == (3, 10)
    assert sorted(plan.streams["x"].index.flatten().tolist()) == POOL.tolist()


def test_the_tail_that_does_not_fill_a_batch_changes_each_epoch():
    plans = [make_plan(one(Stream(POOL)), 8, seed=0, epoch=e) for e in range(2)]
    left_out = [set(POOL.tolist()) - set(plan.streams["x"].index.flatten().tolist()) for plan in plans]
    assert [len(some) for some in left_out] == [6, 6]
    assert left_out[0] != left_out[1]


@pytest.mark.parametrize("other", [{"seed": 1}, {"epoch": 1}])
def test_seed_and_epoch_decide_everything(other):
    streams = one(Stream(POOL, noise=3))
    base = {"seed": 0, "epoch": 0}
    a, b, c = (make_plan(streams, 10, **values).streams["x"] for values in (base, base, base | other))
    for field in ("index", "augment", "noise"):
        assert torch.equal(getattr(a, field), getattr(b, field))
        assert not torch.equal(getattr(a, field), getattr(c, field))


def test_replacement_draws_from_a_small_pool():
    plan = make_plan(one(Stream(torch.tensor([5, 7]), replace=True), samples=40), 10, seed=0, epoch=0)
    assert set(plan.streams["x"].index.flatten().tolist()) == {5, 7}
    assert plan.steps == 4


def test_without_replacement_a_small_pool_is_gone_through_in_turn():
    plan = make_plan(one(Stream(torch.tensor([5, 7, 9])), samples=12), 6, seed=0, epoch=0)
    drawn = plan.streams["x"].index.flatten()
    assert torch.bincount(drawn, minlength=10)[[5, 7, 9]].tolist() == [4, 4, 4]
    assert all(sorted(turn.tolist()) == [5, 7, 9] for turn in drawn.reshape(4, 3))


def test_a_shuffled_stream_is_the_same_batch_augmented_alike():
    streams = Streams({"x1": Stream(POOL), "x2": Stream(shuffle_of="x1")}, samples=30)
    plan = make_plan(streams, 10, seed=0, epoch=0)
    x1, x2 = plan.streams["x1"], plan.streams["x2"]
    assert not torch.equal(x1.index, x2.index)
    for step in range(3):
        assert sorted(x1.index[step].tolist()) == sorted(x2.index[step].tolist())
        for row, index in enumerate(x2.index[step]):
            twin = (x1.index[step] == index).nonzero().item()
            assert torch.equal(x2.augment[step, row], x1.augment[step, twin])


def test_parts_cover_the_pool_once():
    drawn = [make_plan(one(Stream(POOL), parts=3), 5, 0, epoch).streams["x"].index for epoch in range(3)]
    assert sorted(torch.cat(drawn).flatten().tolist()) == POOL.tolist()


def test_a_batch_larger_than_the_data_is_the_data():
    assert batch_and_steps(one(Stream(POOL)), 256) == (30, 1)

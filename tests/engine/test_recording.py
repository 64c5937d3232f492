"""A recorded step does what the step does: on a GPU, where there is one."""

import pytest
import torch

import unskew
from unskew.engine.fit import decide, fit
from unskew.identifiers import IDENTIFIERS
from unskew.methods import METHODS
from unskew.methods.erm import ERM
from unskew.testing import TinyBackbone, check_method, tiny_data

EVERY = (*METHODS.values(), *IDENTIFIERS.values())
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="records on a CUDA device only")


class Counts(ERM):
    recordable = True
    seen = 0

    def after_step(self, engine, batch, out) -> None:
        self.seen += 1


class Moves(ERM):
    recordable = True
    last = torch.zeros(1)

    def after_step(self, engine, batch, out) -> None:
        self.last = out[0].detach().clone()


@pytest.mark.parametrize("method", [Counts, Moves])
def test_a_promise_to_be_recordable_is_checked(method):
    with pytest.raises(AssertionError, match="recordable, but a step changes"):
        check_method(method)


def test_the_promise_is_not_inherited():
    class Inherits(ERM):
        seen = 0

        def after_step(self, engine, batch, out) -> None:
            self.seen += 1

    check_method(Inherits)


@needs_gpu
@pytest.mark.parametrize("method", [m for m in EVERY if vars(m).get("recordable", False)], ids=lambda m: m.__name__)
@pytest.mark.parametrize("options", [{"optimizer": "sgd", "lr": 0.05, "schedule": "one-cycle"}, {"ema": 0.8}])
def test_replaying_changes_nothing(method, options):
    data = tiny_data(samples=480)
    partition = unskew.identify(data, "oracle") if "partition" in method.needs else None
    backbone = TinyBackbone()

    class EachTime(method):  # the same, without the promise
        pass

    def go(cls):
        given = {"epochs": 3, "batch_size": 16, "device": "cuda", "precision": "float32", **options}
        trained, engine = fit(decide("some", cls, data, given, backbone), data, partition)
        return engine, [p.detach().cpu() for p in trained.model.parameters()]

    recorded, ours = go(method)
    each, theirs = go(EachTime)
    assert recorded._replayed._graph is not None
    assert each._replayed._graph is None
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    for a, b in zip(recorded.rows, each.rows):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-3)


@needs_gpu
def test_a_run_begun_on_a_cpu_goes_on_on_a_gpu_and_back(tmp_path):
    data, options = tiny_data(), {"batch_size": 16, "optimizer": "adam", "precision": "float32", "out": tmp_path}
    options |= {"method": "erm", "epochs": 3, "model": TinyBackbone()}

    class Stop(Exception):
        pass

    class StopAfter:
        def __init__(self, epoch: int) -> None:
            self.last = epoch

        def start(self, *given) -> None: ...
        def step(self) -> None: ...
        def end(self) -> None: ...
        def epoch(self, stage, row) -> None:
            if row["epoch"] > self.last:
                raise Stop

    for device, last in (("cpu", 1), ("cuda", 2)):
        with pytest.raises(Stop):
            unskew.train(data, device=device, resume=True, listeners=[StopAfter(last)], **options)
    run = unskew.train(data, device="cpu", resume=True, **options)
    assert [row["epoch"] for row in run.metrics] == [1, 2, 3]

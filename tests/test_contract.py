"""Every method and identifier of ours keeps the contract, and breaking it is noticed."""

import pytest
import torch

from unskew.engine.method import Batch, Loss, Method, losses
from unskew.engine.streams import Stream, Streams
from unskew.identifiers import IDENTIFIERS
from unskew.methods import METHODS
from unskew.methods.erm import ERM
from unskew.methods.lmix import LMix
from unskew.testing import WaitedForTheHost, check_method


@pytest.mark.parametrize("method", [*METHODS.values(), *IDENTIFIERS.values()], ids=lambda m: m.__name__)
def test_ours(method: type[Method]) -> None:
    check_method(method)


@pytest.mark.parametrize("pairing", ["aligned+aligned", "conflicting+conflicting", "all+all"])
@pytest.mark.parametrize("method", ["smix", "lmix"])
def test_pairings(method: str, pairing: str) -> None:
    check_method(METHODS[method], pairing=pairing)


@pytest.mark.parametrize(
    "options", [{"pairing": "single"}, {"zeta": 0.0}, {"weighted_erm": False}, {"ema": 0.9, "schedule": "one-cycle"}]
)
def test_smix_options(options: dict) -> None:
    check_method(METHODS["smix"], **options)


@pytest.mark.parametrize(
    "options", [{"feature_bn": "eval"}, {"optimizer": "sgd", "lr": 0.01}, {"beta_a": 0.5}, {"seeks": "error"}]
)
def test_lmix_options(options: dict) -> None:
    check_method(METHODS["lmix"], **options)


class LearnsWeights(LMix):
    """Without looks, no sample acts on another."""

    coupled = False
    recordable = True


@pytest.mark.parametrize("options", [{}, {"feature_bn": "eval"}, {"reverse_reg": True}])
def test_lmix_that_learns_weights(options: dict) -> None:
    check_method(LearnsWeights, learns="weight", **options)


class Sums(ERM):
    def forward(self, batch: Batch) -> Loss:
        return losses(self.model(batch["all"].x), batch["all"].y).sum(), {}


class Waits(ERM):
    def forward(self, batch: Batch) -> Loss:
        loss, metrics = super().forward(batch)
        return loss * (1.0 if loss.item() > 0 else 2.0), metrics


class Masks(ERM):
    def forward(self, batch: Batch) -> Loss:
        each = losses(self.model(batch["all"].x), batch["all"].y)
        return each[each > 0].mean(), {}


class Writes(ERM):
    def forward(self, batch: Batch) -> Loss:
        each = losses(self.model(batch["all"].x), batch["all"].y)
        each = each.clone()
        each[each.detach() > 100] = torch.zeros(1)
        return each.mean(), {}


class Forgets(ERM):
    """Its loss depends on how often it stepped, which no checkpoint holds."""

    steps = 0

    def forward(self, batch: Batch) -> Loss:
        loss, metrics = super().forward(batch)
        return loss * (1 + self.steps), metrics

    def after_step(self, engine, batch: Batch, out: Loss) -> None:
        self.steps += 1


class Rounds(ERM):
    """Its mean is a product with a matrix, which autocast rounds."""

    def forward(self, batch: Batch) -> Loss:
        each = losses(self.model(batch["all"].x), batch["all"].y)
        return each @ torch.full_like(each, 1 / len(each)), {}


class Rolls(ERM):
    def streams(self) -> Streams:
        return Streams({"all": Stream(torch.randperm(len(self.data))[:20])}, samples=20)


@pytest.mark.parametrize(
    ("broken", "error", "words"),
    [
        (Sums, AssertionError, "half the batch"),
        (Waits, WaitedForTheHost, "_local_scalar_dense"),
        (Masks, WaitedForTheHost, "aten.index"),
        (Writes, WaitedForTheHost, "index_put"),
        (Forgets, AssertionError, "resumed"),
        (Rounds, AssertionError, "under bfloat16"),
        (Rolls, AssertionError, "not a function of"),
    ],
)
def test_a_broken_method_is_noticed(broken: type[Method], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check_method(broken)


@pytest.mark.parametrize("method", ["smix", "lmix"])
def test_pairs_drawn_in_turn(method: str) -> None:
    check_method(METHODS[method], with_replacement=False)


def test_a_run_too_short_to_interrupt_is_no_check() -> None:
    with pytest.raises(AssertionError, match="before it could be interrupted"):
        check_method(ERM, epochs=1)

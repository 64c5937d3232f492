"""What the kinds of stage 1 share: wrong answers, the partition they make, and what an epoch tells of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.data.partition import FEWEST, Partition, at_least, quality
from unskew.engine.engine import Engine
from unskew.engine.method import Method
from unskew.options import option


@dataclass(frozen=True)
class Suspects:
    """Options of every stage 1."""

    fewest: int = option(
        FEWEST, "fewer conflicting samples a class, on average, and the next suspects are taken", least=1
    )


class Judged(Method):
    """The whole set is looked at after every epoch; conflicting is what is wrong at the last look."""

    config: Any
    how: ClassVar[str]
    found: Tensor | None = None

    def epoch_end(self, engine: Engine) -> None:
        judged = engine.judge(self.model)
        self.found = torch.stack([judged.predictions.float(), judged.losses], 1).cpu()
        log_errors(engine, self.found)

    def result(self) -> Partition:
        assert self.found is not None
        return errors_partition(self.data, self.found, self.config.fewest, self.how)

    def get_extra_state(self) -> dict[str, Any]:
        return {"found": self.found}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.found = state["found"]


def wrong_in(found: Tensor, labels: Tensor) -> Tensor:
    """Of predicted class and loss, N × 2: which are wrong; a class of −1 is no answer yet."""
    predicted = found[:, 0].long()
    return (predicted != labels) & (predicted >= 0)


def log_errors(engine: Engine, found: Tensor) -> None:
    wrong = wrong_in(found, engine.data.labels)
    engine.log(train_accuracy=1 - wrong.float().mean().item(), conflicting=int(wrong.sum()))
    log_truth(engine, wrong, wrong, found[:, 1])


def errors_partition(data: Dataset, found: Tensor, fewest: int, how: str, notes: Sequence[str] = ()) -> Partition:
    """Wrong is conflicting; the score is 1 − p(label)."""
    score = 1 - torch.exp(-found[:, 1])
    conflicting, note = at_least(wrong_in(found, data.labels), score, minimum=fewest * data.num_classes)
    told = (*([note] if note else []), *notes)
    return Partition.of(data, conflicting, score, how, predictions=found[:, :1].to(torch.int16), notes=told)


def log_truth(engine: Engine, conflicting: Tensor, wrong: Tensor, each: Tensor) -> None:
    """Where the truth is known: how well the partition finds it, the losses of the two true subsets, and how wrong
    answers and the loss of this epoch go with the true split (Pearson's ρ)."""
    aligned = engine.data.aligned
    if aligned is None:
        return
    q = quality(conflicting, ~aligned)
    engine.log(precision=q.precision, recall=q.recall, f1=q.f1, rho=q.rho)
    if aligned.any() and not aligned.all():
        engine.log(loss_aligned=each[aligned].mean().item(), loss_conflicting=each[~aligned].mean().item())
        with_loss = torch.corrcoef(torch.stack([each, (~aligned).float()]))[0, 1].item()
        engine.log(rho_wrong=quality(wrong, ~aligned).rho, rho_loss=with_loss)

"""Which epoch's weights to keep: the best on a validation set, by groups that need no bias labels.

A pseudo-group is a class and a side of it, aligned or conflicting, as stage 1's model sees the validation set. Their
worst accuracy stands in for that of the true groups. Where those are known, the epoch that they would choose (the
oracle's) is kept as well, only to tell what not knowing them costs.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor, nn

from unskew.data.dataset import Dataset
from unskew.engine.inference import predict_logits
from unskew.errors import UnskewError
from unskew.scores import Scores, evaluate, score

SMALLEST_GROUP = 5  # samples, for a pseudo-group to count: one alone would be right or wrong by chance


@dataclass(frozen=True)
class Validation:
    """Accuracies on a validation set; what is called aligned or conflicting there is stage 1's word.

    Attributes
    ----------
    worst_pseudo_group : float
        The lowest of the (label, side) groups, those with few samples left aside: what to choose by.
    balanced : float
        Of the sides as they would be were looks and classes independent: 1/K of K classes' samples aligned. Plain
        accuracy would choose the shortcut, which most samples follow.
    aligned, conflicting : float
        Not a number where no sample is on that side.
    worst_group : float or None
        Of the true groups, where they are known; only the oracle chooses by it.
    groups : dict
        Accuracy of each pseudo-group.
    """

    worst_pseudo_group: float
    balanced: float
    aligned: float
    conflicting: float
    worst_group: float | None
    groups: Mapping[str, float]
    count: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def rank(self) -> tuple[float, float]:
        """Higher is better; the balanced accuracy decides between equals."""
        return self.worst_pseudo_group, self.balanced


def with_sides(data: Dataset, conflicting: Tensor) -> Dataset:
    """The same samples, with stage 1's word in place of the truth."""
    return replace(data, aligned=~conflicting, bias=None, group_weights=None)


def validation_of(predictions: Tensor, sides: Dataset, truth: Dataset | None = None) -> Validation:
    assert sides.aligned is not None
    side = (~sides.aligned).long()
    scores = score(predictions, replace(sides, bias=side))
    true = score(predictions, truth).worst_group if truth is not None and truth.bias is not None else None
    groups, large = {}, []
    for name, accuracy in scores.groups.items():
        label, _, which = name.rpartition("/")
        inside = (sides.labels == list(sides.class_names).index(label)) & (side == int(which))
        groups[f"{label}/{'conflicting' if which == '1' else 'aligned'}"] = accuracy
        if int(inside.sum()) >= SMALLEST_GROUP:
            large.append(accuracy)
    worst = min(large or groups.values())
    aligned, conflicting = (math.nan if value is None else value for value in (scores.aligned, scores.unbiased))
    own = 1 / sides.num_classes
    known = [(w, v) for w, v in ((own, scores.aligned), (1 - own, scores.unbiased)) if v is not None]
    balanced = sum(w * v for w, v in known) / sum(w for w, _ in known)
    return Validation(worst, balanced, aligned, conflicting, true, groups, scores.count)


class Selection:
    """Looks at the model after each epoch, and keeps the weights of the best.

    Parameters
    ----------
    sides : Dataset
        The validation set as :func:`with_sides` gives it.
    truth : Dataset
        The same samples, with their true bias where that is known.
    share : float
        Of the training set, where they were held out of it; else 0.
    """

    def __init__(self, sides: Dataset, truth: Dataset, share: float = 0.0) -> None:
        if list(sides.ids) != list(truth.ids):
            raise UnskewError("the validation set and its sides are not the same samples.")
        self.sides, self.truth, self.share = sides, truth, share
        self.epochs: list[dict[str, Any]] = []
        self.kept: dict[str, tuple[int, dict[str, Tensor]]] = {}
        self._ranks: dict[str, tuple[float, ...]] = {}

    def look(self, epoch: int, model: nn.Module, device: str) -> dict[str, float]:
        """Called by the engine; what it gives goes into the epoch's row."""
        found = validation_of(predict_logits(model, self.sides, device).argmax(1), self.sides, self.truth)
        self.epochs.append({"epoch": epoch, **found.to_dict()})
        self._keep("chosen", found.rank, epoch, model)
        row = {"val_worst_pseudo_group": found.worst_pseudo_group, "val_balanced": found.balanced}
        if found.worst_group is None:
            return row
        self._keep("oracle", (found.worst_group,), epoch, model)
        return {**row, "val_worst_group": found.worst_group}

    def _keep(self, which: str, rank: tuple[float, ...], epoch: int, model: nn.Module) -> None:
        if which not in self._ranks or rank > self._ranks[which]:
            self._ranks[which] = rank
            self.kept[which] = (epoch, {k: v.detach().cpu().clone() for k, v in model.state_dict().items()})

    def settle(self, model: nn.Module, test: Dataset | None, device: str) -> tuple[int, dict[str, Any], Scores | None]:
        """Give the model the chosen weights; the epoch they are of, what to record, and their scores on ``test``."""
        epoch, weights = self.kept["chosen"]
        oracle = best = None
        if "oracle" in self.kept:
            oracle_epoch, oracle_weights = self.kept["oracle"]
            oracle = {"epoch": oracle_epoch, "val_worst_group": self._ranks["oracle"][0]}
            model.load_state_dict(oracle_weights)
            best = evaluate(model, test, device=device).worst_group if test is not None else None
        model.load_state_dict(weights)
        scores = evaluate(model, test, device=device) if test is not None else None
        if oracle is not None and best is not None and scores is not None and scores.worst_group is not None:
            oracle |= {"test_worst_group": best, "gap": best - scores.worst_group}
        at = next(row for row in self.epochs if row["epoch"] == epoch)
        record = {"by": "worst pseudo-group", "held_out": self.share or None, **at, "oracle": oracle}
        return epoch, {**record, "epochs": self.epochs}, scores

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": self.epochs, "kept": self.kept, "ranks": self._ranks}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.epochs, self.kept, self._ranks = list(state["epochs"]), dict(state["kept"]), dict(state["ranks"])


def told(record: Mapping[str, Any]) -> str:
    """One sentence on how the epoch was chosen, and what the oracle's choice would have been worth."""
    text = f"epoch {record['epoch']} was chosen by the worst pseudo-group ({record['worst_pseudo_group']:.1%})"
    oracle = record["oracle"]
    if oracle is None:
        return text
    text += f"; true groups would choose epoch {oracle['epoch']}"
    if oracle.get("gap") is None:
        return text
    return text + f", with {oracle['test_worst_group']:.1%} on the worst group of test (gap {oracle['gap']:+.1%})"


def choose(results: list[Mapping[str, Any]]) -> tuple[int, int | None]:
    """Of several runs (lines of ``results.jsonl``) the one to take; and the oracle's, where true groups are known."""
    marks = [line.get("validation") or {} for line in results]
    if not marks or any("worst_pseudo_group" not in mark for mark in marks):
        raise UnskewError("to choose between runs, each needs a validation: train them with select='val'.")
    ours = max(range(len(marks)), key=lambda i: (marks[i]["worst_pseudo_group"], marks[i]["balanced"]))
    if any(mark.get("worst_group") is None for mark in marks):
        return ours, None
    return ours, max(range(len(marks)), key=lambda i: marks[i]["worst_group"])

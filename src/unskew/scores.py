"""How good a model is, each number under its own name."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unskew.data.dataset import Dataset
from unskew.engine.inference import predict_logits
from unskew.errors import UnskewError


@dataclass(frozen=True)
class Scores:
    """Accuracies as fractions; None where the data does not say which samples conflict.

    Attributes
    ----------
    all : float
        Over every sample.
    unbiased, aligned : float
        Over the conflicting samples, and over those that follow the shortcut.
    gap : float
        all − unbiased: what the shortcut still costs.
    worst_group : float
        The lowest of the (label, bias) groups.
    minority_mean : float
        Mean over the groups that conflict.
    train_weighted : float
        Mean over the groups, weighted by their share of the *training* set.
    worst_class : float
    groups, classes : dict
        Accuracy of each.
    intervals : dict
        95% Wilson interval of each accuracy above that is a share of samples.
    count : int
    """

    all: float
    unbiased: float | None
    aligned: float | None
    gap: float | None
    worst_group: float | None
    minority_mean: float | None
    train_weighted: float | None
    worst_class: float
    groups: Mapping[str, float]
    classes: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    count: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        shown = ("all", "unbiased", "aligned", "gap", "worst_group", "minority_mean", "train_weighted", "worst_class")
        lines = []
        for name in shown:
            value = getattr(self, name)
            if value is None:
                continue
            low, high = self.intervals.get(name, (None, None))
            between = f"  (95%: {low:.1%} to {high:.1%})" if low is not None else ""
            lines.append(f"{name:15} {value:6.1%}{between}")
        return "\n".join(lines)


def evaluate(model: nn.Module, data: Dataset, *, device: str = "auto") -> Scores:
    """Score the model it is given on the data it is given.

    Parameters
    ----------
    model : nn.Module
        Float images in [0, 1] in, logits out: ``run.model``, or anybody's.
    data : Dataset
    """
    if len(data) == 0 or bool((data.labels < 0).any()):
        raise UnskewError(f"{data.name} has samples without labels: only labelled ones can be scored.")
    logits = predict_logits(model, data, device)
    if logits.shape[1] != data.num_classes:
        raise UnskewError(
            f"the model knows {logits.shape[1]} classes and {data.name} has {data.num_classes}: "
            "they must be the same, in the same order."
        )
    return score(logits.argmax(1), data)


def score(predictions: Tensor, data: Dataset) -> Scores:
    """Scores of predicted classes."""
    right = predictions == data.labels
    of: dict[str, Tensor] = {"all": right}
    if data.aligned is not None:
        of |= {"unbiased": right[~data.aligned], "aligned": right[data.aligned]}
    classes = {name: right[data.labels == i] for i, name in enumerate(data.class_names)}
    classes = {name: part for name, part in classes.items() if len(part)}
    worst_class = min(classes, key=lambda name: _mean(classes[name]))
    of["worst_class"] = classes[worst_class]
    groups, minority, weighted = _groups(right, data)
    if groups:
        of["worst_group"] = groups[min(groups, key=lambda name: _mean(groups[name]))]
    value = {name: _mean(part) for name, part in of.items() if len(part)}
    return Scores(
        all=value["all"],
        unbiased=value.get("unbiased"),
        aligned=value.get("aligned"),
        gap=value["all"] - value["unbiased"] if "unbiased" in value else None,
        worst_group=value.get("worst_group"),
        minority_mean=minority,
        train_weighted=weighted,
        worst_class=value["worst_class"],
        groups={name: _mean(part) for name, part in groups.items()},
        classes={name: _mean(part) for name, part in classes.items()},
        intervals={name: wilson(part) for name, part in of.items() if len(part)},
        count=len(right),
    )


def _groups(right: Tensor, data: Dataset) -> tuple[dict[str, Tensor], float | None, float | None]:
    """The (label, bias) groups that occur; mean over those that conflict; mean by training frequency."""
    if data.bias is None:
        return {}, None, None
    groups: dict[str, Tensor] = {}
    conflicting, weights = [], []
    for label, bias in torch.stack([data.labels, data.bias], 1).unique(dim=0).tolist():
        inside = (data.labels == label) & (data.bias == bias)
        name = f"{data.class_names[label]}/{bias}"
        groups[name] = right[inside]
        if data.aligned is not None and not data.aligned[inside].any():
            conflicting.append(_mean(right[inside]))
        table = data.group_weights
        known = table is not None and bias < table.shape[1]
        weights.append(float(table[label, bias]) if table is not None and known else 0.0)
    minority = sum(conflicting) / len(conflicting) if conflicting else None
    total = sum(weights)
    weighted = sum(w * _mean(part) for w, part in zip(weights, groups.values())) / total if total else None
    return groups, minority, weighted


def _mean(right: Tensor) -> float:
    return right.double().mean().item()


def wilson(right: Tensor, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval for a share."""
    n, p = len(right), _mean(right)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5
    return max(centre - half, 0.0), min(centre + half, 1.0)

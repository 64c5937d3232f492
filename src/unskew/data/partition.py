"""Stage 1's answer: which samples follow the shortcut (aligned) and which break it (conflicting)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.errors import UnskewError

FEWEST = 2  # conflicting samples a class, on average: fewer are few to train on


@dataclass(frozen=True, repr=False)
class Partition:
    """Which samples conflict, and how sure that is.

    Parameters
    ----------
    conflicting : bool tensor, N
    score : float tensor, N
        From 0 (surely aligned) to 1 (surely conflicting); the prediction history's is how little its label is trusted.
    labels : int64 tensor, N
    ids, class_names : sequences of str
    how : str
        What made it: ``ph``, ``sp``, ``oracle``, ``random``, a file's name.
    predictions : int16 tensor, N×K, optional
        The class predicted after each epoch.
    losses : float16 tensor, N×K, optional
        The loss after each epoch.
    suspects : bool tensor, N×K, optional
        Who would have been conflicting, had stage 1 ended with that epoch.
    weight : float tensor, N, optional
        The weight each sample ended with in stage 1's loss.
    bias : int64 tensor, N, optional
    fingerprint : str
        Of the data it was made for.
    notes : sequence of str
        What a reader should know, such as a conflicting part that had to be widened.
    made_by : str
        A digest of everything that stage 1 was told, where it was trained.
    val : Partition, optional
        The sides of the validation set, as stage 1's model sees them.
    """

    conflicting: Tensor
    score: Tensor
    labels: Tensor
    ids: Sequence[str]
    class_names: Sequence[str]
    how: str
    predictions: Tensor | None = None
    losses: Tensor | None = None
    suspects: Tensor | None = None
    weight: Tensor | None = None
    bias: Tensor | None = None
    fingerprint: str = ""
    notes: Sequence[str] = field(default=())
    made_by: str = ""
    val: "Partition | None" = None

    @classmethod
    def of(cls, data: Dataset, conflicting: Tensor, score: Tensor, how: str, **more) -> "Partition":
        return cls(
            conflicting, score.float(), data.labels, data.ids, data.class_names, how,
            bias=data.bias, fingerprint=data.fingerprint, **more,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.conflicting)

    def __repr__(self) -> str:
        return f"<Partition {self.how}: {int(self.conflicting.sum()):,} of {len(self):,} samples conflict>"

    @property
    def conflicting_share(self) -> float:
        return self.conflicting.float().mean().item()

    @cached_property
    def times_right(self) -> Tensor | None:
        """ŝ: how often each sample was predicted right."""
        return None if self.predictions is None else (self.predictions == self.labels[:, None]).sum(1)

    @cached_property
    def usual_wrong_class(self) -> Tensor | None:
        """The class each sample is most often mistaken for; −1 where it never was."""
        if self.predictions is None:
            return None
        counts = torch.zeros(len(self), len(self.class_names), dtype=torch.int16)
        seen = self.predictions >= 0  # −1: a sample that was not looked at in that epoch
        counts.scatter_add_(1, self.predictions.long().clamp(min=0), seen.to(torch.int16))
        counts.scatter_(1, self.labels[:, None], 0)
        most, which = counts.max(1)
        return torch.where(most > 0, which, -1)

    def quality(self, aligned: Tensor) -> "Quality":
        return quality(self.conflicting, ~aligned)

    def matched_to(self, data: Dataset) -> "Partition":
        """These rows in the order of ``data``, found by id; more rows than ``data`` has are left aside."""
        if self.fingerprint == data.fingerprint and list(self.ids) == list(data.ids):
            return self
        row = {name: i for i, name in enumerate(self.ids)}
        missing = [name for name in data.ids if name not in row]
        if missing:
            raise UnskewError(
                f"the partition ({self.how}) does not match {data.name}: it lacks {len(missing)} of {len(data)} "
                f"samples, the first is {missing[0]!r}; make it anew with `unskew identify`."
            )
        order = torch.tensor([row[name] for name in data.ids])
        ours = [self.class_names[i] for i in self.labels[order].tolist()]
        theirs = [data.class_names[i] for i in data.labels.tolist()]
        for name, a, b in zip(data.ids, ours, theirs):
            if a != b:
                raise UnskewError(
                    f"the partition ({self.how}) does not match {data.name}: {name!r} is {a!r} there "
                    f"and {b!r} in the data; make it anew with `unskew identify`."
                )

        # Class indices may differ between the two; names do not.
        known = {name: i for i, name in enumerate(data.class_names)}
        renumber = torch.tensor([*(known.get(name, -1) for name in self.class_names), -1], dtype=torch.int16)
        taken = self.at(order)
        return replace(
            taken,
            labels=data.labels,
            ids=data.ids,
            class_names=data.class_names,
            predictions=None if taken.predictions is None else renumber[taken.predictions.long()],
            bias=data.bias,
            fingerprint=data.fingerprint,
        )

    def at(self, rows: Tensor) -> "Partition":
        """These rows, in this order."""
        tensors = ("conflicting", "score", "labels", "predictions", "losses", "suspects", "weight", "bias")
        held = {name: getattr(self, name) for name in tensors}
        taken = {name: None if values is None else values[rows] for name, values in held.items()}
        return replace(self, ids=[self.ids[i] for i in rows.tolist()], fingerprint="", **taken)

    def save(self, path: str | Path) -> None:
        """A CSV that a person can open, and beside it ``….history.npz`` with what a table cannot show."""
        from unskew.data.partition_file import save_partition

        save_partition(self, path)


@dataclass(frozen=True)
class Quality:
    """How well a partition finds the truly conflicting samples."""

    precision: float
    recall: float
    f1: float  # of the conflicting samples
    macro_f1: float  # mean over conflicting and aligned
    rho: float  # Pearson's correlation of found and true


def quality(found: Tensor, true: Tensor) -> Quality:
    both = (found & true).sum().item()
    n, a, b = len(true), found.sum().item(), true.sum().item()

    def ratio(top: float, bottom: float) -> float:
        return top / bottom if bottom else 0.0

    f1 = ratio(2 * both, a + b)
    neither = n - a - b + both
    aligned_f1 = ratio(2 * neither, 2 * n - a - b)
    rho = ratio(n * both - a * b, (a * (n - a) * b * (n - b)) ** 0.5)
    return Quality(ratio(both, a), ratio(both, b), f1, (f1 + aligned_f1) / 2, rho)


def at_least(
    conflicting: Tensor, score: Tensor, minimum: int, among: Tensor | None = None
) -> tuple[Tensor, str | None]:
    """Widen a conflicting part that is too small to train on, by the next highest scores, and say so.

    Equal scores are taken together; those outside ``among`` are never suspect, nor is a score of 0. Where all are
    conflicting, nothing can be told apart; none at all is an answer.
    """
    found, note = int(conflicting.sum()), None
    suspect = score > 0 if among is None else among & (score > 0)
    if found < minimum and suspect.any():
        enough = min(minimum, int(suspect.sum()))
        conflicting = conflicting | suspect & (score >= score[suspect].topk(enough).values[-1])
        note = f"only {found} samples were found conflicting, few to train on"
        if conflicting.sum() > found:
            note += f": widened to the {int(conflicting.sum())} most suspect"
    if not conflicting.any():
        note = "nothing was found conflicting: there is no sign of a shortcut here"
    elif conflicting.all():
        raise UnskewError(
            "every sample was found conflicting: the samples cannot be told apart; "
            "train with --method erm, or change how long stage 1 trains (--identify.epochs)."
        )
    return conflicting, note

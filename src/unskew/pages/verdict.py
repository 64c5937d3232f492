"""The verdict in words: how many samples break the pattern, in which classes, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unskew.data.dataset import Dataset
from unskew.data.partition import FEWEST, Partition, Quality
from unskew.identifiers import NEEDS_BIAS

SP_ACCURACY = 0.85  # γ: the training accuracy at which a single look would have been taken
MOST_CLASSES_NAMED = 3
SCATTERED = 0.25
ONE_SIDED, FEW = 0.75, 5  # share of a class's suspects that are taken for one other class, of at least so many


@dataclass(frozen=True)
class Meter:
    """One thing to trust the partition by: where it stands from 0 to 1, in words, and what that says."""

    name: str
    value: float
    reading: str
    grade: str  # good, fair, poor
    means: str


@dataclass(frozen=True)
class ClassFound:
    name: str
    count: int
    conflicting: int
    mistaken: str  # the usual wrong class of its conflicting samples; empty where none is known
    mistaken_count: int

    @property
    def share(self) -> float:
        return self.conflicting / self.count if self.count else 0.0

    @property
    def scattered(self) -> bool:
        """Taken for many classes: the commonest of them says little."""
        return self.mistaken_count < SCATTERED * self.conflicting

    @property
    def one_sided(self) -> bool:
        """Nearly always taken for the same class, as samples with a wrong label are."""
        return self.conflicting >= FEW and self.mistaken_count >= ONE_SIDED * self.conflicting


@dataclass(frozen=True)
class Verdict:
    headline: str
    sentences: Sequence[str]
    sure: str  # high, fair, low; empty where a single look, or none, cannot tell
    meters: Sequence[Meter]
    classes: Sequence[ClassFound]
    quality: Quality | None  # none either for a stage 1 that was told the truth
    clear: bool  # whether there is a sign of a shortcut at all
    learnt: bool  # whether stage 1 learnt enough to tell
    trained: bool  # by a network that was watched; a coin or a given file was not


def verdict(data: Dataset, partition: Partition) -> Verdict:
    classes, told = _classes(data, partition), partition.how in NEEDS_BIAS
    count, total = int(partition.conflicting.sum()), len(partition)
    over_time = _over_time(partition)
    meters = [] if count == 0 else [_share(classes, count, total), *over_time]
    watched = partition.times_right is not None
    strict = count if partition.suspects is None else int(partition.suspects[:, -1].sum())
    best, enough = _best_accuracy(data, partition)
    learnt = best >= enough
    many = not watched or strict >= FEWEST * len(data.class_names)
    firm = not over_time or any(meter.grade != "poor" for meter in over_time)
    clear = count > 0 and learnt and many and firm
    sure = "low" if meters and not learnt else ""
    if len(meters) > 1 and clear:
        grades = {m.grade for m in meters}
        sure = "low" if "poor" in grades else "fair" if "fair" in grades else "high"
    return Verdict(
        headline=_headline(partition.how, count, total, clear, learnt),
        sentences=[*_doubts(total, count, strict, many, firm, best, enough), *_where(partition, classes, count, clear)],
        sure=sure,
        meters=meters if watched else [],
        classes=classes,
        quality=partition.quality(data.aligned) if data.aligned is not None and count and not told else None,
        clear=clear,
        learnt=learnt,
        trained=watched,
    )


def _headline(how: str, count: int, total: int, clear: bool, learnt: bool) -> str:
    if how == "random":
        return f"A coin called {count:,} of {total:,} samples conflicting."
    if not learnt:
        return "Stage 1 learnt too little to tell."
    if count == 0:
        return "No sign of a shortcut."
    if not clear:
        return "No clear sign of a shortcut."
    found = f"{count:,} of {total:,} samples ({count / total:.1%})"
    return f"{found} break the pattern that the rest of their class follows."


def _doubts(total: int, count: int, strict: int, many: bool, firm: bool, best: float, enough: float) -> list[str]:
    if best < enough:
        return [
            f"At its best epoch the network was right on {best:.0%} of each class on average; one that has taken a "
            f"shortcut is past {enough:.0%}. What it never got right may just be hard: train it for longer (--epochs), "
            "or with another --lr or --model."
        ]
    if count == 0:
        return [f"Every one of the {total:,} samples was learnt like the others of its class."]
    if not many:
        return [
            f"Only {strict:,} of {total:,} samples stand apart: too few to tell a shortcut from chance or from "
            f"wrong labels. The {count:,} most suspect are shown all the same."
        ]
    if not firm:
        return [
            f"{strict:,} of {total:,} samples were hardly learnt, but a single look names mostly others, and the list "
            "still changes: they are hard rather than against a pattern, or stage 1 was stopped too early."
        ]
    return []


def _best_accuracy(data: Dataset, partition: Partition) -> tuple[float, float]:
    """Mean over classes of what the network got right in its best epoch; and halfway from chance to all of it."""
    if partition.predictions is None:
        return 1.0, 0.0
    right, seen = partition.predictions == partition.labels[:, None], partition.predictions >= 0
    inside = [partition.labels == k for k in partition.labels.unique()]
    of_class = torch.stack([right[rows].sum(0) / seen[rows].sum(0).clamp(min=1) for rows in inside])
    return of_class.mean(0).max().item(), (1 + 1 / len(data.class_names)) / 2


def _where(partition: Partition, classes: Sequence[ClassFound], count: int, clear: bool) -> list[str]:
    if count == 0:
        return []
    said = [] if clear else [f"{count:,} of {len(partition):,} samples are suspected."]
    hit = sorted((c for c in classes if c.conflicting), key=lambda c: c.share, reverse=True)
    most = [f"{c.name} ({c.conflicting:,}, {c.share:.1%})" for c in hit[:MOST_CLASSES_NAMED]]
    every = "both" if len(classes) == 2 else f"all {len(classes)}"
    where = every if len(hit) == len(classes) else f"{len(hit)} of the {len(classes)}"
    if len(hit) == 1:
        said.append(f"All of them are in {most[0]}.")
    else:
        said.append(f"They are in {where} classes, most often in {', '.join(most[:-1])} and {most[-1]}.")
    if partition.how == "random":
        said.append("It is a baseline: nothing was looked for.")
    elif partition.how == "oracle":
        said.append("This is the true split, from the bias labels: nothing was looked for.")
    return said


def _classes(data: Dataset, partition: Partition) -> list[ClassFound]:
    wrong = partition.usual_wrong_class
    found = []
    for k, name in enumerate(data.class_names):
        inside = partition.labels == k
        suspects = inside & partition.conflicting
        mistaken, times = "", 0
        if wrong is not None:
            known = wrong[suspects][wrong[suspects] >= 0]
            if len(known):
                usual = int(known.mode().values)
                mistaken, times = data.class_names[usual], int((known == usual).sum())
        found.append(ClassFound(name, int(inside.sum()), int(suspects.sum()), mistaken, times))
    return found


def _share(classes: Sequence[ClassFound], count: int, total: int) -> Meter:
    shares = [c.share for c in classes if c.count]
    low, high = min(shares), max(shares)
    worst = max(high, 1.6 * count / total)  # a class may have more of them than the whole
    grade = "poor" if worst >= 0.6 else "fair" if worst >= 0.35 else "good"
    means = {
        "good": "A minority in every class, as samples that break a shortcut are.",
        "fair": "Much of some class: it may be hard rather than biased.",
        "poor": "Most of some class was never learnt: stage 1 did not learn that class, so this says little about it.",
    }[grade]
    return Meter(
        "Share of each class", 1 - high, f"{count / total:.1%} overall; {low:.1%} to {high:.1%} by class", grade, means
    )


def _over_time(partition: Partition) -> list[Meter]:
    suspects = partition.suspects
    if suspects is None or partition.predictions is None or suspects.shape[1] < 2 or not suspects[:, -1].any():
        return []
    wrong = partition.predictions != partition.labels[:, None]
    epochs = wrong.shape[1]
    accuracy = 1 - wrong.float().mean(0)
    learnt = (accuracy >= SP_ACCURACY).nonzero().flatten()
    look = int(learnt[0]) if len(learnt) else int(accuracy.argmax())
    back = max(1, epochs // 4)
    single, before, final = wrong[:, look], suspects[:, -1 - back], suspects[:, -1]
    agree, stable = _in_common(single, final), _in_common(before, final)
    several = f"{back} epochs" if back > 1 else "epoch"
    return [
        Meter(
            "A single look agrees",
            agree,
            f"{int(single.sum()):,} wrong at epoch {look + 1} ({accuracy[look]:.0%} right), "
            f"{int(final.sum()):,} suspected in the end: {agree:.0%} in common",
            _grade(agree, 0.6, 0.35),
            "Prediction history (PH) against a single prediction (SP): the more they agree, the plainer the case.",
        ),
        Meter(
            "Stable over the epochs",
            stable,
            f"{int(before.sum()):,} → {int(final.sum()):,} suspected in the last {several}, {stable:.0%} in common",
            _grade(stable, 0.9, 0.7),
            "A list that still changes at the end would be another with more epochs.",
        ),
    ]


def _in_common(one: torch.Tensor, two: torch.Tensor) -> float:
    return (one & two).sum().item() / (one | two).sum().item()


def _grade(value: float, good: float, fair: float) -> str:
    return "good" if value >= good else "fair" if value >= fair else "poor"

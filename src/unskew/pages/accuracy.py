"""After training: accuracy overall, by class and by group, plain training beside the debiased models."""

from collections.abc import Sequence
from dataclasses import dataclass

from unskew.scores import Scores
from unskew.training import Run

NAMES = {"all": "All", "unbiased": "Unbiased", "aligned": "Aligned", "worst_group": "Worst group"}
TITLES = {"erm": "plain training (ERM)", "lmix": "l-mix", "smix": "s-mix", "mixup": "mixup"}
SELECTED = {"last": "the weights of the last epoch", "val": "the weights of the epoch that validation chose"}
GRID = 12  # more classes or biases than this, and only the worst groups are listed
WORST = 12
MOST_CLASSES = 100


@dataclass(frozen=True)
class Cell:
    value: float | None
    between: str = ""
    against: str = ""  # the difference from plain training

    @property
    def tone(self) -> str:
        points = float(self.against or 0)
        return "up" if points > 0 else "down" if points < 0 else ""

    @property
    def shown(self) -> str:
        return "–" if self.value is None else f"{self.value:.1%}"


@dataclass(frozen=True)
class Grid:
    """Accuracy of each class (down) and bias (across)."""

    method: str
    biases: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float | None]]]


@dataclass(frozen=True)
class Accuracy:
    in_words: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    classes: Sequence[tuple[str, Sequence[Cell]]]
    grids: Sequence[Grid]
    worst: Sequence[tuple[str, Sequence[Cell]]]
    methods: Sequence[str]
    count: int
    selected: str
    compared: bool  # with plain training


def title(run: Run) -> str:
    return TITLES.get(run.result.method, run.result.method)


def accuracy(runs: Sequence[Run]) -> Accuracy | None:
    """None where nothing was scored."""
    scored = [(title(run), run.result.scores, run) for run in runs if run.result.scores is not None]
    if not scored:
        return None
    plain = next((scores for _, scores, run in scored if run.result.method == "erm"), None)
    known = [name for name in NAMES if any(getattr(scores, name) is not None for _, scores, _ in scored)]
    rows = [(name, [_cell(scores, plain, column) for column in known]) for name, scores, _ in scored]
    every = [scores for _, scores, _ in scored]
    names = list(every[0].classes)[:MOST_CLASSES]
    classes = [(name, [Cell(scores.classes.get(name)) for scores in every]) for name in names]
    grids, worst = _groups(scored)
    methods = [name for name, _, _ in scored]
    selected = " and ".join(dict.fromkeys(SELECTED[run.result.selected] for _, _, run in scored))
    compared = plain is not None and len(scored) > 1
    columns = [NAMES[name] for name in known]
    said = _in_words(scored)
    return Accuracy(said, columns, rows, classes, grids, worst, methods, every[0].count, selected, compared)


def _in_words(scored: Sequence[tuple[str, Scores, Run]]) -> str:
    """The last model, beside plain training or else the first."""
    name, scores, _ = scored[-1]
    other, base, _ = next((one for one in scored if one[2].result.method == "erm"), scored[0])
    if scores.unbiased is None or base.unbiased is None:
        said = f"With {name}, {scores.all:.1%} of all images are right"
        return f"{said}; with {other}, {base.all:.1%}." if base is not scores else f"{said}."
    said = f"With {name}, {scores.unbiased:.1%} of the images that break the shortcut are right"
    if base is not scores:
        return f"{said}; with {other}, {base.unbiased:.1%}."
    return f"{said}, and {scores.aligned:.1%} of those that follow it." if scores.aligned is not None else f"{said}."


def _cell(scores: Scores, plain: Scores | None, column: str) -> Cell:
    value = getattr(scores, column)
    low, high = scores.intervals.get(column, (None, None))
    between = "" if low is None or high is None else f"{100 * low:.0f}–{100 * high:.0f}"
    base = getattr(plain, column) if plain is not None and scores is not plain else None
    against = "" if base is None or value is None else f"{100 * (value - base):+.1f}"
    return Cell(value, between, against)


def _groups(scored: Sequence[tuple[str, Scores, Run]]) -> tuple[list[Grid], list[tuple[str, list[Cell]]]]:
    """Small tables as grids, of plain training (or else the first) and the last model; of larger ones the worst."""
    groups = scored[0][1].groups
    if not groups:
        return [], []
    split = [name.rpartition("/") for name in groups]
    labels, biases = list(dict.fromkeys(s[0] for s in split)), sorted({s[2] for s in split}, key=int)
    if len(labels) <= GRID and len(biases) <= GRID:
        first = next((one for one in scored if one[2].result.method == "erm"), scored[0])
        chosen = [first, scored[-1]] if first is not scored[-1] else [first]
        return [
            Grid(name, biases, [(k, [scores.groups.get(f"{k}/{b}") for b in biases]) for k in labels])
            for name, scores, _ in chosen
        ], []
    last = scored[-1][1].groups
    lowest = sorted(last, key=lambda name: last[name])[:WORST]
    return [], [(name, [Cell(scores.groups.get(name)) for _, scores, _ in scored]) for name in lowest]

"""What a table of the paper is made of: rows, what runs behind each, and the columns they run in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unskew.engine.recipes import recipe
from unskew.paper.spec import Spec

RATIOS = (0.95, 0.98, 0.99, 0.995)
PHOTOS = ("waterbirds", "celeba", "bar")
Column = float | str  # a ratio, or the name of a photo set
Printed = Mapping[Column, tuple[float | None, float | None]]
# Photo sets start from ImageNet; `unskew paper run --weights FILE` says which, for the results do not hang on a path.
PRETRAINED = {"model": "resnet50-v1", "weights": "imagenet"}
GIVEN = ("oracle", "random", "repair")  # kinds of stage 1 that train no network


@dataclass(frozen=True)
class Row:
    """One line of a table, in every column, or in ``only`` some. ``method`` None: stage 1 alone."""

    name: str
    method: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    identify: Mapping[str, Any] | None = None
    printed: Printed = field(default_factory=dict)
    only: Sequence[Column] = ()
    scratch: bool = False

    def spec(self, data: str, seed: int, scale: str, holdout: float = 0.0) -> Spec:
        """With the data set's recipe written out, so that a result is known again only while the recipe stands."""
        of = data if scale == "full" else "digits"
        start = PRETRAINED if of in PHOTOS and not self.scratch else {}
        options = {**recipe(of, self.method), **start, **self.options} if self.method else {}
        identify = self.identify and {**recipe(of, self.identify["name"], stage1=True), **start, **self.identify}
        if identify and identify["name"] in GIVEN:  # nothing of the recipe is for them
            identify = self.identify
        return Spec(data, self.method, seed, options, identify, scale, holdout)


@dataclass(frozen=True)
class Search:
    """Options to look for the best of, each between two values on a logarithmic scale, in so many trials."""

    space: Mapping[str, tuple[float, float]]
    trials: int


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    rows: Sequence[Row]
    ratios: Sequence[Column] = RATIOS
    data: str = "corrupted-cifar10:{ratio:g}"
    note: str = ""
    holdout: float = 0.0
    search: Search | None = None

    def specs(self, ratios: Sequence[Column], rows: Sequence[Row], seeds: int, scale: str) -> Iterator[tuple]:
        """(row, ratio, Spec), seed by seed, so that a run cut short has whole seeds."""
        for seed in range(seeds):
            for ratio in ratios:
                for row in rows:
                    if not row.only or ratio in row.only:
                        yield row, ratio, row.spec(self.source(ratio), seed, scale, self.holdout)

    def source(self, column: Column) -> str:
        return column if isinstance(column, str) else self.data.format(ratio=column)

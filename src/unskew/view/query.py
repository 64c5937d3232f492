"""Which samples to show: filters, an order and a page, as the address of the page asks for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.data.corrections import MARKS
from unskew.view.samples import Samples

PAGE = 60
ORDERS = ("certain", "uncertain", "data")
SIDES = ("conflicting", "aligned")


class BadQuery(ValueError):
    """Said to the page, in one sentence."""


@dataclass(frozen=True)
class Query:
    label: int | None = None
    predicted: int | None = None
    side: str = ""
    mark: str = ""  # one of MARKS, "any" or "none"
    low: float = 0.0
    high: float = 1.0
    text: str = ""
    order: str = "certain"
    page: int = 0


def parse(given: Mapping[str, str], classes: int) -> Query:
    """From the address; what is missing is not asked for."""

    def index(name: str) -> int | None:
        text = given.get(name, "")
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or int(text) >= classes:
            raise BadQuery(f"{name} is the number of a class, not {text!r}")
        return int(text)

    def number(name: str, default: float) -> float:
        try:
            value = float(given.get(name) or default)
        except ValueError:
            raise BadQuery(f"{name} is a number, not {given[name]!r}") from None
        return default if np.isnan(value) else value

    def one_of(name: str, known: Sequence[str], default: str) -> str:
        text = given.get(name) or default
        if text != default and text not in known:
            raise BadQuery(f"{name} is one of {', '.join(known)}, not {text!r}")
        return text

    return Query(
        label=index("label"),
        predicted=index("predicted"),
        side=one_of("side", SIDES, ""),
        mark=one_of("mark", (*MARKS, "any", "none"), ""),
        low=number("low", 0.0),
        high=number("high", 1.0),
        text=given.get("text", "").strip().casefold(),
        order=one_of("order", ORDERS, "certain"),
        page=int(min(max(number("page", 0), 0), 1e9)),
    )


def select(samples: Samples, query: Query, marks: Mapping[str, str]) -> np.ndarray:
    """The places of all samples that are asked for, in order."""
    wanted = np.ones(len(samples), bool)
    if query.label is not None:
        wanted &= samples.labels == query.label
    if query.predicted is not None and samples.predicted is not None:
        wanted &= samples.predicted == query.predicted
    if query.side:
        wanted &= samples.conflicting == (query.side == "conflicting")
    if query.low > 0 or query.high < 1:
        # Scores are float32: what the page shows as 0.05 is to be at least 0.05.
        wanted &= (samples.score >= query.low - 1e-6) & (samples.score <= query.high + 1e-6)
    if query.mark:
        wanted &= _marked(samples, query.mark, marks)
    if query.text:
        lowered = samples.lowered
        wanted &= np.fromiter((query.text in name for name in lowered), bool, len(lowered))
    if query.order == "data":
        return np.flatnonzero(wanted)
    order = samples.by_certainty if query.order == "certain" else samples.by_certainty[::-1]
    return order[wanted[order]]


def _marked(samples: Samples, mark: str, marks: Mapping[str, str]) -> np.ndarray:
    chosen = [name for name, given in marks.items() if mark in ("any", "none", given) and name in samples.place]
    found = np.zeros(len(samples), bool)
    found[[samples.place[name] for name in chosen]] = True
    return ~found if mark == "none" else found

"""Charts as plain SVG: readable in light and dark, in print without colour, and as a table of numbers."""

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup, escape

WIDTH, HEIGHT = 420, 220
LEFT, RIGHT, TOP, BELOW = 48, 14, 12, 34
COLOURS = ("c1", "c2", "c3", "c4", "c5", "c6")
MOST_NUMBERS = 60  # in the table below a chart
DASHES = ("", "6 4", "2 3", "9 3 2 3", "12 4", "4 6")


def line_chart(
    title: str,
    lines: Mapping[str, Sequence[float]],
    *,
    xs: Sequence[float] | None = None,
    across: tuple[float, float] | None = None,
    x_label: str = "epoch",
    note: str = "",
    colours: Sequence[str] = COLOURS,
    log: bool = False,
    top: float | None = None,
) -> Markup:
    """One line a name, against the epoch or ``xs``.

    Parameters
    ----------
    title, x_label, note : str
    lines : mapping of str to floats
        What is not a finite number is left out of the line.
    xs : sequence of float, optional
        By default 1, 2, 3…
    across : pair of float, optional
        Where the axis begins and ends; by default at the first and the last of ``xs``.
    colours : sequence of str
        Classes of the style sheet: ``aligned`` and ``conflict`` mean the same everywhere.
    log : bool
        A logarithmic height, for values that span decades.
    top : float, optional
        Cut what is higher.
    """
    longest = max(len(line) for line in lines.values())
    xs = list(range(1, longest + 1)) if xs is None else list(xs)
    values = [v for line in lines.values() for v in line if math.isfinite(v)] or [0.0]
    high = max(values) if top is None else min(max(values), top)
    log = log and min(values) > 0
    marks = _decades(min(values), high) if log else nice(min(*values, 0.0), high)
    limit = marks[-1]
    to = _scale(marks[0], limit, log)
    x_low, x_high = across or (xs[0], xs[-1] if xs[-1] > xs[0] else xs[0] + 1)

    def right(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (x - x_low) / (x_high - x_low)

    def up(y: float) -> float:
        return TOP + (HEIGHT - TOP - BELOW) * (1 - to(min(y, limit)))

    parts = [_grid(up(mark), _short(mark)) for mark in marks]
    ticks = [x for x in nice(x_low, x_high, 5) if x_low <= x <= x_high]
    ticks = ticks if x_label != "epoch" else [x for x in {x_low, *ticks} if x == int(x)]
    parts += [_below(right(x), _short(x)) for x in ticks]
    for i, line in enumerate(lines.values()):
        points = " ".join(f"{right(x):.1f},{up(y):.1f}" for x, y in zip(xs, line) if math.isfinite(y))
        kind = f'class="line {colours[i % len(colours)]}" stroke-dasharray="{DASHES[i % len(DASHES)]}"'
        parts.append(f'<polyline points="{points}" {kind}/>')
    ends = ", ".join(f"{name} ends at {line[-1]:.3g}" for name, line in lines.items() if len(line))
    keys = [(name, colours[i % len(colours)], DASHES[i % len(DASHES)]) for i, name in enumerate(lines)]
    columns = {x_label: [_short(x) for x in xs]} | {name: [f"{v:.3g}" for v in line] for name, line in lines.items()}
    columns = columns if longest <= MOST_NUMBERS else {}
    return _figure(title, f"{title}, by {x_label}: {ends}.", parts, x_label, note, keys, columns)


def bar_chart(
    title: str, heights: Mapping[str, Mapping[str, float]], *, x_label: str, note: str = "", colours: Sequence[str]
) -> Markup:
    """Stacked bars: ``heights["0"] = {"conflicting": 67, "aligned": 0}``; as high as the root of the count, so that few
    beside many can be seen."""
    kinds = list(dict.fromkeys(kind for bar in heights.values() for kind in bar))
    high = max([sum(bar.values()) for bar in heights.values()] or [1]) or 1
    room = (WIDTH - LEFT - RIGHT) / max(len(heights), 1)
    whole = HEIGHT - TOP - BELOW

    def up(value: float) -> float:
        return TOP + whole * (1 - math.sqrt(value / high))

    parts = [_grid(up(mark), _short(mark)) for mark in _root_marks(high)]
    every = max(1, math.ceil(len(heights) / 12))
    for i, (name, bar) in enumerate(heights.items()):
        x, under = LEFT + i * room, 0.0
        for k, kind in enumerate(kinds):
            value = bar.get(kind, 0)
            if value:
                y, y0 = up(under + value), up(under)
                size = f'x="{x + room * 0.12:.1f}" width="{room * 0.76:.1f}" y="{y:.1f}" height="{max(y0 - y, 1):.1f}"'
                parts.append(f'<rect {size} class="bar {colours[k % len(colours)]}"/>')
            under += value
        if i % every == 0:
            parts.append(_below(x + room / 2, name))
    keys = [(kind, colours[k % len(colours)], None) for k, kind in enumerate(kinds)]
    columns = {x_label: list(heights)}
    columns |= {kind: [f"{bar.get(kind, 0):g}" for bar in heights.values()] for kind in kinds}
    said = "; ".join(f"{name}: {sum(bar.values()):g}" for name, bar in heights.items())
    return _figure(title, f"{title}, by {x_label}. {said}.", parts, x_label, note, keys, columns)


def strip(right: Sequence[bool], seen: Sequence[bool] | None = None) -> Markup:
    """The history of one sample: a cell an epoch, full and low where it was right, tall where it was wrong."""
    seen = [True] * len(right) if seen is None else seen
    looks = [(5 * i, ok) for i, (ok, was) in enumerate(zip(right, seen)) if was]
    low = "".join(f"M{x} 7h4v6h-4z" for x, ok in looks if ok)
    tall = "".join(f"M{x} 1h4v12h-4z" for x, ok in looks if not ok)
    cells = f'<path d="{low}" class="ok"/><path d="{tall}" class="no"/>'
    said = "".join("right " if ok else "wrong " for ok, was in zip(right, seen) if was).strip()
    return Markup(
        f'<svg class="strip" viewBox="0 0 {5 * len(right)} 14" width="{5 * len(right)}" height="14" role="img" '
        f'aria-label="by epoch: {said}">{cells}</svg>'
    )


def nice(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from at most ``low`` to at least ``high``."""
    span = high - low
    if not span > 0:
        return [low, low + 1]
    step = 10 ** math.floor(math.log10(span / about))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if span / (step * m) <= about + 0.5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0**i for i in range(first, max(last, first + 1) + 1)]


def _root_marks(high: float) -> list[float]:
    steps = [m * 10**d for d in range(7) for m in (1, 2, 5)]
    marks = [0.0, float(int(high))]
    for mark in reversed([s for s in steps if s < high]):
        if math.sqrt(marks[-1] / high) - math.sqrt(mark / high) > 0.18 and math.sqrt(mark / high) > 0.12:
            marks.append(float(mark))
    return marks


def _scale(low: float, high: float, log: bool) -> Callable[[float], float]:
    if log:
        return lambda v: (math.log10(v) - math.log10(low)) / (math.log10(high) - math.log10(low))
    return lambda v: (v - low) / (high - low)


def _grid(y: float, text: str) -> str:
    line = f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" class="grid"/>'
    return f'{line}<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'


def _below(x: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - BELOW + 16}" text-anchor="middle">{escape(text)}</text>'


def _short(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:.4g}"


def _figure(
    title: str,
    said: str,
    parts: Sequence[str],
    x_label: str,
    note: str,
    keys: Sequence[tuple[str, str, str | None]],
    columns: Mapping[str, Sequence[str]],
) -> Markup:
    legend = ""
    for name, colour, dash in keys:
        mark = f'<path d="M0 5H22" class="line {colour}" stroke-dasharray="{dash}"/>'
        mark = mark if dash is not None else f'<rect x="4" width="12" height="10" class="bar {colour}"/>'
        drawn = f'<svg width="22" height="10" aria-hidden="true">{mark}</svg>'
        legend += f'<span class="key">{drawn}{escape(name)}</span>'
    axis = f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 3}" text-anchor="end" class="axis">{escape(x_label)}</text>'
    table = ""
    if columns:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
        lines = ("".join(f"<td>{escape(value)}</td>" for value in row) for row in zip(*columns.values()))
        rows = "".join(f"<tr>{line}</tr>" for line in lines)
        table = (
            f'<details class="numbers"><summary>Numbers<span class="unseen"> of {escape(title)}</span></summary>'
            f'<div class="scroll" tabindex="0" role="region" aria-label="Numbers of {escape(title)}">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
        )
    about = f'<p class="note">{escape(note)}</p>' if note else ""
    return Markup(
        f'<figure class="chart"><figcaption><strong>{escape(title)}</strong>'
        f'<span class="keys">{legend}</span></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(said)}">{"".join(parts)}{axis}</svg>'
        f"{about}{table}</figure>"
    )

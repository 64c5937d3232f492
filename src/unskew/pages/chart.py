"""A line chart as a few lines of SVG, readable in light and dark."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

WIDTH, HEIGHT, LEFT, BELOW = 360, 180, 44, 26
COLOURS = ("#3b7dd8", "#d8743b", "#3ba55d", "#a04bd8")


def line_chart(title: str, lines: Mapping[str, Sequence[float]]) -> Markup:
    """One line a name, against the epoch."""
    values = [v for line in lines.values() for v in line]
    low, high = min([*values, 0.0]), max(values, default=1.0)
    high = high if high > low else low + 1
    longest = max(len(line) for line in lines.values())

    def place(i: int, v: float) -> str:
        x = LEFT + (WIDTH - LEFT - 8) * (i / max(longest - 1, 1))
        y = 8 + (HEIGHT - BELOW - 8) * (1 - (v - low) / (high - low))
        return f"{x:.1f},{y:.1f}"

    parts = []
    for colour, line in zip(COLOURS, lines.values()):
        points = " ".join(place(i, v) for i, v in enumerate(line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    legend = " ".join(
        f'<span class="key"><i style="background:{colour}"></i>{escape(name)}</span>'
        for colour, name in zip(COLOURS, lines)
    )
    ends = ", ".join(f"{escape(name)} ends at {line[-1]:.3g}" for name, line in lines.items())
    base = HEIGHT - BELOW
    return Markup(
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}: {ends}">'
        f'<path d="M{LEFT} 8V{base}H{WIDTH - 8}" fill="none" stroke="currentColor" opacity=".4"/>'
        f'<text x="{LEFT - 6}" y="14" text-anchor="end">{high:.3g}</text>'
        f'<text x="{LEFT - 6}" y="{base}" text-anchor="end">{low:.3g}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 8}">1</text>'
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 8}" text-anchor="end">epoch {longest}</text>'
        f"{''.join(parts)}</svg><figcaption>{escape(title)} {legend}</figcaption></figure>"
    )

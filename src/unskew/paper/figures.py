"""The paper's figures from result lines, as SVG and PNG."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unskew.errors import UnskewError
from unskew.files import replacing
from unskew.paper.rows import Table

Line = Mapping[str, Any]


def draw(
    table: Table, lines: Sequence[Line], folder: Path, scale: str = "full", data_dir: Path | None = None
) -> list[Path]:
    """Draw the figure of the first seed there is, or of the data alone."""
    from matplotlib.figure import Figure

    if not table.rows:
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        _examples(figure, table, scale, data_dir)
        return _written(figure, table, folder)
    if table.search is not None:
        figure = Figure(figsize=(5.2, 4), layout="constrained")
        _plane(figure, table, lines, scale)
        return _written(figure, table, folder)
    by_key = {line["key"]: line for line in lines if "key" in line}
    specs = [spec for _, _, spec in table.specs(table.ratios, table.rows, 100, scale)]
    line = next((by_key[spec.key] for spec in specs if spec.key in by_key), None)
    if line is None:
        raise UnskewError(f"there are no results for {table.name} yet: unskew paper run {table.name}")
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.add_subplot()
    DRAW[table.name](axes, line)
    axes.set_title(f"{line['dataset']}, seed {line['seed']}", fontsize=9)
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return _written(figure, table, folder)


def _written(figure, table: Table, folder: Path) -> list[Path]:
    paths = [folder / f"{table.name}.{kind}" for kind in ("svg", "png")]
    for path in paths:
        with replacing(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], dpi=160, metadata={"Title": table.title})
    return paths


def _examples(figure, table: Table, scale: str, data_dir: Path | None, each: int = 2) -> None:
    """A column for each class: some that follow the shortcut above, some that break it below."""
    from unskew.paper.spec import Spec
    from unskew.paper.worker import data_of

    data, _, _ = data_of(Spec(table.data.format(ratio=table.ratios[0]), None, 0, scale=scale), data_dir)
    if data.aligned is None:
        raise UnskewError(f"{data.name} does not say which of its samples conflict.")
    grid = figure.subplots(2 * each, data.num_classes, squeeze=False)
    for k, name in enumerate(data.class_names):
        for half, inside in enumerate((data.aligned, ~data.aligned)):
            rows = (inside & (data.labels == k)).nonzero().flatten().tolist()
            for i in range(each):
                axes = grid[half * each + i, k]
                axes.set(xticks=[], yticks=[])
                if i < len(rows):
                    spread = rows[len(rows) * (2 * i + 1) // (2 * each)]  # the first are often all of one bias
                    axes.imshow(data.pixels[spread].numpy())
        grid[0, k].set_title(name, fontsize=8)
    grid[0, 0].set_ylabel("aligned", fontsize=8)
    grid[each, 0].set_ylabel("conflicting", fontsize=8)


def _plane(figure, table: Table, lines: Sequence[Line], scale: str) -> None:
    """The points tried, coloured by held-out accuracy; the best is ringed, with its accuracy on the test set."""
    from unskew.paper.search import trials

    points = trials(table, lines, scale)
    if not points or table.search is None:
        raise UnskewError(f"there are no results for {table.name} yet: unskew paper run {table.name}")
    first, second = ([line["spec"]["options"][name] for line in points] for name in table.search.space)
    values = [100 * line["validation"]["balanced"] for line in points]
    axes = figure.add_subplot()
    shown = axes.scatter(first, second, c=values, s=70, cmap="viridis")
    best = max(range(len(points)), key=values.__getitem__)
    test = points[best]["scores"]
    label = f"Beta({first[best]:.2g}, {second[best]:.2g}): test {test['all']:.1%} all, {test['unbiased']:.1%} unbiased"
    axes.scatter(first[best], second[best], s=220, facecolors="none", edgecolors="crimson", linewidths=2, label=label)
    low, high = zip(*table.search.space.values())
    axes.set(xscale="log", yscale="log", xlabel="α (aligned)", ylabel="β (conflicting)")
    axes.set(xlim=(low[0] * 0.8, high[0] * 1.25), ylim=(low[1] * 0.8, high[1] * 1.25))
    axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 1.13))
    figure.colorbar(shown, ax=axes, label="held-out accuracy, mean of the two true sides, %")


def _series(line: Line, name: str) -> list[float]:
    return [float(row[name]) for row in line["metrics"]]


def _losses(axes, line: Line) -> None:
    epochs = _series(line, "epoch")
    axes.plot(epochs, _series(line, "loss_aligned"), label="aligned")
    axes.plot(epochs, _series(line, "loss_conflicting"), label="conflicting")
    axes.set(xlabel="epoch", ylabel="mean loss")


def _correlation(axes, line: Line) -> None:
    epochs = _series(line, "epoch")
    axes.plot(epochs, _series(line, "train_accuracy"), label="training accuracy", color="grey")
    axes.plot(epochs, _series(line, "rho_wrong"), label="ρ of wrong answers")
    axes.plot(epochs, _series(line, "rho_loss"), label="ρ of the loss")
    axes.set(xlabel="epoch", ylim=(0, 1.02))


def _histogram(axes, line: Line) -> None:
    counts = line["histogram"]
    for shift, name in ((-0.2, "aligned"), (0.2, "conflicting")):
        total = max(sum(counts[name]), 1)
        places = [k + shift for k in range(len(counts[name]))]
        axes.bar(places, [count / total for count in counts[name]], width=0.4, label=name)
    axes.set(xlabel="times right", ylabel="share of its samples")


DRAW: Mapping[str, Callable[[Any, Line], None]] = {
    "losses": _losses,
    "correlation": _correlation,
    "histogram": _histogram,
}

"""``unskew paper list | run NAME | show NAME``."""

import json as to_json
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from unskew.errors import UnskewError, nearest
from unskew.paper import FIGURES, TABLES, Row, Table, table_named
from unskew.paper.rows import Column
from unskew.paper.spec import Spec

app = App(name="paper", help="The paper's tables: run them, and show ours beside the paper's figures.")
Name = Annotated[str, Parameter(help="A table; `unskew paper list` has them all.")]
Results = Annotated[Path, Parameter(help="Folder of the results.")]
Scale = Annotated[Literal["full", "tiny"], Parameter(help="tiny: some hundred digits, minutes on two cores.")]


@app.command(name="list")
def list_tables() -> None:
    """List the tables and figures."""
    for kind, tables in (("table", TABLES), ("figure", FIGURES)):
        for table in tables.values():
            size = f"{len(table.rows)} rows × {len(table.ratios)} columns"
            print(f"{table.name:16} {kind:7} {table.title} ({size})")


@app.command
def run(
    name: Name,
    /,
    *more: str,
    ratios: Annotated[list[float] | None, Parameter(consume_multiple=True)] = None,
    sets: Annotated[list[str] | None, Parameter(consume_multiple=True, help="Photo sets among the columns.")] = None,
    methods: Annotated[list[str] | None, Parameter(consume_multiple=True, help="Rows of the tables.")] = None,
    seeds: int = 5,
    scale: Scale = "full",
    workers: int | None = None,
    minutes: Annotated[float | None, Parameter(help="Begin no run that would not end by then.")] = None,
    device: str = "auto",
    compile: Annotated[bool, Parameter(help="torch.compile each run: worth it on a GPU.", negative="")] = False,
    executor: Annotated[
        Literal["local", "ray", "slurm"], Parameter(help="Processes here, a Ray cluster, or Slurm jobs.")
    ] = "local",
    data_dir: Path | None = None,
    weights: Annotated[Path | None, Parameter(help="ResNet-50 (v1) weights for photos.")] = None,
    results: Results = Path("results"),
) -> None:
    """Run what one or more tables need and the results do not hold yet."""
    from unskew.paper.runner import Outcome, default_workers, run_all
    from unskew.paper.search import run_search

    if seeds < 1 or (workers is not None and workers < 1) or (minutes is not None and not minutes > 0):
        raise UnskewError("--seeds and --workers must be at least 1, and --minutes above 0.")
    tables = [table_named(each) for each in (name, *more)]
    how: dict[str, Any] = {"workers": workers or default_workers(device), "device": device, "compile": compile}
    how |= {"executor": executor, "data_dir": data_dir, "weights": weights}
    how |= {"say": lambda text: print(text, flush=True)}
    specs: list[Spec] = []
    for table, rows in _rows(tables, methods):
        chosen = _columns(table, tables, ratios, sets)
        if scale == "full" and chosen:
            chosen = _there(chosen, asked=sets is not None, data_dir=data_dir)
        if table.search is None:
            specs += [spec for _, _, spec in table.specs(chosen, rows, seeds, scale)]
    started = time.monotonic()
    searched = [table for table in tables if table.search is not None]
    outcome = Outcome()
    if specs or not searched:
        outcome = run_all(_startable(specs, weights), results, minutes=minutes, **how)
    for table in searched:
        over = None if minutes is None else minutes - (time.monotonic() - started) / 60
        found = run_search(table, results, scale, minutes=over, **how)
        outcome.failed += found.failed
        outcome.left += found.left
    for table in tables:
        show(table.name, results=results, scale=scale, data_dir=data_dir)
    if outcome.left:
        print(f"note: for want of time {len(outcome.left)} runs were not begun: the same command goes on with them")
    if outcome.failed:
        spec, why = outcome.failed[0]
        raise UnskewError(f"{len(outcome.failed)} runs failed, the first is {spec}: {why.removeprefix('unskew: ')}")


@app.command
def show(
    name: Name,
    /,
    *,
    json: Annotated[bool, Parameter(help="A list of objects instead of Markdown.", negative="")] = False,
    scale: Scale = "full",
    data_dir: Path | None = None,
    results: Results = Path("results"),
) -> None:
    """Print a table from the results that are there, or draw a figure (SVG and PNG)."""
    import sys

    from unskew.paper.show import as_json, as_markdown
    from unskew.paper.store import FILE, read_lines

    table = table_named(name)
    lines, broken = read_lines(results / FILE)
    for note in broken:
        print(f"note: {note}", file=sys.stderr)
    if name in FIGURES and not json:
        from unskew.paper.figures import draw

        print("\n".join(f"written: {path}" for path in draw(table, lines, results / "figures", scale, data_dir)))
        return
    print(to_json.dumps(as_json(table, lines, scale), indent=1) if json else as_markdown(table, lines, scale))


def _rows(tables: list[Table], names: list[str] | None) -> list[tuple[Table, list[Row]]]:
    """Of each table the rows that were asked for, or all; a name may be of one of them only."""
    known = {row.name for table in tables for row in table.rows}
    for name in names or ():
        if name not in known:
            where = f"table {tables[0].name} has" if len(tables) == 1 else "these tables have"
            raise UnskewError(f"{where} no row {name!r}; {nearest(name, sorted(known))}")
    return [(table, [row for row in table.rows if names is None or row.name in names]) for table in tables]


def _columns(table: Table, tables: list[Table], ratios: list[float] | None, sets: list[str] | None) -> list[Column]:
    """What was asked for; of several tables each takes what it has."""
    for ratio in ratios or ():
        if not 0 < ratio < 1:
            raise UnskewError(f"a ratio lies between 0 and 1, as 0.95; not {ratio:g}.")
    if ratios and all(isinstance(column, str) for each in tables for column in each.ratios):
        raise UnskewError(f"table {table.name} has no ratios: its columns are {', '.join(map(str, table.ratios))}.")
    known = sorted({column for each in tables for column in each.ratios if isinstance(column, str)})
    for name in sets or ():
        if name not in known:
            where = f"table {table.name} has" if len(tables) == 1 else "these tables have"
            raise UnskewError(f"{where} no photo set {name!r}; {nearest(name, known)}")
    numeric = any(not isinstance(column, str) for column in table.ratios)
    asked = [*((ratios or ()) if numeric else ()), *(name for name in sets or () if name in table.ratios)]
    return asked if ratios or sets else list(table.ratios)


def _there(columns: list[Column], asked: bool, data_dir: Path | None) -> list[Column]:
    """Without the photo sets that are not there; those that are get decoded here, once for all workers."""
    from unskew.data import load_splits

    found: list[Column] = []
    for column in columns:
        if isinstance(column, str):
            try:
                load_splits(column, data_dir)
            except UnskewError as error:
                if asked or len(columns) == 1:
                    raise
                print(f"note: {column} is left out: {error}", flush=True)
                continue
        found.append(column)
    if not found:
        raise UnskewError(f"none of {', '.join(map(str, columns))} was found: name their folder with --data-dir.")
    return found


def _startable(specs: list[Spec], weights: Path | None) -> list[Spec]:
    """Without the runs that start from ImageNet weights, where none were given."""
    if weights is not None and not weights.is_file():
        raise UnskewError(f"there is no weights file {weights}.")
    able = [spec for spec in specs if weights is not None or spec.options.get("weights") != "imagenet"]
    if len(able) < len(specs):
        print(
            f"note: {len(specs) - len(able)} runs are left out: they start from ImageNet weights, a file of which "
            "--weights names (docs/photos.md says where to get one)",
            flush=True,
        )
    return able

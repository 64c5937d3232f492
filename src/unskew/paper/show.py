"""A table from result lines: ours beside the paper's, with the difference and paired intervals. Pure functions."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from unskew.paper.rows import Column, Row, Table
from unskew.paper.tables import SCORES

# Columns that only some tables have.
EXTRA = {
    "gap": "All − Unb.",
    "validation_mean": "Validation",
    "worst_pseudo_group_mean": "worst pseudo-group",
    "oracle_gap_mean": "oracle's gap",
}


def cells(table: Table, lines: Sequence[Mapping[str, Any]], scale: str = "full") -> list[dict[str, Any]]:
    """One object for each row and ratio that has results, or a figure in the paper."""
    by_key = {line["key"]: line for line in lines if "key" in line}
    seeds = max((line["seed"] for line in by_key.values()), default=-1) + 1
    found: dict[tuple[str, Column], list[Mapping[str, Any]]] = {}
    for row, ratio, spec in table.specs(table.ratios, table.rows, seeds, scale):
        if spec.key in by_key:
            found.setdefault((row.name, ratio), []).append(by_key[spec.key])
    return [
        _cell(row, ratio, found.get((row.name, ratio), []))
        for row in table.rows
        for ratio in table.ratios
        if (row.name, ratio) in found or (ratio in row.printed and (not row.only or ratio in row.only))
    ]


def _cell(row: Row, ratio: Column, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    paper_all, paper_unbiased = row.printed.get(ratio, (None, None))
    cell: dict[str, Any] = {"method": row.name, "ratio": ratio}
    behind = dict(zip(("all", "unbiased"), SCORES.get(ratio, ("all", "unbiased"))))
    for score, name in behind.items():
        values = _percent(lines, name)
        cell[f"{score}_mean"] = statistics.mean(values) if values else None
        cell[f"{score}_sd"] = statistics.stdev(values) if len(values) > 1 else None
    cell |= {"seeds": len(lines), "paper_all": paper_all, "paper_unbiased": paper_unbiased}
    if isinstance(ratio, str):
        means = {name: _percent(lines, name) for name in ("all", "train_weighted", "worst_group", "minority_mean")}
        cell |= {"all_is": behind["all"], "unbiased_is": behind["unbiased"], "gap": _gap(cell)}
        cell["scores"] = {name: statistics.mean(values) if values else None for name, values in means.items()}
    quality = [line["partition"]["quality"] for line in lines if (line.get("partition") or {}).get("quality")]
    for name in ("precision", "recall", "f1", "macro_f1"):
        cell[name] = statistics.mean(q[name] for q in quality) if quality else None
    chosen_by = [line["validation"] for line in lines if line.get("validation")]
    if chosen_by:
        cell["validation_mean"] = 100 * statistics.mean(mark["balanced"] for mark in chosen_by)
    worst = [100 * mark["worst_pseudo_group"] for mark in chosen_by if "worst_pseudo_group" in mark]
    if worst:
        cell["worst_pseudo_group_mean"] = statistics.mean(worst)
    gaps = [100 * gap for mark in chosen_by if (gap := (mark.get("oracle") or {}).get("gap")) is not None]
    if gaps:
        cell["oracle_gap_mean"] = statistics.mean(gaps)
    cell["_by_seed"] = {line["seed"]: (line.get("scores") or {}).get(behind["all"]) for line in lines}
    return cell


def _gap(cell: Mapping[str, Any]) -> float | None:
    """All − Unbiased, as the paper's table of photos prints it."""
    both = cell["all_mean"], cell["unbiased_mean"]
    return None if None in both else both[0] - both[1]


def _percent(lines: Sequence[Mapping[str, Any]], score: str) -> list[float]:
    values = [(line.get("scores") or {}).get(score) for line in lines]
    return [100 * value for value in values if value is not None]


def as_json(table: Table, lines: Sequence[Mapping[str, Any]], scale: str = "full") -> list[dict[str, Any]]:
    return [{k: v for k, v in cell.items() if not k.startswith("_")} for cell in cells(table, lines, scale)]


def as_markdown(table: Table, lines: Sequence[Mapping[str, Any]], scale: str = "full") -> str:
    every = cells(table, lines, scale)
    out = [f"## {table.name}: {table.title}", ""]
    head = ["method", "ratio", "All", "paper", "Δ", "Unbiased", "paper", "Δ", "F1", "precision", "recall", "seeds"]
    more = {name: title for name, title in EXTRA.items() if any(cell.get(name) is not None for cell in every)}
    head += list(more.values())
    out += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for cell in every:
        row = [cell["method"], _column(cell["ratio"])]
        for score in ("all", "unbiased"):
            mean, paper = cell[f"{score}_mean"], cell[f"paper_{score}"]
            difference = f"{mean - paper:+.1f}" if mean is not None and paper is not None else ""
            row += [_pm(mean, cell[f"{score}_sd"]), "" if paper is None else f"{paper:g}", difference]
        row += ["" if cell[name] is None else f"{cell[name]:.2f}" for name in ("f1", "precision", "recall")]
        row.append(str(cell["seeds"]))
        row += [_pm(cell.get(name), None) for name in more]
        out.append("| " + " | ".join(row) + " |")
    out += ["", "Ours: mean ± sd over seeds, the weights of the last epoch. Δ = ours − the paper's."]
    out += [table.note] if table.note else []
    compared = list(paired(every))
    if compared:
        out += ["", "Differences in All between methods on the same seeds (95% interval):", "", *compared]
    return "\n".join(out) + "\n"


def _column(ratio: Column) -> str:
    return ratio if isinstance(ratio, str) else f"{ratio:.1%}".replace(".0%", "%")


def _pm(mean: float | None, sd: float | None) -> str:
    if mean is None:
        return ""
    return f"{mean:.1f}" if sd is None else f"{mean:.1f} ± {sd:.1f}"


def paired(every: Sequence[Mapping[str, Any]]):
    """Each method against the first of its ratio, over the seeds that both have."""
    first: dict[Column, Mapping[str, Any]] = {}
    for cell in every:
        base = first.setdefault(cell["ratio"], cell)
        a, b = cell["_by_seed"], base["_by_seed"]
        both = [100 * (a[s] - b[s]) for s in a if a[s] is not None and b.get(s) is not None]
        if cell is base or len(both) < 2:
            continue
        mean, half = statistics.mean(both), interval(both)
        column = cell["ratio"] if isinstance(cell["ratio"], str) else f"{cell['ratio']:g}"
        yield f"- {column}: {cell['method']} − {base['method']} = {mean:+.1f} ± {half:.1f} ({len(both)} seeds)"


def interval(differences: Sequence[float]) -> float:
    """Half the width of Student's 95% interval for the mean."""
    from scipy import stats

    n = len(differences)
    return float(stats.t.ppf(0.975, n - 1)) * statistics.stdev(differences) / math.sqrt(n)

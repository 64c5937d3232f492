"""report.html: one file that says what was found, shows it, and how it was made."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.data.partition import quality as quality_of
from unskew.files import write_text
from unskew.pages.chart import line_chart
from unskew.results import versions
from unskew.training import Run

EACH = 6  # images of a kind that a class shows
CLASSES = 20  # classes that are shown


def report(data: Dataset, partition: Partition | None, run: Run | Sequence[Run] | None, path: str | Path) -> None:
    """Write the report of stage 1, of training, or of both.

    Parameters
    ----------
    data : Dataset
        The training set.
    partition : Partition, optional
    run : Run or sequence of Run, optional
        Several are compared side by side.
    path : path
    """
    from jinja2 import Environment, PackageLoader

    runs = [] if run is None else [run] if isinstance(run, Run) else list(run)
    environment = Environment(loader=PackageLoader("unskew", "pages"), autoescape=True, trim_blocks=True)
    page = environment.get_template("report.html.j2").render(
        data=data,
        partition=partition,
        found=_found(data, partition) if partition else None,
        charts=_charts(data, partition, runs),
        runs=[_run(one) for one in runs],
        notes=[*data.notes, *(partition.notes if partition else ())],
        versions=runs[0].result.versions if runs else versions(),
    )
    write_text(path, page)


def _found(data: Dataset, partition: Partition) -> dict[str, Any]:
    """What stage 1 found: numbers and examples, class by class."""
    classes = []
    wrong = partition.usual_wrong_class
    for k, name in enumerate(data.class_names):
        inside = partition.labels == k
        conflicting = inside & partition.conflicting
        suspects = conflicting.nonzero().flatten()
        mistaken = "-"
        if wrong is not None and len(suspects) and (wrong[suspects] >= 0).any():
            mistaken = data.class_names[int(wrong[suspects][wrong[suspects] >= 0].mode().values)]
        count = int(inside.sum())
        classes.append(
            {
                "name": name,
                "count": count,
                "conflicting": len(suspects),
                "share": len(suspects) / count if count else 0.0,
                "mistaken": mistaken,
                "suspects": _thumbs(data, _most(partition, conflicting, True)) if k < CLASSES else [],
                "typical": _thumbs(data, _most(partition, inside & ~partition.conflicting, False))
                if k < CLASSES
                else [],
            }
        )
    known = partition.quality(data.aligned) if data.aligned is not None else None
    return {"classes": classes, "quality": known, "count": int(partition.conflicting.sum())}


def _most(partition: Partition, inside: Tensor, suspect: bool) -> list[int]:
    rows = inside.nonzero().flatten()
    order = partition.score[rows].argsort(descending=suspect, stable=True)
    return rows[order[:EACH]].tolist()


def _thumbs(data: Dataset, rows: Sequence[int]) -> list[dict[str, str]]:
    from PIL import Image

    thumbs = []
    for row in rows:
        image = Image.fromarray(data.pixels[row].numpy())
        image.thumbnail((96, 96))
        file = io.BytesIO()
        image.save(file, "JPEG" if data.size > 64 else "PNG", quality=80)
        kind = "jpeg" if data.size > 64 else "png"
        source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
        thumbs.append({"src": source, "id": data.ids[row]})
    return thumbs


def _charts(data: Dataset, partition: Partition | None, runs: Sequence[Run]) -> list[str]:
    charts = []
    if partition is not None and partition.predictions is not None and partition.predictions.shape[1] > 1:
        right = partition.predictions == partition.labels[:, None]
        never = ~right.cumsum(1).bool()
        charts.append(line_chart("Samples never right so far", {"conflicting": never.sum(0).tolist()}))
        if data.aligned is not None:
            each = [quality_of(never[:, k], ~data.aligned) for k in range(never.shape[1])]
            lines = {name: [getattr(q, name) for q in each] for name in ("precision", "recall", "f1")}
            charts.append(line_chart("How well they are found", lines))
    for run in runs:
        if len(run.metrics) > 1:
            charts.append(line_chart(f"Loss of {run.result.method}", {"loss": [row["loss"] for row in run.metrics]}))
            if "alpha" in run.metrics[0]:
                lines = {"α": [row["alpha"] for row in run.metrics], "β": [row["beta"] for row in run.metrics]}
                charts.append(line_chart(f"Learned Beta(α, β) of {run.result.method}", lines))
    return charts


def _run(run: Run) -> dict[str, Any]:
    result = run.result
    names = ("all", "unbiased", "aligned", "worst_group")
    values = {name: getattr(result.scores, name) if result.scores else None for name in names}
    shown = {name: "-" if value is None else f"{value:.1%}" for name, value in values.items()}
    return {"result": result, "scores": shown, "config": dict(result.config)}

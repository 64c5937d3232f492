"""report.html: one file that says what was found, shows it, and how it was made. It needs no network."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.files import write_text
from unskew.results import versions
from unskew.run_folder import PARTITION
from unskew.training import Run


def report(
    data: Dataset,
    partition: Partition | None,
    run: Run | Sequence[Run] | None,
    path: str | Path,
    *,
    test: Dataset | None = None,
    command: str = "",
    config: Mapping[str, Any] | None = None,
) -> None:
    """Write the report of stage 1, of training, or of both.

    Parameters
    ----------
    data : Dataset
        The training set.
    partition : Partition, optional
    run : Run or sequence of Run, optional
        Several are compared side by side, plain training (``erm``) with each of the others.
    path : path
    test : Dataset, optional
        Where the models are shown looking, if it says which samples break the shortcut.
    command : str
        What was typed.
    config : dict, optional
        What was decided, where no run says it.
    """
    from jinja2 import Environment, PackageLoader

    from unskew.pages.accuracy import accuracy, title
    from unskew.pages.attention import attention
    from unskew.pages.gallery import gallery
    from unskew.pages.mixing import mixing
    from unskew.pages.stage1 import stage1_charts
    from unskew.pages.suspects import suspects
    from unskew.pages.verdict import verdict

    runs = [] if run is None else [run] if isinstance(run, Run) else list(run)
    path = Path(path)
    if partition is not None:
        partition = partition.matched_to(data)
    classes, others = gallery(data, partition) if partition else ([], 0)
    style, script = _asset("report.css"), _asset("report.js")
    environment = Environment(
        loader=PackageLoader("unskew", "pages"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("report.html.j2").render(
        data=data,
        partition=partition,
        verdict=verdict(data, partition) if partition else None,
        classes=classes,
        shown={one.index for one in classes},
        other_classes=others,
        stage1=stage1_charts(data, partition) if partition else [],
        accuracy=accuracy(runs),
        losses=_losses(runs),
        mixing=[found for one in runs if (found := mixing(data, partition, one))],
        attention=attention(data, partition, test, runs),
        suspects=suspects(data, partition) if partition else [],
        csv=PARTITION if (path.parent / PARTITION).is_file() else "",
        notes=[*data.notes, *(partition.notes if partition else ())],
        runs=[(title(one), one.result) for one in runs],
        command=command,
        config=config or {},
        versions=runs[0].result.versions if runs else versions(),
        style=style,
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    write_text(path, page)


def _losses(runs: Sequence[Run]) -> list[Markup]:
    from unskew.pages.accuracy import title
    from unskew.pages.chart import line_chart

    lines = {title(run): [float(row["loss"]) for row in run.metrics] for run in runs if len(run.metrics) > 1}
    if len(lines) < 2:
        return [line_chart("Training loss", lines)] if lines else []
    shares = {name: [value / abs(line[0] or 1) for value in line] for name, line in lines.items()}
    note = "Each method has a loss of its own, so each is drawn as a share of what it was in the first epoch."
    return [line_chart("Training loss, of the first epoch's", shares, note=note, colours=("c6", "c2", "c4", "c1"))]


def _asset(name: str) -> Markup:
    """A style sheet or script of ours, as it is; it must not close its own element."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    assert "</" not in text, f"{name} would end the element it stands in"
    return Markup(text)

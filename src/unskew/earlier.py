"""A run that an earlier command left, to set another one against in a report."""

import json
from dataclasses import replace
from pathlib import Path

from unskew.data.dataset import Dataset
from unskew.errors import UnskewError
from unskew.models.saved import load_model
from unskew.results import Result
from unskew.run_folder import METRICS, RESULTS, MetricsFile
from unskew.scores import evaluate
from unskew.training import Run


def earlier_run(folder: Path, data: Dataset, test: Dataset, device: str = "auto") -> Run:
    """The model of a run folder, scored on ``test``: the images that the new run is scored on."""
    result = _last_result(folder / RESULTS)
    model, card = load_model(folder)
    if result.dataset != data.name or list(card.class_names) != list(test.class_names) or card.size != test.size:
        raise UnskewError(
            f"{folder} cannot be compared with: it was trained on {result.dataset} ({len(card.class_names)} classes, "
            f"{card.size} px), and this is {data.name} ({data.num_classes} classes, {data.size} px)."
        )
    rows = MetricsFile(folder / METRICS).rows
    metrics = [row for (stage, _), row in rows.items() if stage == result.method]
    result = replace(result, scores=evaluate(model, test, device=device))
    return Run(model, result, metrics, None, card.class_names)


def _last_result(path: Path) -> Result:
    """Of the runs that share a folder (a demo's), the last is the one whose model was kept."""
    try:
        line = path.read_text(encoding="utf-8").splitlines()[-1]
        return Result(**{**json.loads(line), "scores": None})
    except OSError as error:
        raise UnskewError(
            f"{path} cannot be read ({error.strerror}): compare with the --out of `unskew train`."
        ) from error
    except (ValueError, TypeError, IndexError) as error:
        raise UnskewError(f"{path} does not hold the result of a run ({error}).") from error

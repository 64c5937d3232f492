"""One trained model in one line of JSON: what was trained, how it was selected, and what it scored."""

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.files import write_text
from unskew.scores import Scores

SCHEMA = 1


@dataclass(frozen=True)
class Result:
    """See ``results.jsonl``. Tables and figures are pure functions of such lines."""

    dataset: str
    fingerprint: str
    method: str
    seed: int
    partition: Mapping[str, Any] | None
    selected: str  # "last": nothing was chosen by looking at any score; "val": see ``validation``
    epoch: int
    config: Mapping[str, Any]
    model: Mapping[str, Any]
    scores: Scores | None
    seconds: float
    images_per_second: float
    device: str
    versions: Mapping[str, str]
    notes: Sequence[str] = ()
    validation: Mapping[str, Any] | None = None  # how the epoch was chosen, and how far the oracle's choice is
    schema: int = SCHEMA

    def to_json(self) -> str:
        """Strict JSON: what is not a number is null."""
        values = asdict(self)
        if self.scores is None:
            values["scores"] = dict.fromkeys(("all", "unbiased", "aligned", "worst_group"))
        return json.dumps(strict(values), ensure_ascii=False)


def write_results(path: str | Path, results: Sequence[Result]) -> None:
    write_text(path, "".join(result.to_json() + "\n" for result in results))


def about_partition(partition: Partition | None, data: Dataset) -> dict[str, Any] | None:
    if partition is None:
        return None
    known = asdict(partition.quality(data.aligned)) if data.aligned is not None else None
    return {
        "how": partition.how,
        "conflicting": int(partition.conflicting.sum()),
        "share": partition.conflicting_share,
        "quality": known,
        "notes": list(partition.notes),
    }


@cache
def versions() -> dict[str, str]:
    import numpy
    import torch

    from unskew import __version__

    return {
        "unskew": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }


def strict(value: Any) -> Any:
    """Plain values that JSON knows: what is not a number becomes null."""
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

"""The folder of one run: what lies in it, how it begins, and whether it can be gone on with."""

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

from unskew.data.partition_file import of_val, sidecar
from unskew.engine.settings import FREE
from unskew.errors import UnskewError
from unskew.files import write_text

TENSORBOARD = "tensorboard"
CONFIG, RESULTS, METRICS, REPORT = "config.yaml", "results.jsonl", "metrics.csv", "report.html"
PARTITION, CORRECTIONS = "partition.csv", "corrections.csv"
STAGE1_CHECKPOINT, STAGE1_MODEL = "identify.checkpoint.pt", "identify.safetensors"
LABELS_CHECKPOINT = "labels.checkpoint.pt"
CHECKPOINT, MODEL = "checkpoint.pt", "model.safetensors"
PARTITION_FILES = tuple(
    name for path in (PARTITION, of_val(PARTITION)) for name in (str(path), sidecar(path).name)
)  # the partition, and that of the validation set
# Not the corrections: those are a person's work.
OURS = (
    RESULTS,
    METRICS,
    REPORT,
    *PARTITION_FILES,
    STAGE1_CHECKPOINT,
    STAGE1_MODEL,
    LABELS_CHECKPOINT,
    CHECKPOINT,
    MODEL,
)


def begin(out: Path, config: Mapping[str, Any], resume: bool) -> None:
    """Make the folder ready: going on needs the same options; starting afresh clears what an older run left."""
    import yaml

    path = out / CONFIG
    going_on = resume and path.exists()
    if going_on:
        try:
            saved = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise UnskewError(
                f"{path} cannot be read ({' '.join(str(error).split())}): start afresh without --resume."
            ) from error
        _same(path, _fixed(saved), _fixed(config))
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in OURS:
            if name not in _given(out, config):
                (out / name).unlink(missing_ok=True)
        rmtree(out / TENSORBOARD, ignore_errors=True)
    except OSError as error:
        raise UnskewError(f"{out} cannot be used as the run folder: {error.strerror or error}.") from error
    text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
    verb = "train" if "method" in config else "identify"
    write_text(path, f"# unskew {verb} --config {path} --out DIR\n{text}")


def saved_config(run: Path) -> dict[str, Any]:
    """What ``config.yaml`` says; nothing where there is none that can be read."""
    import yaml

    try:
        saved = yaml.safe_load((run / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return saved if isinstance(saved, dict) else {}


def was_trained_on(run: Path, source: str) -> bool:
    """Whether the run folder says that its model comes from this data."""
    saved = saved_config(run).get("data")  # none: a model by itself
    return saved is not None and _place("data", saved) == _place("data", source)


def _given(out: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    """The partition of an older run in this folder is left there if it is what this run is given."""
    how = config.get("identify", {}).get("name", "")
    same = os.path.realpath(out / PARTITION) == os.path.realpath(how)
    return PARTITION_FILES if same else ()


def _fixed(config: Any) -> dict[str, Any]:
    """The part of a config that decides what is computed, flat: ``method.omega``."""
    flat: dict[str, Any] = {}
    for name, value in (config or {}).items() if isinstance(config, Mapping) else ():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": inner for key, inner in value.items() if key not in FREE}
        elif name not in FREE:
            flat[name] = value
    return flat


def _same(path: Path, saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in {**wanted, **saved}:  # the data first, then the method
        if _place(name, saved.get(name)) != _place(name, wanted.get(name)):
            raise UnskewError(
                f"{path} is of another run: {name} was {saved.get(name)!r} there and is {wanted.get(name)!r} now; "
                "continue with the options it was started with, or leave out --resume."
            )


def _place(name: str, value: Any) -> Any:
    """``photos`` and ``./photos/`` are one folder."""
    is_path = name in ("data", "data_dir", "identify.name", "corrections") and isinstance(value, str)
    return os.path.abspath(value) if is_path else value


class MetricsFile:
    """A listener that keeps ``metrics.csv``: a row for each epoch of each stage, across interruptions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}
        if path.exists():
            try:
                with open(path, newline="", encoding="utf-8") as file:
                    for row in csv.DictReader(file):
                        self.rows[row["stage"], int(row["epoch"])] = {k: _number(v) for k, v in row.items() if v != ""}
            except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
                raise UnskewError(f"{path} cannot be read ({error}): remove it to go on.") from error

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[0] != stage or key[1] <= done}

    def step(self) -> None: ...

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None:
        self.rows[stage, row["epoch"]] = {"stage": stage, **row}
        columns = list(dict.fromkeys(name for some in self.rows.values() for name in some))
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows.values())
        write_text(self.path, text.getvalue())

    def end(self) -> None: ...


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

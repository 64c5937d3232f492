"""A partition as a CSV that a person can open, edit and sort, with the history in a file beside it."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.errors import UnskewError
from unskew.files import replacing, write_text


def save_partition(partition: Partition, path: str | Path) -> None:
    """A CSV that a person can open, and beside it ``….history.npz`` with what a table cannot show."""
    columns: dict[str, Sequence] = {
        "id": partition.ids,
        "label": [partition.class_names[i] for i in partition.labels.tolist()],
        "score": [f"{value:.9g}" for value in partition.score.tolist()],
        "times_right": [""] * len(partition) if partition.times_right is None else partition.times_right.tolist(),
        "usual_wrong_class": [""] * len(partition)
        if partition.usual_wrong_class is None
        else [partition.class_names[i] if i >= 0 else "" for i in partition.usual_wrong_class.tolist()],
        "conflicting": partition.conflicting.int().tolist(),
    }
    if partition.bias is not None:
        columns["bias"] = partition.bias.tolist()
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values()))
    extra: dict[str, Any] = {"ids": np.array(partition.ids, str), "class_names": np.array(partition.class_names, str)}
    extra |= {"how": np.array(partition.how), "made_by": np.array(partition.made_by)}
    extra["notes"] = np.array(list(partition.notes), str)
    for name in ("predictions", "losses", "suspects", "weight"):
        values = getattr(partition, name)
        if values is not None:
            extra[name] = values.numpy()
    with replacing(sidecar(path)) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **extra)
    if partition.val is not None:
        save_partition(partition.val, of_val(path))
    write_text(path, text.getvalue())


def sidecar(path: str | Path) -> Path:
    return Path(path).with_suffix(".history.npz")


def of_val(path: str | Path) -> Path:
    """Beside a partition, that of the validation set."""
    return Path(path).with_suffix(".val.csv")


def load_partition(path: str | Path, data: Dataset, val: Dataset | None = None) -> Partition:
    """Read a partition for ``data``: one that ``save`` wrote, or any CSV with columns ``id`` and ``conflicting``.

    The sides of ``val`` come along where they lie beside it.
    """
    path = Path(path)
    if val is not None and of_val(path).exists():
        return replace(load_partition(path, data), val=load_partition(of_val(path), val))
    return read_partition(path, data).matched_to(data)


def read_partition(path: Path, data: Dataset) -> Partition:
    """The same in the order of the file, whatever samples it names; classes are numbered as in ``data``."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows, columns = list(reader), reader.fieldnames or []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnskewError(f"the partition {path} cannot be read: {error}.") from error
    for needed in ("id", "conflicting"):
        if needed not in columns:
            raise UnskewError(f"the partition {path} has no column {needed!r}; it has {', '.join(columns) or 'none'}.")
    label_of = dict(zip(data.ids, data.labels.tolist()))
    ids = [row["id"] for row in rows]
    if len(set(ids)) != len(ids):
        raise UnskewError(f"the partition {path} names some samples twice.")
    conflicting = torch.tensor([_yes(row["conflicting"], path, i) for i, row in enumerate(rows)], dtype=torch.bool)
    score = torch.tensor([_number(row.get("score"), row["conflicting"], path, i) for i, row in enumerate(rows)])
    names = list(data.class_names)
    if "label" in columns:
        names += sorted({row["label"] for row in rows} - set(names))
        index = {name: i for i, name in enumerate(names)}
        labels = torch.tensor([index[row["label"]] for row in rows], dtype=torch.int64)
    else:
        labels = torch.tensor([label_of.get(name, 0) for name in ids], dtype=torch.int64)
    extra: dict[str, Any] = {"how": path.name, **_sidecar(path, ids, names)}
    return Partition(conflicting, score, labels, ids, names, **extra)


def _sidecar(path: Path, ids: list[str], names: list[str]) -> dict:
    """The history beside the CSV, in the CSV's order (a person may have sorted it); nothing if it does not fit."""
    beside = sidecar(path)
    if not beside.exists():
        return {}
    try:
        with np.load(beside, allow_pickle=False) as file:
            row = {name: i for i, name in enumerate(file["ids"].tolist())}
            if not all(name in row for name in ids):
                return {}
            order = np.array([row[name] for name in ids], np.int64)
            known = {name: i for i, name in enumerate(names)}
            renumber = np.array([*(known.get(name, -1) for name in file["class_names"].tolist()), -1], np.int16)
            extra: dict = {"how": str(file["how"]), "notes": tuple(file["notes"].tolist())}
            extra["made_by"] = str(file["made_by"])
            if "predictions" in file:
                extra["predictions"] = torch.from_numpy(renumber[file["predictions"][order]])
            for name in ("losses", "suspects", "weight"):
                if name in file:
                    extra[name] = torch.from_numpy(file[name][order])
            return extra
    except (OSError, ValueError, KeyError, IndexError, EOFError, BadZipFile) as error:
        raise UnskewError(f"{beside} is damaged ({error}): remove it, and the CSV alone will do.") from error


def _yes(text: str | None, path: Path, row: int) -> bool:
    word = (text or "").strip().lower()
    if word in ("1", "true", "yes"):
        return True
    if word in ("0", "false", "no"):
        return False
    raise UnskewError(f"{path}, line {row + 2}: conflicting is {text!r}; write 1 or 0.")


def _number(text: str | None, conflicting: str, path: Path, row: int) -> float:
    if text is None or not text.strip():
        return float(_yes(conflicting, path, row))
    try:
        return float(text)
    except ValueError:
        raise UnskewError(f"{path}, line {row + 2}: score is {text!r}, not a number.") from None

"""What a person says about single samples: ``corrections.csv``, and what training makes of it."""

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.errors import UnskewError
from unskew.files import write_text

CONFLICTING, ALIGNED, WRONG = MARKS = ("conflicting", "aligned", "label wrong")


def load_corrections(path: str | Path, *of: Dataset) -> dict[str, str]:
    """The mark of each sample, by id. Where data sets are given, at least one sample must be of them."""
    path = Path(path)
    marks: dict[str, str] = {}
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in ("id", "mark") if name not in (reader.fieldnames or [])]
            if missing:
                raise UnskewError(f"the corrections {path} have no column {missing[0]!r}: they need id and mark.")
            for row in reader:
                mark = (row["mark"] or "").strip().lower()
                if mark not in MARKS:
                    raise UnskewError(
                        f"{path}, line {reader.line_num}: {row['mark']!r} is no mark; write {', '.join(MARKS[:-1])} or "
                        f"{MARKS[-1]}."
                    )
                marks[row["id"]] = mark
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnskewError(f"the corrections {path} cannot be read: {error}.") from error
    if of and marks and not any(name in marks for data in of for name in data.ids):
        raise UnskewError(
            f"the corrections {path} are of other data: none of their {len(marks)} samples is in {of[0].name}; "
            f"the first is {next(iter(marks))!r}."
        )
    return marks


def save_corrections(path: str | Path, marks: Mapping[str, str]) -> None:
    """Whole or not at all, in the order in which they were given."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["id", "mark"])
    table.writerows(marks.items())
    write_text(path, text.getvalue())


def without_wrong_labels(data: Dataset, marks: Mapping[str, str]) -> Dataset:
    """The data without the samples whose label is marked wrong, and a note that says so."""
    wrong = {name for name, mark in marks.items() if mark == WRONG}
    keep = torch.tensor([name not in wrong for name in data.ids], dtype=torch.bool)
    if keep.all():
        return data
    note = f"{int((~keep).sum())} samples whose label was marked wrong were left out"
    return data.subset(keep.nonzero().flatten(), notes=[*data.notes, note])


def corrected(partition: Partition, marks: Mapping[str, str]) -> Partition:
    """The partition with the sides that a person gave; what is said of samples that it lacks is left aside."""
    sides = torch.tensor([{CONFLICTING: 1, ALIGNED: 0}.get(marks.get(name, ""), -1) for name in partition.ids])
    given = sides >= 0
    conflicting = torch.where(given, sides == 1, partition.conflicting)
    changed = conflicting != partition.conflicting
    if not given.any():
        return partition
    note = (
        f"corrected by hand: {int((changed & conflicting).sum())} samples moved to conflicting, "
        f"{int((changed & ~conflicting).sum())} to aligned"
    )
    score = torch.where(given, conflicting.float(), partition.score)
    return replace(partition, conflicting=conflicting, score=score, notes=(*partition.notes, note))

"""A CSV or Parquet table: path, label[, bias][, split], with paths relative to the table."""

import csv
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from unskew.data.listing import Listing
from unskew.data.splits import split_names
from unskew.errors import UnskewError

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read(path: Path, labelled: bool) -> Listing:
    table = _Parquet(path) if path.suffix.lower() == ".parquet" else Csv(path)
    paths = table.texts("path")
    images = [path.parent / p for p in paths]
    _refuse_duplicates(table, paths)
    missing = [row for row, image in enumerate(images) if not image.is_file()]
    if missing:
        first = missing[0]
        raise UnskewError(
            f"{len(missing)} of {len(paths)} files listed in {path} are missing, first {images[first]}"
            f" ({table.row(first)})."
        )
    return Listing(
        name=path.stem,
        where=str(path),
        images=images,
        ids=paths,
        labels=table.names("label") if labelled else None,
        bias=table.names("bias") if labelled and "bias" in table.columns else None,
        split=split_names(table.texts("split"), str(path), table.first_row) if "split" in table.columns else None,
    )


class Table:
    """Columns of values, and how a person finds a row."""

    path: Path
    columns: dict[str, list]
    first_row = 1

    def fill(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        for index, row in enumerate(rows):
            if len(row) != len(header):
                raise UnskewError(
                    f"{self.path}: {self.row(index)} has {len(row)} fields where the header has {len(header)}."
                )
        self.columns = {name: [row[i].strip() for row in rows] for i, name in enumerate(header)}

    def row(self, index: int) -> str:
        return f"row {index + self.first_row}"

    def values(self, what: str) -> list:
        """A column with no gaps."""
        if what not in self.columns:
            there = ", ".join(self.columns) or "none"
            raise UnskewError(f"{self.path} has no column {what!r}; its columns are {there}.")
        values = self.columns[what]
        if not values:
            raise UnskewError(f"{self.path} lists no images.")
        for index, value in enumerate(values):
            if value is None or value == "":
                raise UnskewError(f"{self.path}: {self.row(index)} has no {what}.")
        return values

    def texts(self, what: str) -> list[str]:
        return [str(value) for value in self.values(what)]

    def names(self, what: str) -> np.ndarray:
        """A column that names classes: whole numbers, or words, but not some of each."""
        values = self.typed(self.values(what))
        numbers = [not isinstance(value, str) for value in values]
        if not any(numbers):
            return np.array(values)
        if not all(numbers):
            one, other = numbers.index(True), numbers.index(False)
            raise UnskewError(
                f"{self.path}: mixed {what} types, a number in {self.row(one)} ({values[one]:g}) and a word in"
                f" {self.row(other)} ({values[other]!r}); use one of them."
            )
        for index, value in enumerate(values):
            if value != value // 1:
                raise UnskewError(f"{self.path}: {what} {value} in {self.row(index)} is not a whole number or a word.")
        return np.array([int(value) for value in values], dtype=np.int64)

    def coded(self, what: str, allowed: Sequence[int]) -> np.ndarray:
        """A column of whole numbers, all of them known ones."""
        known = {str(number): number for number in allowed}
        found = [known.get(str(value).removesuffix(".0")) for value in self.values(what)]
        if None in found:
            index = found.index(None)
            raise UnskewError(
                f"{self.path}: {what} in {self.row(index)} is {self.columns[what][index]!r}; "
                f"it must be one of {', '.join(known)}."
            )
        return np.array(found, dtype=np.int64)

    def typed(self, values: Sequence) -> list:
        return list(values)


class Csv(Table):
    first_row = 2  # as editors and spreadsheets count, where the header is row 1

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = _rows_of(path, lambda file: list(csv.reader(file, skipinitialspace=True)))
        header = [name.strip() for name in rows[0]] if rows else []
        self.fill(header, rows[1:])

    def typed(self, values: Sequence[str]) -> list:
        return [_number(value) if NUMBER.fullmatch(value) else value for value in values]


class Spaced(Table):
    """Fields between spaces, without a header, or with one after so many other lines that lacks the first name."""

    def __init__(self, path: Path, header: Sequence[str], skip: int | None = None) -> None:
        self.path = path
        rows = _rows_of(path, lambda file: [line.split() for line in file])
        if skip is not None:
            header = [*header, *(rows[skip] if len(rows) > skip else ())]
            rows = rows[skip + 1 :]
            self.first_row = skip + 2
        self.fill(header, rows)


def _rows_of(path: Path, read: Callable[[TextIO], list[list[str]]]) -> list[list[str]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = read(file)
    except UnicodeDecodeError as error:
        raise UnskewError(f"{path} is not a text file in UTF-8 ({error.reason}).") from error
    except (OSError, csv.Error) as error:
        raise UnskewError(f"{path} cannot be read ({error}).") from error
    while rows and not rows[-1]:
        rows.pop()
    return rows


class _Parquet(Table):
    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise UnskewError("Parquet tables need pyarrow: pip install 'unskew[parquet]'.") from error
        self.path = path
        try:
            with parquet.ParquetFile(path) as file:
                columns = list(file.schema_arrow.names)
                known = [name for name in columns if name in ("path", "label", "bias", "split")]
                read = file.read(columns=known).to_pydict()
        except (OSError, pyarrow.ArrowException) as error:
            raise UnskewError(f"{path} cannot be read as Parquet ({error}).") from error
        self.columns = {name: read.get(name, []) for name in columns}


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _refuse_duplicates(table: Table, paths: list[str]) -> None:
    seen: dict[str, int] = {}
    for index, path in enumerate(paths):
        first = seen.setdefault(os.path.normpath(path), index)
        if first != index:
            raise UnskewError(f"{table.path} lists {path} twice, in {table.row(first)} and {table.row(index)}.")

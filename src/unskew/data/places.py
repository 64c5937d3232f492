"""Where a set that goes by name lies: in the folder the user names, whatever it is called, or two levels below."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from unskew.data import cache
from unskew.errors import UnskewError

T = TypeVar("T")
DEPTH = 2


def roots(data_dir: Path | None) -> list[Path]:
    """The folder named, or else ./data and the cache."""
    if data_dir is None:
        return [root for root in (Path("data"), cache.folder()) if root.is_dir()]
    data_dir = data_dir.expanduser()
    if not data_dir.is_dir():
        raise UnskewError(f"there is no folder {data_dir} to look for data in (--data-dir).")
    return [data_dir]


def below(root: Path, depth: int = DEPTH) -> Iterator[Path]:
    """The folder, then those in it, then those in them: nearer ones first."""
    level = [root]
    for left in range(depth, -1, -1):
        yield from level
        if left:
            level = [folder for parent in level for folder in _subfolders(parent)]


def find(look: Callable[[Path], T | None], data_dir: Path | None, what: str, page: str, wanted: str) -> T:
    """What ``look`` makes of the first folder that it knows as the set's."""
    for root in roots(data_dir):
        for folder in below(root):
            found = look(folder)
            if found is not None:
                return found
    looked = str(data_dir) if data_dir is not None else f"./data and {cache.folder()}"
    raise UnskewError(
        f"{what} was not found in {looked}, nor up to {DEPTH} folders down: there is no {wanted}; "
        f"get it from {page} and name its folder with --data-dir."
    )


def refuse_missing(names: Sequence[str], folder: Path, table: Path, row: Callable[[int], str], page: str) -> None:
    """One look at each folder, not at each of 200,000 files."""
    there: dict[str, set[str]] = {}
    missing = []
    for index, name in enumerate(names):
        parent, _, file = name.rpartition("/")
        if parent not in there:
            inside = folder / parent
            there[parent] = set(os.listdir(inside)) if inside.is_dir() else set()
        if file not in there[parent]:
            missing.append(index)
    if missing:
        first = missing[0]
        raise UnskewError(
            f"{len(missing)} of {len(names)} files listed in {table} are missing, first {folder / str(names[first])} "
            f"({row(first)}); get the set again from {page}."
        )


def has_columns(path: Path, columns: Iterable[str]) -> bool:
    """Whether it is a CSV with these columns: a set beside may have a file of the same name."""
    if not path.is_file():
        return False
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        header = {name.strip() for name in file.readline().split(",")}
    return set(columns) <= header


def counted(what: str, published: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """A note where there is more or less than was published."""
    wrong = [f"{name} {found.get(name, 0)} (published: {count})" for name, count in published.items()
             if found.get(name, 0) != count]  # fmt: skip
    return [f"{what} is not as published: {', '.join(wrong)}"] if wrong else []


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError:  # a folder beside the set that may not be read
        return []
    return [folder / name for name in names]

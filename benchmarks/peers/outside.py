"""What other people's code needs to be timed where it lies: its folder, its packages, and a hook in its loop."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from torch.utils.data import DataLoader

from benchmarks.turns import Turn
from unskew.errors import UnskewError


def importable(clone: Path, expected: str, packages: Iterable[str]) -> None:
    """Put the folder of ``expected`` on the path, or say what is missing."""
    if not (clone / expected).exists():
        raise UnskewError(f"{clone} has no {expected}: give the path of a clone of the public release.")
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UnskewError(f"{clone} needs what is not installed here: pip install {' '.join(missing)}")
    sys.path.insert(0, str((clone / expected).parent.absolute()))


def commit(clone: Path) -> str:
    asked = subprocess.run(["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


@contextmanager
def stand_ins(packages: Iterable[str]) -> Iterator[list[str]]:
    """For packages that a release imports and its timed part does not use: says which are not installed."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    finder = _Finder(absent)
    sys.meta_path.append(finder)
    try:
        yield absent
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _Empty)]:
            del sys.modules[name]


class _Empty(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Finder(MetaPathFinder, Loader):
    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        mine = fullname.partition(".")[0] in self.packages
        return ModuleSpec(fullname, self, is_package=True) if mine else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


class Loop:
    """In place of ``tqdm``: takes a turn after every ``window`` steps, but for some ``before`` the first window."""

    def __init__(self, turn: Turn, window: int, before: int = 0) -> None:
        self.turn, self.window, self.done = turn, window, -before

    def __call__(self, items: Iterable, **_: Any) -> "_Bar":
        return _Bar(self, items)

    def over(self, items: Iterable) -> Iterator:
        for item in items:
            if self.done == 0:
                self.turn.start()
            yield item
            self.done += 1
            if self.done > 0 and self.done % self.window == 0:
                self.turn.epoch()


class _Bar:
    def __init__(self, loop: Loop, items: Iterable) -> None:
        self.loop, self.items = loop, items

    def __iter__(self) -> Iterator:
        return self.loop.over(self.items)

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: Any) -> None: ...

    def set_description(self, *_: Any) -> None: ...

    def set_postfix(self, **_: Any) -> None: ...


def in_this_process(*given: Any, **options: Any) -> DataLoader:
    """A loader without workers: processor time is then all of the work, as it is for ours."""
    return DataLoader(*given, **{**options, "num_workers": 0, "pin_memory": False})

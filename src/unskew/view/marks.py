"""The corrections as several viewers share them: read again when they change, changed one at a time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from unskew.data.corrections import load_corrections, save_corrections
from unskew.errors import UnskewError

PATIENCE = 10  # seconds to wait for another viewer to finish


class Marks:
    """``corrections.csv``; every change reads what is there, adds to it and writes it whole, under a lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._marks: dict[str, str] = {}
        self._lock = Lock()

    def current(self) -> Mapping[str, str]:
        with self._lock:
            seen = self._stamp()
            if seen != self._seen:
                self._marks = load_corrections(self.path) if seen is not None else {}
                self._seen = seen
            return self._marks

    def change(self, name: str, mark: str | None) -> Mapping[str, str]:
        """Set the mark of one sample, or take it away."""

        def put(marks: dict[str, str]) -> None:
            if mark is None:
                marks.pop(name, None)
            else:
                marks[name] = mark

        return self._rewrite(put)

    def propose(self, marks: Mapping[str, str]) -> Mapping[str, str]:
        """Mark those that have no mark yet; what a person said stays."""
        return self._rewrite(lambda there: there.update({**marks, **there}))

    def _rewrite(self, how: Callable[[dict[str, str]], None]) -> Mapping[str, str]:
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=PATIENCE):
                marks = dict(load_corrections(self.path)) if self.path.exists() else {}
                how(marks)
                save_corrections(self.path, marks)
        except Timeout:
            raise UnskewError(f"{self.path} is held by another program; the correction was not saved.") from None
        except OSError as error:
            raise UnskewError(f"{self.path} could not be written ({error.strerror or error}).") from error
        return self.current()

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

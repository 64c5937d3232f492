"""The file of results: lines are added whole, by any number of processes, and a broken one is not fatal."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from unskew.results import strict

FILE = "paper.jsonl"


def add_line(path: Path, line: dict[str, Any]) -> None:
    """Append under a lock, on a line of its own even if the last writer died in the middle of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(strict(line), ensure_ascii=False)
    with open(path, "ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                text = "\n" + text
        file.write((text + "\n").encode())
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines that can be read, and what to say of those that cannot; the file is left as it is."""
    lines, broken = [], []
    if not path.exists():
        return lines, broken
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            assert isinstance(line, dict)
            lines.append(line)
        except (ValueError, AssertionError):
            broken.append(f"{path}, line {number}, is broken and was passed over")
    return lines, broken

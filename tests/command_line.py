"""What the tests of the command line share: options that make it quick, and readers of what it writes."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MODEL = ("--model", "cnn", "--device", "cpu")
# A network that has hardly moved is wrong about half of the samples, so that stage 1 always finds some.
STAGE1 = ("--identify.epochs", 2, "--identify.lr", 1e-6)
QUICK = ("--epochs", 2, *STAGE1, *MODEL)


@dataclass
class Outcome:
    """What the command line did."""

    status: int | str | None
    out: str
    err: str


def rows(path: str | Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def result_of(folder: str | Path) -> dict[str, Any]:
    def refuse(word: str):
        raise AssertionError(f"{word} is not JSON")

    (line,) = Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()
    return json.loads(line, parse_constant=refuse)


def weights(folder: str | Path) -> bytes:
    return Path(folder, "model.safetensors").read_bytes()


def config(folder: str | Path) -> dict[str, Any]:
    return yaml.safe_load(Path(folder, "config.yaml").read_text(encoding="utf-8"))


def files(folder: str | Path) -> dict[str, bytes]:
    """Everything in a folder, to see that nothing was lost."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}

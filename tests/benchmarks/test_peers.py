"""Timing other people's code: the hook in their loop, and what is said of a clone that cannot be run."""

import importlib
import sys

import pytest

from benchmarks.peers.outside import Loop, commit, importable, in_this_process, stand_ins
from unskew.errors import UnskewError


class Calls:
    def __init__(self) -> None:
        self.order: list[str] = []

    def start(self) -> None:
        self.order.append("start")

    def epoch(self) -> None:
        self.order.append("epoch")


@pytest.mark.parametrize(("before", "expected"), [(0, "start 0 1 epoch 2 3 epoch"), (1, "0 start 1 2 epoch 3 4 epoch")])
def test_a_turn_is_taken_after_every_window(before, expected):
    calls = Calls()
    loop = Loop(calls, window=2, before=before)
    for items in ((0, 1), (2, 3, 4)[: 2 + before]):
        with loop(items, unit="batch") as bar:
            bar.set_description("epoch")
            for item in bar:
                calls.order.append(str(item))
                bar.set_postfix(loss=0.5)
    assert " ".join(calls.order) == expected


def test_absent_packages_are_stood_in_for_and_leave_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "release.py").write_text(
        "import numpy\nfrom never_heard_of.deep.inside import Thing\nclass Mine(Thing):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with stand_ins(["never_heard_of", "numpy"]) as absent:
        release = importlib.import_module("release")
    assert absent == ["never_heard_of"]
    assert issubclass(release.Mine, object)
    assert not [name for name in sys.modules if name.startswith("never_heard_of")]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("never_heard_of")


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(UnskewError, match="has no train.py: give the path of a clone"):
        importable(tmp_path, "train.py", [])
    (tmp_path / "train.py").touch()
    with pytest.raises(UnskewError, match="not installed here: pip install never_heard_of$"):
        importable(tmp_path, "train.py", ["numpy", "never_heard_of"])
    assert commit(tmp_path) == "unknown"


def test_loaders_have_no_workers():
    assert in_this_process([1, 2, 3], num_workers=16, pin_memory=True, batch_size=2).num_workers == 0

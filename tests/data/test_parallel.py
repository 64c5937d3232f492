import io
import threading
import time

from unskew.data import parallel
from unskew.data.parallel import each, watched


def test_results_come_in_order(monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", 4)

    def slow_first(i):
        time.sleep(0.01 * (i % 3 == 0))
        return i

    assert list(each(slow_first, range(10))) == list(range(10))


def test_work_is_spread_over_threads(monkeypatch):
    monkeypatch.setattr(parallel, "_cores", lambda: 2)
    both = threading.Barrier(2, timeout=5)  # passes only if two run at once
    assert len(list(each(lambda _: both.wait(), range(2)))) == 2


def test_stopping_early_leaves_the_rest_undone(monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", 4)
    seen = []
    assert any(i == 1 for i in each(lambda i: seen.append(i) or i, range(100)))
    assert len(seen) <= 4


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drawn(monkeypatch, stream, patience) -> str:
    monkeypatch.setattr(parallel, "PATIENCE", patience)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    assert list(watched(iter("abc"), 3, "decoding photos")) == ["a", "b", "c"]
    return stream.getvalue()


def test_bar_only_on_a_terminal_and_after_a_while(monkeypatch):
    assert "decoding photos" in drawn(monkeypatch, Terminal(), -1)
    assert drawn(monkeypatch, Terminal(), 60) == ""
    assert drawn(monkeypatch, io.StringIO(), -1) == ""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from unskew.errors import UnskewError
from unskew.paper import FIGURES, TABLES, runner, table_named
from unskew.paper.commands import _columns
from unskew.paper.figures import draw
from unskew.paper.launchers import Ended
from unskew.paper.runner import run_all
from unskew.paper.search import run_search, trials
from unskew.paper.sharing import shared_gpu
from unskew.paper.show import as_json, as_markdown, interval
from unskew.paper.spec import Spec
from unskew.paper.store import FILE, add_line, read_lines


def line(spec: Spec, all_: float, unbiased: float) -> dict:
    return {"key": spec.key, "seed": spec.seed, "scores": {"all": all_, "unbiased": unbiased}, "partition": None}


def main_lines(values: dict[str, list[float]], ratio: float = 0.95) -> list[dict]:
    table = TABLES["main"]
    rows = [row for row in table.rows if row.name in values]
    found = table.specs([ratio], rows, seeds=max(map(len, values.values())), scale="full")
    return [line(s, values[row.name][s.seed], 0.5) for row, _, s in found if s.seed < len(values[row.name])]


def test_keys_tell_runs_apart_and_stage_1_is_shared():
    table = TABLES["main"]
    specs = [spec for _, _, spec in table.specs(table.ratios, table.rows, 2, "full")]
    assert len({spec.key for spec in specs}) == len(specs) == 13 * 4 * 2
    assert len({spec.stage1_key for spec in specs}) == 1 + 5 * 4 * 2, "five stage 1s, and none for the rest"


def test_the_same_run_in_two_tables_is_one():
    def keys(name):
        table = TABLES[name]
        return {spec.key for _, _, spec in table.specs([0.95], table.rows, 1, "full")}

    assert len(keys("main") & keys("smix-vs-lmix")) == 3


def test_a_key_survives_the_way_through_json():
    spec = next(iter(TABLES["main"].specs([0.95], TABLES["main"].rows[-1:], 1, "full")))[2]
    assert Spec.from_dict(json.loads(json.dumps(spec.to_dict(), default=dict))).key == spec.key


def test_means_deviations_and_the_papers_figures():
    cells = as_json(TABLES["main"], main_lines({"erm": [0.40, 0.44], "lmix": [0.6]}))
    erm, lmix = (next(c for c in cells if c["method"] == m and c["ratio"] == 0.95) for m in ("erm", "lmix"))
    assert erm["all_mean"] == pytest.approx(42)
    assert erm["all_sd"] == pytest.approx(2.828, abs=1e-3)
    assert (erm["seeds"], erm["paper_all"], erm["paper_unbiased"]) == (2, 45.2, 39.4)
    assert (lmix["all_sd"], lmix["seeds"], lmix["paper_all"]) == (None, 1, 64.7)
    missing = next(c for c in cells if c["method"] == "lmix" and c["ratio"] == 0.99)
    assert (missing["all_mean"], missing["seeds"], missing["paper_unbiased"]) == (None, 0, 50.6)


def test_markdown_shows_the_difference_and_paired_intervals():
    text = as_markdown(TABLES["main"], main_lines({"erm": [0.40, 0.44, 0.42], "lmix": [0.60, 0.66, 0.63]}))
    assert "| lmix | 95% | 63.0 ± 3.0 | 64.7 | -1.7 |" in text
    assert "lmix − erm = +21.0 ± 2.5 (3 seeds)" in text


def test_interval_is_students():
    assert interval([20.0, 22.0, 21.0]) == pytest.approx(4.302653 / 3**0.5, rel=1e-5)


def test_tiny_and_full_results_are_kept_apart():
    lines = main_lines({"erm": [0.4]})
    assert as_json(TABLES["main"], lines, scale="tiny")[0]["seeds"] == 0


def test_an_unknown_table_suggests_another():
    with pytest.raises(UnskewError, match="did you mean mixing"):
        table_named("mixng")


def test_a_broken_last_line_is_passed_over_kept_and_written_after(tmp_path):
    path = tmp_path / FILE
    add_line(path, {"key": "a"})
    with open(path, "a") as file:
        file.write('{"key": "b", "sco')
    add_line(path, {"key": "c"})
    lines, broken = read_lines(path)
    assert [one["key"] for one in lines] == ["a", "c"]
    assert "line 2" in broken[0]
    assert '{"key": "b", "sco' in path.read_text()


def test_many_writers_lose_no_line(tmp_path):
    path = tmp_path / FILE

    def write(who: int) -> None:
        for i in range(50):
            add_line(path, {"key": f"{who}-{i}", "fill": "x" * 5000})

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines, broken = read_lines(path)
    assert len({one["key"] for one in lines}) == 200
    assert broken == []


def tiny(rows: list[str], seeds: int = 1) -> list[Spec]:
    table = TABLES["main"]
    chosen = [row for row in table.rows if row.name in rows]
    return [spec for _, _, spec in table.specs([0.95], chosen, seeds, "tiny")]


def test_runs_share_stage_1_and_are_not_run_twice(tmp_path):
    said: list[str] = []
    options: dict = {"workers": 2, "device": "cpu", "data_dir": None, "say": said.append}
    first = run_all(tiny(["erm", "smix", "lmix"]), tmp_path, **options)
    assert [len(first.done), first.failed] == [3, []]
    assert len(list((tmp_path / "partitions").iterdir())) == 1
    lines, _ = read_lines(tmp_path / FILE)
    assert {one["method"] for one in lines} == {"erm", "smix", "lmix"}
    assert all(0 < one["scores"]["all"] < 1 for one in lines)
    again = run_all(tiny(["erm", "smix", "lmix"]), tmp_path, **options)
    assert (again.skipped, again.done) == (3, [])
    cells = as_json(TABLES["main"], lines, scale="tiny")
    assert {c["method"] for c in cells if c["seeds"] == 1} == {"erm", "smix", "lmix"}


def test_a_killed_worker_is_tried_again_and_the_others_go_on(tmp_path):
    said: list[str] = []
    killed: list[int] = []

    def kill_one() -> None:
        deadline = time.monotonic() + 60
        while not killed and time.monotonic() < deadline:
            found = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "unskew.paper.worker"],
                                   capture_output=True, text=True).stdout.split()  # fmt: skip
            if found:
                os.kill(int(found[0]), signal.SIGKILL)
                killed.append(int(found[0]))
            time.sleep(0.05)

    killer = threading.Thread(target=kill_one)
    killer.start()
    outcome = run_all(tiny(["erm", "smix"]), tmp_path, workers=2, device="cpu", data_dir=None, say=said.append)
    killer.join()
    assert killed
    assert len(outcome.done) == 2
    assert any("tried once more" in text for text in said)


def test_a_run_that_cannot_be_done_is_told_and_does_not_stop_the_rest(tmp_path):
    bad = Spec("digits:0.95", "erm", 0, {"lr": -1.0}, None, "tiny")
    outcome = run_all([bad, *tiny(["erm"])], tmp_path, workers=2, device="cpu", data_dir=None, say=lambda _: None)
    assert len(outcome.done) == 1
    assert "lr must be above 0" in outcome.failed[0][1]


class Clock:
    """Time that passes only while the queue sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 1.0


@dataclass
class Lasting:
    """A place to start runs, each of which lasts so many seconds."""

    clock: Clock
    seconds: float

    def start(self, spec: Spec) -> float:
        return self.clock.now + self.seconds

    def ended(self, job: float) -> Ended | None:
        return Ended(ok=True) if self.clock.now >= job else None

    def close(self) -> None: ...


@pytest.mark.parametrize(("minutes", "done"), [(1, 1), (1.9, 3), (3.2, 6), (60, 8)])
def test_no_run_is_begun_that_would_not_end_in_time(tmp_path, monkeypatch, minutes, done):
    """Of runs of 30 s on one worker, the next is begun while 30 s are left; the first, of unknown length, always."""
    clock = Clock()
    monkeypatch.setattr(runner, "time", clock)
    monkeypatch.setitem(runner.EXECUTORS, "local", lambda work, cuda: Lasting(clock, 30.5))
    options: dict = {"workers": 1, "device": "cpu", "data_dir": None, "say": lambda _: None}
    outcome = run_all(tiny(["erm"], seeds=8), tmp_path, minutes=minutes, **options)
    assert (len(outcome.done), len(outcome.left)) == (done, 8 - done)
    assert clock.now <= 60 * minutes + 1


def test_several_tables_in_one_call(run, cli, tmp_path):
    options = ["--scale", "tiny", "--seeds", "1", "--workers", "2", "--results", tmp_path]
    screen = run("paper", "run", "unbiased", "type1", "--methods", "erm", *options).out
    assert "2 runs: 0 already there, 2 to do" in screen
    assert screen.index("## unbiased") < screen.index("## type1")
    late = run("paper", "run", "unbiased", "--methods", "smix", "--minutes", "1e-9", *options).out
    assert "for want of time 1 runs were not begun" in late
    for bad, what in (
        (["unbiased", "tipe1"], "did you mean type1"),
        (["unbiased", "type1", "--methods", "lmixx"], "these tables have no row 'lmixx'; did you mean lmix"),
        (["unbiased", "--minutes", "0"], "--minutes above 0"),
        (["bar-lr", "--ratios", "0.95"], "table bar-lr has no ratios"),
        (["main", "photos", "--sets", "barr"], "these tables have no photo set 'barr'; did you mean bar"),
    ):
        outcome = cli("paper", "run", *bad, *options)
        assert outcome.status == 2
        assert what in outcome.err


def test_each_of_several_tables_takes_the_columns_that_it_has():
    tables = [TABLES["main"], TABLES["photos"], TABLES["omega"]]
    assert [_columns(each, tables, [0.95], None) for each in tables] == [[0.95], [], [0.95]]
    assert [_columns(each, tables, None, ["bar"]) for each in tables] == [[], ["bar"], []]
    assert [_columns(each, tables, None, None) for each in tables] == [list(each.ratios) for each in tables]


def test_the_command_line(tmp_path, environment):
    command = [sys.executable, "-m", "unskew", "paper"]
    options = ["--scale", "tiny", "--results", str(tmp_path)]
    run = [*command, "run", "main", "--ratios", "0.95", "--seeds", "1", "--workers", "2", *options, "--methods"]
    run += ["erm", "repair", "smix", "lmix", "smix-paper", "lmix-paper"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "| lmix-paper | 95% |" in done.stdout
    shown = subprocess.run(
        [*command, "show", "main", "--json", *options], env=environment, capture_output=True, text=True
    )
    cells = json.loads(shown.stdout)
    ran = [cell for cell in cells if cell["seeds"] == 1]
    assert [cell["method"] for cell in ran] == ["erm", "repair", "smix", "lmix", "smix-paper", "lmix-paper"]
    assert all(0 < cell["all_mean"] < 100 for cell in ran)
    assert all(0 <= cell["recall"] <= 1 for cell in ran[1:])
    listed = subprocess.run([*command, "list"], env=environment, capture_output=True, text=True).stdout
    assert all(table in listed for table in TABLES)
    bad = subprocess.run([*command, "run", "mian"], env=environment, capture_output=True, text=True)
    assert bad.returncode == 2
    assert "did you mean main" in bad.stderr


def test_committed_results_can_be_shown():
    results = Path(__file__).parents[2] / "results"
    lines, broken = read_lines(results / FILE)
    assert broken == []
    for table, cells in {"main": 12, "ablation": 14, "presets": 12, "tuning": 9, "digits": 11}.items():
        shown = [cell for cell in as_json(TABLES[table], lines) if cell["seeds"]]
        assert len(shown) >= cells, "the committed runs are found again by the recipes as they are"
    known = {spec.key for table in TABLES.values() for _, _, spec in table.specs(table.ratios, table.rows, 9, "full")}
    assert {one["key"] for one in lines} <= known
    assert "| erm | 95% | 47.2 ± 0.5 | 45.2 | +2.0 |" in as_markdown(TABLES["main"], lines)
    assert "| never right, Beta(.5, 2) | 95% | 65.0 ± 0.2 |" in as_markdown(TABLES["ablation"], lines)


def test_figures_are_drawn_from_a_run(tmp_path):
    table = table_named("losses")
    drawn = [table_named(name) for name in FIGURES if table_named(name).search is None]
    specs = [spec for each in drawn for _, _, spec in each.specs([0.95], each.rows, 1, "tiny")]
    outcome = run_all(specs, tmp_path, workers=2, device="cpu", data_dir=None, say=print)
    assert outcome.failed == []
    lines, _ = read_lines(tmp_path / FILE)
    for each in drawn:
        svg, png = draw(each, lines, tmp_path / "figures", scale="tiny")
        assert svg.read_text().startswith("<?xml")
        assert png.read_bytes().startswith(b"\x89PNG")
    counts = next(one["histogram"] for one in lines if one["key"] == specs[-1].key)
    assert sum(counts["aligned"]) + sum(counts["conflicting"]) == 400
    with pytest.raises(UnskewError, match="no results for losses yet"):
        draw(table, [], tmp_path)


def test_a_search_goes_on_from_the_points_there_are(tmp_path):
    table, said = table_named("beta-plane"), []
    how = {"workers": 3, "device": "cpu", "data_dir": None, "say": said.append}
    assert table.search is not None
    outcome = run_search(table, tmp_path, "tiny", **how)
    assert (len(outcome.done), outcome.failed) == (4, [])
    assert "beta-plane: 3 of 4 points" in said
    points = trials(table, read_lines(tmp_path / FILE)[0], "tiny")
    tried = {(p["spec"]["options"]["beta_a"], p["spec"]["options"]["beta_b"]) for p in points}
    assert len(tried) == 4, "points asked for together are not the same point"
    assert all(0.1 <= value <= 10 for point in tried for value in point)
    assert all(0 < p["validation"]["balanced"] < 1 for p in points)
    assert all(p["partition"]["quality"]["f1"] == 1 for p in points), "the true partition"
    assert run_search(table, tmp_path, "tiny", **how).done == []
    svg, _ = draw(table, points, tmp_path / "figures", scale="tiny")
    assert svg.read_text().startswith("<?xml")


FAKE_CONTROL = """#!/bin/sh
echo "$@ $CUDA_MPS_PIPE_DIRECTORY" >> {log}
[ "$1" = "-d" ] && exit {status}
cat >> {log}
"""


@pytest.mark.parametrize("status", [0, 1])
def test_mps_runs_as_long_as_the_runs_and_its_absence_is_no_matter(tmp_path, monkeypatch, status):
    log, control = tmp_path / "log", tmp_path / "nvidia-cuda-mps-control"
    control.write_text(FAKE_CONTROL.format(log=log, status=status))
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with shared_gpu() as environment:
        folder = environment.get("CUDA_MPS_PIPE_DIRECTORY")
        assert (folder is not None and Path(folder).is_dir()) is (status == 0)
        assert log.read_text().startswith("-d ")
    assert ("quit" in log.read_text()) is (status == 0)
    monkeypatch.setenv("PATH", "/nowhere")
    with shared_gpu() as environment:
        assert environment == {}

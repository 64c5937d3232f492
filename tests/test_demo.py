"""The whole road as `unskew demo` walks it, at the demo's own seed."""

import csv
import json

from unskew.demo import run_demo


def test_lmix_beats_erm_on_the_conflicting_digits_by_twenty_points(tmp_path, capsys):
    run_demo(tmp_path / "demo", device="cpu")
    out = tmp_path / "demo"
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [line["method"] for line in lines] == ["erm", "smix", "lmix"]
    unbiased = {line["method"]: line["scores"]["unbiased"] for line in lines}
    assert unbiased["lmix"] > unbiased["erm"] + 0.20
    assert unbiased["smix"] > unbiased["erm"] + 0.20
    quality = lines[-1]["partition"]["quality"]
    assert quality["precision"] > 0.7
    assert quality["recall"] > 0.7
    with open(out / "metrics.csv", newline="") as file:
        stages = {row["stage"] for row in csv.DictReader(file)}
    assert stages == {"ph", "erm", "smix", "lmix"}
    page = (out / "report.html").read_text()
    assert all(method in page for method in ("erm", "smix", "lmix"))
    assert "worst_group" in capsys.readouterr().out

"""Corrections: read, written, and what training makes of them."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import unskew
from command_line import MODEL, config, result_of, rows, weights
from unskew.data.corrections import MARKS, corrected, load_corrections, save_corrections, without_wrong_labels
from unskew.errors import UnskewError

NAMES = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r"), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, st.sampled_from(MARKS), max_size=8))
def test_saved_and_read_again_whatever_the_names(tmp_path, marks):
    save_corrections(tmp_path / "corrections.csv", marks)
    assert load_corrections(tmp_path / "corrections.csv") == marks


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id\na\n", "no column 'mark'"),
        ("id,mark\n0,perhaps\n", "line 2: 'perhaps' is no mark; write conflicting, aligned or label wrong."),
        ("id,mark\nelsewhere,aligned\n", "none of their 1 samples is in tiny; the first is 'elsewhere'"),
        ("id,mark\n\x00\xff", "cannot be read"),
    ],
)
def test_what_is_no_correction_is_told(tmp_path, tiny, text, told):
    (tmp_path / "c.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(UnskewError, match=told):
        load_corrections(tmp_path / "c.csv", tiny)


def test_a_person_wins_and_wrong_labels_are_left_out(tiny):
    partition = unskew.identify(tiny, "oracle")
    marks = {"0": "conflicting", "5": "aligned", "11": "conflicting", "7": "label wrong", "not there": "aligned"}
    data = without_wrong_labels(tiny, marks)
    assert len(data) == len(tiny) - 1
    assert "7" not in data.ids
    assert "1 samples whose label was marked wrong were left out" in data.notes
    after = corrected(partition.matched_to(data), marks)
    assert after.conflicting[data.ids.index("0")]
    assert not after.conflicting[data.ids.index("5")]
    assert after.score[data.ids.index("0")] == 1
    assert "1 samples moved to conflicting, 1 to aligned" in after.notes[-1]
    untouched = [i for i, name in enumerate(data.ids) if name not in marks]
    assert torch.equal(after.conflicting[untouched], partition.matched_to(data).conflicting[untouched])


@pytest.mark.usefixtures("photos_here")
def test_training_uses_them_and_the_run_can_be_given_back(run, cli):
    run("identify", "photos", "--identify", "random", "--out", "found")
    sides = {row["id"]: row["conflicting"] for row in rows("found/partition.csv")}
    given = ("train", "photos", "--epochs", 1, *MODEL, "--partition", "found")
    run(*given, "--out", "plain")
    known = {row["id"] for row in rows("plain/partition.csv")}  # without the held-out fifth
    one, two, three = sorted(known)[:3]
    marks = {one: "aligned" if sides[one] == "1" else "conflicting", two: "label wrong", three: "label wrong"}
    save_corrections("found/corrections.csv", marks)
    screen = run(*given, "--corrections", "found/corrections.csv", "--out", "corrected").out
    assert "2 samples whose label was marked wrong were left out" in screen
    after = {row["id"]: row["conflicting"] for row in rows("corrected/partition.csv")}
    assert set(after) == known - {two, three}
    assert after[one] != sides[one]
    assert all(after[name] == sides[name] for name in after if name != one)
    assert weights("corrected") != weights("plain")
    assert config("corrected")["corrections"] == "found/corrections.csv"
    assert "corrected by hand" in str(result_of("corrected")["partition"]["notes"])
    page = Path("corrected/report.html").read_text(encoding="utf-8")
    assert "label was marked wrong" in page
    run("train", "--config", "corrected/config.yaml", "--out", "again")
    assert weights("again") == weights("corrected")
    run(*given, "--corrections", "found", "--out", "corrected", "--resume")
    assert weights("again") == weights("corrected")
    save_corrections("found/corrections.csv", {})
    outcome = cli(*given, "--corrections", "found", "--out", "corrected", "--resume")
    assert outcome.status == 2, "they have changed since"


@pytest.mark.usefixtures("photos_here")
def test_they_need_the_partition_that_they_correct_unless_none_is_needed(run, cli):
    save_corrections("c.csv", {"cat/00.png": "label wrong"})
    outcome = cli("train", "photos", "--epochs", 1, *MODEL, "--corrections", "c.csv", "--out", "out")
    assert (outcome.status, "give --partition" in outcome.err) == (2, True)
    assert not Path("out").exists()
    run("train", "photos", "--epochs", 1, *MODEL, "--method", "erm", "--corrections", "c.csv", "--out", "out")


@pytest.mark.usefixtures("photos_here")
def test_a_persons_work_is_not_cleared_with_an_older_run(run):
    run("identify", "photos", "--identify", "random", "--out", "found")
    save_corrections("found/corrections.csv", {"cat/00.png": "aligned"})
    run("identify", "photos", "--identify", "random", "--out", "found")
    assert load_corrections("found/corrections.csv") == {"cat/00.png": "aligned"}

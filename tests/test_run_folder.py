"""A run folder: its config given back, going on, starting afresh, and a disk that is full."""

import errno
import json
import os
from pathlib import Path

import pytest

from command_line import MODEL, QUICK, STAGE1, config, files, result_of, rows, weights
from unskew.engine.recipes import RECIPES

pytestmark = pytest.mark.usefixtures("photos_here")


def partition(folder) -> str:
    return Path(folder, "partition.csv").read_text(encoding="utf-8")


# Options, from a file and from the command line


def test_a_runs_own_config_gives_the_same_bits(run):
    run("train", "photos", *QUICK, "--seed", 5, "--method.omega", 0.01, "--identify.window", 3, "--out", "a")
    run("train", "--config", "a/config.yaml", "--out", "b")
    assert weights("b") == weights("a")
    assert partition("b") == partition("a")
    assert config("b") == config("a")
    run("train", "--config", "a/config.yaml", "--seed", 6, "--out", "c")
    assert weights("c") != weights("a")
    assert config("c")["seed"] == 6
    assert config("c")["method"]["omega"] == 0.01


def test_a_run_with_a_given_partition_can_be_given_back_too(run):
    run("identify", "photos", "--identify", "random", "--out", "found")
    run("train", "photos", "--epochs", 1, *MODEL, "--partition", "found", "--out", "a")
    run("train", "--config", "a/config.yaml", "--out", "b")
    assert weights("b") == weights("a")


def test_the_command_line_wins_over_the_file(run):
    Path("c.yaml").write_text(
        "data: photos\nepochs: 3\nlr: 1e-2\nmodel: cnn\ndevice: cpu\nseed: 1\n"
        "method: {omega: 0.5, reverse_reg: true}\nidentify: {epochs: 1, lr: 1e-6, window: 2}\n"
    )
    run("train", "--config", "c.yaml", "--out", "file")
    said = config("file")
    assert (said["epochs"], said["lr"], said["seed"], said["identify"]["window"]) == (3, 0.01, 1, 2)
    assert (said["method"]["name"], said["method"]["omega"], said["method"]["reverse_reg"]) == ("lmix", 0.5, True)
    assert len(rows("file/metrics.csv")) == 4
    said = ("--epochs", 1, "--method.omega=0.25", "--identify.window", 3, "--method", "lmix", "--identify", "ph")
    run("train", "--config", "c.yaml", *said, "--out", "line")
    wins = config("line")
    assert (wins["epochs"], wins["method"]["omega"], wins["identify"]["window"]) == (1, 0.25, 3)
    assert (wins["lr"], wins["method"]["reverse_reg"], wins["identify"]["lr"]) == (0.01, True, 1e-6)
    run("train", "--config", "c.yaml", "--method", "smix", "--out", "other")
    assert config("other")["method"]["name"] == "smix", "another method does not inherit omega"
    Path("p.yaml").write_text("partition: line/partition.csv\nepochs: 1\n")
    run("train", "photos", "--config", "p.yaml", *MODEL, "--out", "given")
    assert partition("given") == partition("line")


def test_identify_takes_the_stage_1_of_a_training_run(run, pictures):
    pictures(Path("split/train"))
    pictures(Path("split/test"), each=2)
    run("train", "split", *QUICK, "--out", "trained")
    run("identify", "--config", "trained/config.yaml", "--out", "same")
    assert partition("same") == partition("trained")
    run("identify", "--config", "trained/config.yaml", "--epochs", 3, "--out", "longer")
    assert config("longer")["identify"]["epochs"] == 3, "--epochs is stage 1's here, and wins"
    run("train", "--config", "same/config.yaml", "--epochs", 2, *MODEL, "--out", "back")
    assert weights("back") == weights("trained")


def test_the_config_of_the_demo_trains_its_model_again(run, monkeypatch):
    for name in ("ph", "erm", "smix", "lmix"):
        monkeypatch.setitem(RECIPES["digits"], name, {"epochs": 1})
    screen = run("demo", "--out", "demo", "--seed", 2, "--device", "cpu").out
    lines = [json.loads(line) for line in Path("demo/results.jsonl").read_text().splitlines()]
    assert [(line["method"], line["seed"], line["epoch"]) for line in lines] == [
        ("erm", 2, 1),
        ("smix", 2, 1),
        ("lmix", 2, 1),
    ]
    assert f"{lines[2]['scores']['unbiased']:.1%}" in screen
    run("train", "--config", "demo/config.yaml", "--out", "again")
    assert weights("again") == weights("demo")


# Going on and starting afresh


def test_resume_without_a_checkpoint_starts_and_after_the_end_does_nothing(run):
    run("train", "photos", *QUICK, "--out", "plain")
    run("train", "photos", *QUICK, "--out", "out", "--resume")
    assert weights("out") == weights("plain")
    before = result_of("out")
    screen = run("train", "./photos/", *QUICK, "--out", "out", "--resume").out
    assert "going on after epoch 2" in screen
    assert weights("out") == weights("plain")
    assert result_of("out")["scores"] == before["scores"]
    assert len(rows("out/metrics.csv")) == 4


def test_resume_with_other_options_is_refused_and_touches_nothing(run, cli):
    run("train", "photos", *QUICK, "--out", "out")
    run("identify", "photos", "--identify", "random", *MODEL, "--out", "found")
    before = files(".")
    for arguments, told in [
        (("train", "photos", *QUICK, "--lr", 0.1, "--out", "out"), "lr was 0.001 there and is 0.1 now"),
        (("train", "photos", *QUICK, "--method.omega", 1, "--out", "out"), "method.omega was 0.001 there and is 1.0"),
        (("train", "photos", "--epochs", 2, *MODEL, "--out", "out"), "identify.epochs was 2 there and is 10 now"),
        (("train", "digits", *QUICK, "--out", "out"), "'photos' there and is 'digits' now"),
        (("identify", "photos", "--identify", "random", *MODEL, "--seed", 1, "--out", "found"), "identify.seed was"),
    ]:
        outcome = cli(*arguments, "--resume")
        assert outcome.status == 2
        assert told in outcome.err
        assert outcome.err.count("\n") == 1
    assert files(".") == before


def test_a_fresh_run_picks_up_nothing_of_an_older_one(run):
    run("train", "photos", *QUICK, "--log", "tensorboard", "--out", "out")
    run("train", "photos", "--method", "erm", "--epochs", 1, *MODEL, "--out", "out")
    left = {"checkpoint.pt", "config.yaml", "metrics.csv", "model.safetensors", "report.html", "results.jsonl"}
    assert set(files("out")) == left
    assert [row["stage"] for row in rows("out/metrics.csv")] == ["erm"]
    assert result_of("out")["method"] == "erm"
    run("identify", "photos", "--identify", "random", "--out", "out")
    assert set(files("out")) == {"config.yaml", "partition.csv", "partition.history.npz", "report.html"}


def test_a_partition_in_the_run_folder_itself_is_kept(run):
    run("identify", "photos", "--epochs", 2, "--lr", 1e-6, *MODEL, "--out", "out")
    found = {row["id"]: row for row in rows("out/partition.csv")}
    run("train", "photos", "--epochs", 1, *MODEL, "--partition", "out/partition.csv", "--out", "out")
    assert rows("out/partition.csv") == [found[row["id"]] for row in rows("out/partition.csv")]
    assert result_of("out")["partition"]["how"] == "ph", "with the history that lay beside it"


# Failures that must lose nothing


@pytest.mark.parametrize("write", [1, 3, 8, 10, 12, 14, 15, 16])
def test_a_full_disk_is_told_and_gone_on_from(run, cli, monkeypatch, write):
    run("train", "photos", *QUICK, "--out", "plain")
    calls, fsync = [], os.fsync

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == write:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        outcome = cli("train", "photos", *QUICK, "--out", "out")
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert "could not be written (No space left on device)" in outcome.err
    assert not list(Path("out").glob("*.tmp")) + list(Path("out").glob(".*.tmp"))
    run("train", "photos", *QUICK, "--out", "out", "--resume")
    assert weights("out") == weights("plain")
    assert set(files("out")) == set(files("plain"))


@pytest.mark.filterwarnings("default:the decoded images are not kept")
def test_a_full_disk_leaves_what_was_there(run, cli, monkeypatch):
    run("train", "photos", *QUICK, "--out", "out")
    for name in ("p.csv", "m.safetensors"):
        Path(name).write_text("from before")
    before = files(".")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for arguments in (
        ("predict", "out", "photos", "--out", "p.csv"),
        ("export", "out", "--safetensors", "m.safetensors"),
    ):
        outcome = cli(*arguments)
        assert outcome.status == 2
        *warned, error = outcome.err.splitlines()
        assert error.startswith(f"unskew: {arguments[-1]} could not be written (No space left on device)")
        assert [line for line in warned if not line.startswith("unskew: warning: the decoded images")] == []
    assert files(".") == before


def test_a_loss_that_turns_nan_is_told_with_what_was_done_before(run, cli):
    outcome = cli("train", "photos", *QUICK, "--lr", 1e30, "--out", "out")
    assert outcome.status == 2
    assert "the loss of lmix turned NaN at epoch 1, step 1: lower its learning rate (now 1e+30)" in outcome.err
    assert "the checkpoint of epoch 0 is kept" in outcome.err
    assert {"checkpoint.pt", "partition.csv", "metrics.csv"} <= set(files("out"))
    assert not Path("out/model.safetensors").exists()
    run("train", "photos", "--epochs", 2, *MODEL, "--partition", "out/partition.csv", "--out", "out")
    assert result_of("out")["config"]["lr"] == 0.001


@pytest.mark.parametrize(
    "wrong",
    [
        ("--weights", "photos/cat/00.png"),
        ("--device", "cuda:77"),
        ("--partition", "found/partition.csv"),
        ("--identify", "oracle"),
        ("--identify.epochs", 0),
        ("--method.omega", "much"),
        ("--model", "resnt18"),
    ],
    ids=lambda option: option[0],
)
def test_a_run_that_cannot_start_leaves_the_older_one_alone(run, cli, pictures, wrong):
    run("train", "photos", *QUICK, "--out", "out")
    pictures(Path("others"), "emu", "yak")
    run("identify", "others", "--identify", "random", "--out", "found")
    before = files("out")
    others = () if wrong[0] == "--partition" else STAGE1
    assert cli("train", "photos", "--epochs", 1, *others, *wrong, "--out", "out").status == 2
    assert files("out") == before
    assert cli("demo", "--device", "cuda:77", "--out", "out").status == 2
    assert cli("identify", "photos", "--device", "cuda:77", "--out", "out").status == 2
    assert files("out") == before

"""The command line, as somebody uses it who has just installed it."""

import json
import re
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

import unskew
from command_line import MODEL, QUICK, config, result_of, rows, weights

RUN_FOLDER = {
    "checkpoint.pt", "config.yaml", "identify.safetensors", "metrics.csv", "model.safetensors", "partition.csv",
    "partition.history.npz", "report.html", "results.jsonl",
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("photos_here")

# Before anything is trained


def test_help_is_there_at_once_and_without_torch(environment):
    script = (
        "import sys\nfrom unskew.cli import main\ntry: main(sys.argv[1:])\nfinally: assert 'torch' not in sys.modules"
    )
    for arguments in (["--help"], ["train", "--help"], ["--version"]):
        command, took = [sys.executable, "-c", script, *arguments], []
        for _ in range(2):
            started = time.perf_counter()
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            took.append(time.perf_counter() - started)
            assert done.returncode == 0, done.stderr
            assert ("--batch-size" in done.stdout) == ("train" in arguments)
            assert (done.stdout.strip() == unskew.__version__) == ("--version" in arguments)
        assert min(took) < 1


def test_importing_brings_in_nothing_heavy_but_torch(environment):
    heavy = [
        "sklearn",
        "matplotlib",
        "lightning_fabric",
        "pydantic",
        "PIL",
        "rich",
        "jinja2",
        "yaml",
        "cyclopts",
        "onnx",
        "wandb",
        "datasets",
        "torch._dynamo",
    ]
    script = (
        "import sys, torch; before = set(sys.modules); import unskew; unskew.load, unskew.identify, unskew.train; "
        f"found = [name for name in {heavy} if name in set(sys.modules) - before]; assert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_methods_and_data_sets_are_listed_a_line_each(run):
    lines = run("methods").out.splitlines()
    for name in unskew.METHODS:
        assert [line for line in lines if line.split()[:1] == [name]], name
    (omega,) = [line for line in lines if "--method.omega" in line]
    assert omega.split() == ["lmix:", "--method.omega", "0.001", "ω,", "weight", "of", "Reg,", "for", "weights"]
    (window,) = [line for line in lines if "--identify.window" in line]
    assert "updated" in window, "a pipe is not 80 columns wide"
    listed = run("datasets").out
    assert "digits" in listed
    assert "hf:owner/name" in listed


def test_a_pipe_that_knows_no_greek(environment):
    command = [sys.executable, "-m", "unskew", "methods"]
    done = subprocess.run(command, env={**environment, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--method.omega" in done.stdout


# The way through


def test_identify_covers_every_image_and_train_takes_its_partition(run):
    found = run("identify", "photos", "--epochs", 2, "--lr", 1e-6, *MODEL, "--out", "found")
    partition = rows("found/partition.csv")
    assert list(partition[0]) == ["id", "label", "score", "times_right", "usual_wrong_class", "conflicting"]
    assert {row["id"] for row in partition} == {p.relative_to("photos").as_posix() for p in Path("photos").rglob("*.*")}
    conflicting = {row["id"] for row in partition if row["conflicting"] == "1"}
    assert f"{len(conflicting)} of 24 samples" in found.out
    assert f"{len(conflicting)} of 24 samples" in Path("found/report.html").read_text(encoding="utf-8")
    assert config("found")["identify"]["epochs"] == 2

    trained = run("train", "photos", "--epochs", 1, "--partition", "found/partition.csv", *MODEL, "--out", "trained")
    assert "4 of 24 images (20% of each class) were held out as test" in trained.out
    used = rows("trained/partition.csv")
    assert len(used) == 20
    assert {row["id"] for row in used if row["conflicting"] == "1"} == conflicting & {row["id"] for row in used}
    about = result_of("trained")["partition"]
    assert about["how"] == "ph"
    assert about["conflicting"] == sum(row["conflicting"] == "1" for row in used)
    run("train", "photos", "--epochs", 1, "--partition", "found", *MODEL, "--out", "by its folder")
    assert weights("by its folder") == weights("trained")


def test_train_leaves_the_run_folder_and_a_line_of_results(run):
    Path("runs").mkdir()
    screen = run("train", "photos", "--method", "lmix", *QUICK, "--seed", 3, "--out", "runs").out
    assert {path.name for path in Path("runs").iterdir()} == RUN_FOLDER
    assert "\x1b" not in screen
    assert "\r" not in screen
    result = result_of("runs")
    assert (result["dataset"], result["method"], result["seed"]) == ("photos", "lmix", 3)
    assert (result["selected"], result["epoch"]) == ("last", 2)
    assert result["config"]["omega"] == 0.001
    assert result["scores"]["all"] in (0, 0.25, 0.5, 0.75, 1)
    assert [result["scores"][name] for name in ("unbiased", "aligned", "worst_group")] == [None] * 3
    assert result["partition"]["quality"] is None
    assert result["seconds"] > 0
    assert result["images_per_second"] > 0
    assert result["device"].startswith("cpu")
    assert result["versions"]["torch"] == torch.__version__
    stages = [(row["stage"], row["epoch"]) for row in rows("runs/metrics.csv")]
    assert stages == [("ph", "1"), ("ph", "2"), ("lmix", "1"), ("lmix", "2")]
    assert f"{result['scores']['all']:.1%}" in screen


def test_a_table_with_bias_and_windows_line_endings_brings_every_score(run):
    lines = ["path,label,bias,split"]
    for i, path in enumerate(sorted(Path("photos").rglob("*.png"))):
        bias = "indoors" if (path.parent.name == "cat") != (i % 4 == 0) else "outdoors"
        lines.append(f"{path},{path.parent.name},{bias},{'test' if i % 12 > 7 else 'train'}")
    Path("list.csv").write_bytes("\r\n".join([*lines, ""]).encode())
    screen = run("train", "list.csv", *QUICK, "--out", "out").out
    assert "held out" not in screen
    result = result_of("out")
    names = ("all", "unbiased", "aligned", "worst_group")
    assert all(0 <= result["scores"][name] <= 1 for name in names)
    assert result["scores"]["count"] == 8
    assert 0 <= result["partition"]["quality"]["recall"] <= 1
    assert {row["bias"] for row in rows("out/partition.csv")} == {"0", "1"}
    text = Path("out/partition.csv").read_text(encoding="utf-8")
    Path("edited.csv").write_bytes(text.replace("\n", "\r\n").encode())
    run("train", "list.csv", "--epochs", 2, *MODEL, "--partition", "edited.csv", "--out", "again")
    assert weights("again") == weights("out")


def test_names_with_spaces_accents_and_markup(run, pictures):
    data, out = Path("my photos é 日本"), Path("out [bold] :cat: é")
    pictures(data, "<script>alert(1)", 'quote" onload="x')
    (data / 'quote" onload="x' / "00.png").rename(data / 'quote" onload="x' / "a,b\nc <img src=x>.png")
    screen = run("train", data, *QUICK, "--out", out).out
    assert f"Written: {out}/model.safetensors" in screen
    page = Path(out, "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:", page)

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            attributes = dict(attrs)
            scripts.extend([tag] * (tag == "script"))
            assert not [name for name in attributes if name.startswith("on")]
            if tag == "img":
                assert attributes["src"].startswith(("data:image/png;base64,", "data:image/jpeg;base64,"))
            if "href" in attributes:
                place, _, anchor = attributes["href"].partition("#")
                assert Path(out, place).exists()
                assert not anchor or f'id="{anchor}"' in page

        def handle_data(self, data):
            said.add(data)

    said: set[str] = set()
    scripts: list[str] = []
    Reader().feed(page)
    assert {"<script>alert(1)", 'quote" onload="x'} <= said
    assert len(scripts) == 1, "ours"
    run("train", "--config", out / "config.yaml", "--out", "again")
    assert weights("again") == weights(out)
    run("predict", out, data, "--out", "new folder/p é.csv")
    assert {row["id"] for row in rows("new folder/p é.csv")} >= {'quote" onload="x/a,b\nc <img src=x>.png'}


def test_the_other_identifiers(run):
    run(
        "identify", "photos", "--identify", "sp", "--identify.gamma", 0.1, "--identify.checks", 1, *MODEL, "--out", "sp"
    )
    assert len(rows("sp/metrics.csv")) == 1, "an accuracy of 10% is reached at the first look"
    run("identify", "photos", "--identify", "random", "--seed", 4, "--out", "random")
    assert sum(row["conflicting"] == "1" for row in rows("random/partition.csv")) == 12
    run("train", "photos", "--method", "smix", "--identify", "random", "--epochs", 1, *MODEL, "--out", "smix")
    assert result_of("smix")["partition"]["how"] == "random"
    assert config("smix")["identify"]["name"] == "random"


def test_stage_1_may_have_a_model_of_its_own(run):
    own = ("--identify.model", "resnet18", "--identify.stem", "photo")
    run("train", "photos", "--epochs", 1, *MODEL, *own, "--identify.epochs", 1, "--identify.lr", 1e-6, "--out", "out")
    assert config("out")["identify"]["model"] == "resnet18"
    assert result_of("out")["model"]["name"] == "cnn"


def test_a_partition_that_a_method_has_no_use_for_is_mentioned(run):
    screen = run("train", "photos", "--method", "erm", "--partition", "p.csv", "--epochs", 1, *MODEL).out
    assert "erm needs no partition" in screen
    assert "partition.csv" not in {path.name for path in Path("runs/train").iterdir()}


# After training


def test_evaluate_scores_the_images_it_is_pointed_at(run, pictures):
    run("train", "photos", *QUICK, "--out", "out")
    again = run("evaluate", "out", "photos", "--split", "test", "--json", "--device", "cpu")
    scores = json.loads(again.out)
    assert scores["all"] == result_of("out")["scores"]["all"]
    assert scores["count"] == 4
    assert "held out" in again.err, "notes stay out of what a program reads"
    screen = run("evaluate", "out", "./photos/").out
    assert "photos: 24 images" in screen
    assert "--split test scores the images that were held out" in screen
    pictures(Path("others/test"), "dog", each=3)
    pictures(Path("others/train"), each=2)
    elsewhere = run("evaluate", "out/model.safetensors", "others", "--json")
    assert json.loads(elsewhere.out)["count"] == 3, "the test split, where there is one"
    assert elsewhere.err == ""


def test_predict_wants_no_labels(run, pictures):
    run("train", "photos", *QUICK, "--out", "out")
    flat = Path("flat")
    shutil.copytree("photos/cat", flat / "deeper")
    shutil.copy("photos/dog/00.png", flat / "dog.png")
    run("predict", "out", flat, "--out", "p.csv")
    run("predict", "out", "photos", "--out", "all.csv")
    flat_rows, labelled = rows("p.csv"), {row["id"]: row for row in rows("all.csv")}
    assert (len(flat_rows), len(labelled)) == (13, 24)
    for row in flat_rows:
        probabilities = {name: float(row[f"p_{name}"]) for name in ("cat", "dog")}
        assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert probabilities[row["prediction"]] == float(row["confidence"]) == max(probabilities.values())
        twin = labelled[row["id"].replace("deeper", "cat") if "/" in row["id"] else "dog/00.png"]
        assert float(twin["p_cat"]) == pytest.approx(probabilities["cat"], abs=1e-5)
    Path("list.csv").write_text("path\nflat/dog.png\n")
    run("predict", "out", "list.csv", "--out", "one.csv")
    assert [row["id"] for row in rows("one.csv")] == ["flat/dog.png"]
    shutil.copytree("photos", "split/train")
    pictures(Path("split/test"), each=1)
    run("predict", "out", "split", "--out", "test.csv")
    assert {row["id"] for row in rows("test.csv")} == {"test/cat/00.png", "test/dog/00.png"}


def test_export_gives_files_that_other_programs_read(run):
    onnxruntime = pytest.importorskip("onnxruntime")
    run("train", "photos", *QUICK, "--out", "out")
    screen = run("export", "out", "--onnx", "m.onnx", "--safetensors", "plain.safetensors").out
    assert "m.onnx: logits differ" in screen
    data = unskew.load("photos")
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"images": np.ascontiguousarray(data.images.numpy(), np.float32) / 255})
    model, _ = unskew.load_model("out")
    expected = model(data.images.float() / 255).detach().numpy()
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    with safe_open("plain.safetensors", "pt") as file:
        names = set(file.keys())
    assert {"head.0.weight", "layers.0.weight"} <= names


def test_logs_appear_where_they_should_and_not_twice(run, monkeypatch):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator").EventAccumulator
    for epochs in (2, 1):
        run("train", "photos", *QUICK[2:], "--epochs", epochs, "--log", "tensorboard", "--out", "out")
        (events,) = Path("out/tensorboard").iterdir()
        log = accumulator(str(events)).Reload()
        assert {"ph/loss", "lmix/loss", "lmix/alpha"} <= set(log.Tags()["scalars"])
        logged = [(event.step, event.value) for event in log.Scalars("lmix/loss")]
        written = [(int(row["epoch"]), float(row["loss"])) for row in rows("out/metrics.csv") if row["stage"] == "lmix"]
        assert logged == [(epoch, pytest.approx(loss, rel=1e-5)) for epoch, loss in written]
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run("identify", "photos", "--epochs", 1, "--lr", 1e-6, *MODEL, "--log", "wandb", "--out", "found")
    wandb.finish()
    (file,) = Path("found/wandb").glob("offline-run-*/*.wandb")
    deadline = time.monotonic() + 20  # another process writes it, and may not be done when finish() is
    while b"ph/loss" not in file.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert b"ph/loss" in file.read_bytes()


def test_one_image_can_be_predicted_and_one_class_scored(cli, photos_here, pictures, tmp_path):
    assert cli("train", "photos", "--method", "erm", "--out", "run", *QUICK).status == 0
    photo = next(Path("photos").rglob("*.png"))
    assert cli("predict", "run", photo, "--out", "one.csv").status == 0
    assert len(Path("one.csv").read_text().splitlines()) == 2
    assert cli("evaluate", "run", pictures(Path("half"), "cat")).status == 0

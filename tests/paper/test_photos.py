import pytest
import torch

from photo_sets import bar, waterbirds
from unskew.engine.recipes import RECIPES, recipe
from unskew.errors import UnskewError
from unskew.models import model_factory
from unskew.paper import TABLES
from unskew.paper.runner import run_all
from unskew.paper.show import as_json, as_markdown
from unskew.paper.spec import Spec
from unskew.paper.store import FILE, read_lines

SCORES = {"all": 0.9, "unbiased": 0.6, "train_weighted": 0.95, "worst_group": 0.7, "minority_mean": 0.75}


def specs(table: str) -> dict[tuple[str, str], Spec]:
    return {
        (row.name, column): spec
        for row, column, spec in TABLES[table].specs(TABLES[table].ratios, TABLES[table].rows, 1, "full")
    }


def test_who_is_run_on_what():
    found = specs("photos")
    names = {column: {row for row, c in found if c == column} for column in ("waterbirds", "celeba", "bar")}
    assert {"erm", "cvar-dro", "lff", "jtt", "smix", "lmix", "group-dro"} <= names["waterbirds"] == names["celeba"]
    assert names["bar"] == {f"{m}{s}" for m in ("erm", "lff", "smix", "lmix") for s in ("", "-scratch")}


def test_photos_start_from_imagenet_unless_from_scratch():
    found = specs("photos")
    lmix, scratch = found["lmix", "bar"], found["lmix-scratch", "bar"]
    for options in (lmix.options, lmix.identify):
        assert (options["model"], options["weights"]) == ("resnet50-v1", "imagenet")
    for options in (scratch.options, scratch.identify):
        assert (options["model"], options.get("weights")) == ("resnet18", None)
    assert specs("omega")["omega=0.001", "waterbirds"].options["weights"] == "imagenet"
    assert "weights" not in specs("omega")["omega=0.001", 0.95].options


def test_each_set_has_the_recipe_of_its_baselines():
    found = specs("photos")
    jtt = found["jtt", "waterbirds"]
    assert (jtt.options["lr"], jtt.options["weight_decay"], jtt.options["up"], jtt.options["epochs"]) == (
        1e-5,
        1,
        100,
        300,
    )
    assert (jtt.identify["epochs"], jtt.identify.get("up")) == (60, None)
    assert (found["jtt", "celeba"].identify["epochs"], found["jtt", "celeba"].options["up"]) == (1, 50)
    assert recipe("bar", "erm")["lr"] == 1e-4
    assert {"waterbirds", "celeba", "bar"} <= set(RECIPES)


def test_the_same_run_in_several_tables_is_one():
    photos, stage1 = specs("photos"), specs("photos")["lmix", "celeba"].stage1_key
    assert photos["smix", "celeba"].stage1_key == specs("smix-vs-lmix")["lmix", "celeba"].stage1_key == stage1
    assert specs("omega")["omega=0.001", "celeba"].stage1_key != stage1, "the paper's own cut"
    assert specs("smix-vs-lmix")["lmix", "bar"].key == specs("photos")["lmix", "bar"].key


def test_the_papers_figures_are_there():
    cells = {(c["method"], c["ratio"]): (c["paper_all"], c["paper_unbiased"]) for c in as_json(TABLES["photos"], [])}
    assert cells["jtt", "waterbirds"] == (93.3, 86.7)
    assert cells["group-dro", "celeba"] == (92.9, 88.9)
    assert cells["lff", "bar"] == (62.9, None)
    assert ("jtt", "bar") not in cells


def test_all_and_unbiased_are_what_the_set_calls_so():
    found = specs("photos")
    lines = [
        {"key": spec.key, "seed": 0, "scores": SCORES, "partition": None, "validation": None}
        for (row, _), spec in found.items()
        if row == "erm"
    ]
    cells = {c["ratio"]: c for c in as_json(TABLES["photos"], lines) if c["method"] == "erm"}
    birds, faces = cells["waterbirds"], cells["celeba"]
    assert (birds["all_mean"], birds["unbiased_mean"], birds["gap"]) == pytest.approx((95, 70, 25))
    assert (birds["all_is"], birds["unbiased_is"]) == ("train_weighted", "worst_group")
    assert (faces["all_mean"], faces["unbiased_mean"], faces["gap"]) == pytest.approx((90, 70, 20))
    assert faces["scores"] == pytest.approx({"all": 90, "train_weighted": 95, "worst_group": 70, "minority_mean": 75})
    text = as_markdown(TABLES["photos"], lines)
    assert "| erm | waterbirds | 95.0 | 97.3 | -2.3 | 70.0 | 72.6 | -2.6 |" in text
    assert "All − Unb." in text


def test_a_run_on_photos_records_its_weights_and_shares_stage_1(tmp_path):
    """A real worker on a small BAR; a network that is quick stands in for ResNet-50."""
    root = bar(tmp_path / "data" / "BAR", each=4)
    weights = tmp_path / "somewhere" / "imagenet.pth"
    weights.parent.mkdir()
    torch.save(model_factory("cnn", 6, 224)().backbone.state_dict(), weights)
    quick = {"model": "cnn", "weights": "imagenet", "epochs": 1, "batch_size": 12}
    stage1 = {"name": "ph", **quick, "lr": 1e-6}
    runs = [Spec("bar", method, 0, quick, stage1, holdout=0.5) for method in ("erm", "smix")]
    how: dict = {"workers": 2, "device": "cpu", "data_dir": root.parent, "say": print, "weights": weights}
    outcome = run_all(runs, tmp_path / "results", **how)
    assert outcome.failed == []
    lines, _ = read_lines(tmp_path / "results" / FILE)
    assert {line["key"] for line in lines} == {spec.key for spec in runs}, "the key knows no path"
    assert len(list((tmp_path / "results" / "partitions").iterdir())) == 1
    for line in lines:
        assert line["weights"]["file"] == line["config"]["weights"] == "imagenet.pth"
        assert len(line["weights"]["sha256"]) == 64
        assert str(tmp_path) not in str(line)
        assert 0 <= line["validation"]["worst_pseudo_group"] <= 1
        assert line["scores"]["worst_group"] is None


def test_sets_and_weights_that_are_not_there(tmp_path, cli):
    bar(tmp_path / "BAR")
    options = ("--results", tmp_path / "results", "--device", "cpu", "--seeds", 1, "--data-dir", tmp_path)
    told = cli("paper", "run", "photos", "--methods", "erm", *options)
    assert told.status == 0
    assert "note: waterbirds is left out: Waterbirds was not found" in told.out
    assert "note: celeba is left out" in told.out
    assert "note: 1 runs are left out: they start from ImageNet weights" in told.out
    assert "0 runs: 0 already there, 0 to do" in told.out
    assert cli("paper", "run", "photos", "--sets", "celeba", *options).status == 2
    assert "did you mean waterbirds" in cli("paper", "run", "photos", "--sets", "waterbird", *options).err
    assert "no weights file" in cli("paper", "run", "photos", "--weights", tmp_path / "none.pth", *options).err
    assert cli("paper", "run", "bar-lr", *options[:-1], tmp_path / "BAR" / "test").status == 2


def test_selection_on_a_validation_split_in_a_worker(tmp_path):
    root = waterbirds(tmp_path / "birds")
    quick = {"model": "cnn", "epochs": 2, "batch_size": 8, "select": "val"}
    spec = Spec("waterbirds", "erm", 0, quick, {"name": "ph", "model": "cnn", "epochs": 1, "lr": 1e-6})
    outcome = run_all([spec], tmp_path / "results", workers=1, device="cpu", data_dir=root, say=print)
    assert outcome.failed == []
    (line,), _ = read_lines(tmp_path / "results" / FILE)
    assert line["selected"] == "val"
    assert line["validation"]["oracle"]["gap"] == pytest.approx(
        line["validation"]["oracle"]["test_worst_group"] - line["scores"]["worst_group"]
    )
    assert line["validation"]["count"] == 8


def test_a_run_that_needs_weights_says_so(tmp_path):
    from unskew.paper.worker import started

    with pytest.raises(UnskewError, match="name the file with --weights"):
        started({"weights": "imagenet"}, None)
    assert started({"weights": "mine.pth"}, None) == {"weights": "mine.pth"}

import json
from dataclasses import replace

import pytest
import torch

import unskew
from command_line import QUICK, result_of
from unskew.data.partition_file import load_partition
from unskew.errors import UnskewError
from unskew.scores import evaluate
from unskew.selection import SMALLEST_GROUP, Selection, choose, told, validation_of, with_sides
from unskew.testing import TinyBackbone, tiny_data

HOW = {"model": TinyBackbone(), "epochs": 4, "batch_size": 16, "lr": 0.01, "device": "cpu", "progress": False}


@pytest.fixture
def sets():
    """Training, validation and test data of one kind; 3 classes."""
    data = tiny_data(samples=340)
    return data.subset(slice(160)), data.subset(slice(160, 250)), data.subset(slice(250, 340))


class Constant(torch.nn.Module):
    """Says the same class of everything."""

    def __init__(self, which: int) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.eye(3)[which])

    def forward(self, x):
        return self.logits.expand(len(x), -1)


def test_pseudo_groups_by_hand():
    data = tiny_data(samples=60)
    conflicting = torch.arange(60) % 2 == 0
    predictions = data.labels.clone()
    wrong = (data.labels == 1) & conflicting
    predictions[wrong.nonzero().flatten()[: int(wrong.sum()) // 2]] = 0
    found = validation_of(predictions, with_sides(data, conflicting), data)
    name = f"{data.class_names[1]}/conflicting"
    assert found.worst_pseudo_group == found.groups[name] == pytest.approx(1 - (wrong.sum() // 2 / wrong.sum()).item())
    assert found.aligned == 1
    assert found.balanced == pytest.approx(1 / 3 + 2 * found.conflicting / 3)
    assert found.worst_group == unskew.scores.score(predictions, data).worst_group


def test_a_group_of_a_few_samples_does_not_decide():
    data = tiny_data(samples=60)
    inside = (data.labels == 0).nonzero().flatten()
    conflicting = torch.zeros(60, dtype=torch.bool)
    conflicting[inside[: SMALLEST_GROUP - 1]] = True
    predictions = data.labels.clone()
    predictions[inside[: SMALLEST_GROUP - 1]] = 1
    found = validation_of(predictions, with_sides(data, conflicting))
    assert found.groups[f"{data.class_names[0]}/conflicting"] == 0
    assert found.worst_pseudo_group == 1
    assert found.worst_group is None


def test_the_best_epoch_is_kept_and_given_back():
    data = tiny_data(samples=90)
    selection = Selection(with_sides(data, data.labels == 2), replace(data, bias=None))
    model = Constant(0)
    rows = []
    for epoch, which in enumerate((0, 2, 1), start=1):
        model.logits.data = torch.eye(3)[which] + 0.1 * epoch
        rows.append(selection.look(epoch, model, "cpu"))
    assert set(rows[0]) == {"val_worst_pseudo_group", "val_balanced"}
    epoch, record, scores = selection.settle(model, data, "cpu")
    assert epoch == 2, "all worst groups are 0; the mean of the sides tells them apart"
    assert torch.equal(model.logits.data, torch.eye(3)[2] + 0.2)
    assert scores.all == evaluate(model, data, device="cpu").all
    assert [row["epoch"] for row in record["epochs"]] == [1, 2, 3]
    assert record["oracle"] is None


@pytest.mark.parametrize("method", ["lmix", "erm"])
def test_training_selects_on_the_validation_set(sets, method):
    train, val, test = sets
    run = unskew.train(
        train, method=method, identify={"name": "ph", "epochs": 2}, val=val, test=test, select="val", **HOW
    )
    record = run.result.validation
    assert run.result.selected == "val"
    assert run.result.epoch == record["epoch"]
    best = max(record["epochs"], key=lambda row: (row["worst_pseudo_group"], row["balanced"]))
    assert record["worst_pseudo_group"] == best["worst_pseudo_group"]
    assert record["held_out"] is None
    assert run.result.scores == evaluate(run.model, test, device="cpu"), "the scores are those of the weights kept"
    oracle = record["oracle"]
    assert oracle["val_worst_group"] == max(row["worst_group"] for row in record["epochs"])
    assert oracle["gap"] == pytest.approx(oracle["test_worst_group"] - run.result.scores.worst_group)
    assert f"true groups would choose epoch {oracle['epoch']}" in told(record)
    assert "val_worst_pseudo_group" in run.metrics[-1]
    assert json.loads(run.result.to_json())["validation"]["epoch"] == record["epoch"]


def test_without_a_validation_set_a_fifth_is_held_out(sets):
    train, _, test = sets
    partition = unskew.identify(train, "oracle")
    run = unskew.train(train, partition, "smix", test=test, select="val", **HOW)
    record = run.result.validation
    assert record["held_out"] == 0.2
    assert record["count"] == pytest.approx(0.2 * len(train), abs=4)
    assert len(run.partition) == len(train)
    assert run.result.fingerprint == train.fingerprint


def test_the_validation_sets_bias_labels_decide_nothing(sets):
    train, val, _ = sets
    blind = replace(val, bias=None, aligned=None, group_weights=None)
    how = {"identify": {"name": "ph", "epochs": 2}, "select": "val", **HOW}
    with_labels, without = (unskew.train(train, method="lmix", val=some, **how) for some in (val, blind))
    assert with_labels.result.epoch == without.result.epoch
    assert without.result.validation["oracle"] is None
    for a, b in zip(with_labels.model.parameters(), without.model.parameters()):
        assert torch.equal(a, b)


def test_last_stays_the_default_and_looks_at_nothing(sets):
    train, val, test = sets
    run = unskew.train(train, method="erm", val=val, test=test, **HOW)
    assert (run.result.selected, run.result.epoch, run.result.validation) == ("last", 4, None)
    assert not [name for name in run.metrics[-1] if name.startswith("val_")]


def test_a_killed_selection_goes_on(sets, tmp_path):
    class Killed(BaseException):
        pass

    class Killer:
        def start(self, *_): ...
        def step(self): ...
        def end(self): ...
        def epoch(self, stage, row):
            if (stage, row["epoch"]) == ("smix", 3):
                raise Killed

    train, val, test = sets
    how = {"method": "smix", "identify": "oracle", "val": val, "test": test, "select": "val", **HOW}
    whole = unskew.train(train, **how)
    with pytest.raises(Killed):
        unskew.train(train, out=tmp_path, listeners=[Killer()], **how)
    resumed = unskew.train(train, out=tmp_path, resume=True, **how)
    assert resumed.result.validation == whole.result.validation
    for a, b in zip(resumed.model.parameters(), whole.model.parameters()):
        assert torch.equal(a, b)


def test_the_sides_of_the_validation_set_are_stage_1s(sets, tmp_path):
    train, val, _ = sets
    partition = unskew.identify(train, epochs=2, model=TinyBackbone(), val=val, out=tmp_path, device="cpu")
    assert list(partition.val.ids) == list(val.ids)
    assert 0 < partition.val.conflicting.sum() < len(val)
    again = load_partition(tmp_path / "partition.csv", train, val)
    assert torch.equal(again.val.conflicting, partition.val.conflicting)
    oracle = unskew.identify(train, "oracle", val=val)
    assert torch.equal(oracle.val.conflicting, ~val.aligned)


def test_a_partition_that_does_not_know_the_validation_set_is_refused(sets):
    train, val, _ = sets
    with pytest.raises(UnskewError, match="does not tell the sides of the validation set"):
        unskew.train(train, unskew.identify(train, "oracle"), "smix", val=val, select="val", **HOW)
    with pytest.raises(UnskewError, match="select is for stage 2"):
        unskew.identify(train, select="val")


def test_choosing_between_runs():
    def line(worst, balanced, true):
        return {"validation": {"worst_pseudo_group": worst, "balanced": balanced, "worst_group": true}}

    assert choose([line(0.2, 0.9, 0.5), line(0.4, 0.5, 0.3), line(0.4, 0.6, 0.1)]) == (2, 0)
    assert choose([line(0.2, 0.9, None), line(0.1, 0.5, None)]) == (0, None)
    with pytest.raises(UnskewError, match="train them with select='val'"):
        choose([line(0.2, 0.9, 0.5), {}])


def test_the_command_prints_the_gap(run, tmp_path):
    done = run("train", "digits:0.8", *QUICK, "--select", "val", "--method", "smix", "--out", tmp_path / "out")
    record = result_of(tmp_path / "out")["validation"]
    assert f"epoch {record['epoch']} was chosen by the worst pseudo-group" in done.out
    assert "gap" in done.out
    assert record["held_out"] == 0.2

"""One run in a process of its own: ``python -m unskew.paper.worker SPEC.json RESULTS SETTINGS [DATA_DIR]``."""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import unskew
from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.data.partition_file import load_partition
from unskew.engine.inference import pick_device
from unskew.engine.processes import device_name
from unskew.errors import UnskewError
from unskew.paper.spec import Spec
from unskew.paper.store import FILE, add_line
from unskew.results import about_partition, versions
from unskew.run_folder import MetricsFile
from unskew.selection import with_sides
from unskew.validation import hold_out_rows, validate

TINY_TRAIN, TINY_TEST = 400, 200
TINY = {"epochs": 2}


def run_spec(spec: Spec, results: Path, settings: dict[str, Any], data_dir: str | Path | None) -> dict[str, Any]:
    """The line of results; ``settings`` do not change what is computed: the device, whether to compile, where the
    weights lie."""
    settings = dict(settings)
    weights = settings.pop("weights", None)
    train, val, test = data_of(spec, data_dir)
    partition = partition_of(spec, train, val, results, settings, weights)
    if spec.method is None:
        assert partition is not None
        line = stage1_line(spec, train, partition, results, settings["device"])
    else:
        held = truth = None
        if spec.holdout:
            assert partition is not None, "its sides are what to choose by"
            rest, rows = hold_out_rows(train, partition, spec.holdout, spec.seed)
            train, truth = train.subset(rest), train.subset(rows)
            held = with_sides(truth, partition.conflicting[rows])
        options = {**started(spec.options, weights), **(TINY if spec.scale == "tiny" else {}), **settings}
        given = {"test": test, "val": val, "seed": spec.seed, "progress": False}
        run = unskew.train(train, partition, spec.method, **given, **options)
        line = {**json.loads(run.result.to_json()), "metrics": run.metrics}
        if held is not None:
            line["validation"] = validate(run.model, held, settings["device"], truth).to_dict()
        if options.get("weights") is not None:
            line["config"]["weights"] = Path(options["weights"]).name
            line["weights"] = about_weights(options["weights"])
    return {**line, "key": spec.key, "spec": spec.to_dict()}


def started(options: Mapping[str, Any], weights: str | None) -> dict[str, Any]:
    """With the file in place of "imagenet", which is all that a result's key knows of it."""
    if options.get("weights") != "imagenet":
        return dict(options)
    if weights is None:
        raise UnskewError("this run starts from ImageNet weights: name the file with --weights.")
    return {**options, "weights": weights}


def about_weights(path: str) -> dict[str, str]:
    """Which file exactly, wherever it lies."""
    with open(path, "rb") as file:
        return {"file": Path(path).name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def data_of(spec: Spec, data_dir: str | Path | None) -> tuple[Dataset, Dataset | None, Dataset]:
    """Train, val where there is one, and test; at the tiny scale some hundred digits, which come with the install."""
    if spec.scale != "tiny":
        splits = unskew.load_splits(spec.data, data_dir)
        return splits.train, splits.val, splits.test
    name, _, ratio = spec.data.partition(":")
    tiny = {"corrupted-cifar10": ratio.partition(":")[0], "cifar10": "0.1"}.get(name, "0.95")
    splits = unskew.load_splits(f"digits:{tiny}")
    return _some(splits.train, TINY_TRAIN), None, _some(splits.test, TINY_TEST)


def _some(data: Dataset, count: int) -> Dataset:
    """Spread over the set; conflicting samples first, so that the rare ones are there."""
    import torch

    order = torch.arange(len(data)) if data.aligned is None else data.aligned.int().argsort(stable=True)
    rare = order[: count // 10]
    rest = order[count // 10 :]
    spread = rest[torch.linspace(0, len(rest) - 1, count - len(rare)).long()]
    return data.subset(torch.cat([rare, spread]).sort().values)


def folder_of(spec: Spec, results: Path) -> Path:
    return results / "partitions" / str(spec.stage1_key)


def partition_of(
    spec: Spec, train: Dataset, val: Dataset | None, results: Path, settings: dict[str, Any], weights: str | None
) -> Partition | None:
    """Made once for all runs that share it; a killed one goes on from its checkpoint."""
    if spec.identify is None:
        return None
    folder = folder_of(spec, results)
    if (folder / "partition.csv").exists():
        return load_partition(folder / "partition.csv", train, val)
    options = started({key: value for key, value in spec.identify.items() if key != "name"}, weights)
    if spec.scale == "tiny" and spec.identify["name"] not in ("oracle", "random"):
        options |= {"epochs": 3}
    return unskew.identify(
        train, spec.identify["name"], val=val, out=folder, resume=True, seed=spec.seed, progress=False,
        listeners=[MetricsFile(folder / "metrics.csv")], **settings, **options,
    )  # fmt: skip


def stage1_line(spec: Spec, train: Dataset, partition: Partition, results: Path, device: str) -> dict[str, Any]:
    rows = MetricsFile(folder_of(spec, results) / "metrics.csv").rows.values()
    return {
        "dataset": train.name,
        "method": None,
        "seed": spec.seed,
        "partition": about_partition(partition, train),
        "config": dict(spec.identify or {}),
        "scores": None,
        "metrics": [dict(row) for row in rows],
        "histogram": _histogram(train, partition),
        "versions": versions(),
        "device": device_name(pick_device(device), "auto"),
    }


def _histogram(train: Dataset, partition: Partition) -> dict[str, list[int]] | None:
    """How many samples were right 0, 1, … K times, aligned and conflicting ones apart."""
    right = partition.times_right
    if right is None or partition.predictions is None or train.aligned is None:
        return None
    bins = partition.predictions.shape[1] + 1
    parts = {"aligned": train.aligned, "conflicting": ~train.aligned}
    return {name: right[inside].bincount(minlength=bins).tolist() for name, inside in parts.items()}


def main() -> None:
    spec_file, results, settings, *data_dir = sys.argv[1:]
    spec = Spec.from_dict(json.loads(Path(spec_file).read_text()))
    try:
        line = run_spec(spec, Path(results), json.loads(settings), data_dir[0] if data_dir else None)
        add_line(Path(results) / FILE, line)
    except UnskewError as error:
        print(f"unskew: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

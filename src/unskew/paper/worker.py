"""One run in a process of its own: ``python -m unskew.paper.worker SPEC.json RESULTS SETTINGS [DATA_DIR]``."""

import json
import sys
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
from unskew.validation import hold_out, validate

TINY_TRAIN, TINY_TEST = 400, 200
TINY = {"epochs": 2}


def work(spec: Spec, results: Path, settings: dict[str, Any], data_dir: str | None) -> None:
    """``settings`` do not change what is computed: the device, whether to compile."""
    train, test = data_of(spec, data_dir)
    partition = partition_of(spec, train, results, settings)
    if spec.method is None:
        assert partition is not None
        line = stage1_line(spec, train, partition, results, settings["device"])
    else:
        held = None
        if spec.holdout:
            assert partition is not None, "its sides are what to choose by"
            train, held = hold_out(train, partition, spec.holdout, spec.seed)
        options = {**spec.options, **(TINY if spec.scale == "tiny" else {}), **settings}
        run = unskew.train(train, partition, spec.method, test=test, seed=spec.seed, progress=False, **options)
        line = {**json.loads(run.result.to_json()), "metrics": run.metrics}
        if held is not None:
            line["validation"] = validate(run.model, held, settings["device"]).to_dict()
    add_line(results / FILE, {**line, "key": spec.key, "spec": spec.to_dict()})


def data_of(spec: Spec, data_dir: str | Path | None) -> tuple[Dataset, Dataset]:
    """The data set; at the tiny scale some hundred digits, which come with the install, in its place."""
    if spec.scale != "tiny":
        splits = unskew.load_splits(spec.data, data_dir)
        return splits.train, splits.test
    name, _, ratio = spec.data.partition(":")
    source = f"digits:{ratio.partition(':')[0]}" if name == "corrupted-cifar10" else "digits:0.1"
    splits = unskew.load_splits(source)
    return _some(splits.train, TINY_TRAIN), _some(splits.test, TINY_TEST)


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


def partition_of(spec: Spec, train: Dataset, results: Path, settings: dict[str, Any]) -> Partition | None:
    """Made once for all runs that share it; a killed one goes on from its checkpoint."""
    if spec.identify is None:
        return None
    folder = folder_of(spec, results)
    if (folder / "partition.csv").exists():
        return load_partition(folder / "partition.csv", train)
    options = {key: value for key, value in spec.identify.items() if key != "name"}
    if spec.scale == "tiny" and spec.identify["name"] not in ("oracle", "random"):
        options |= {"epochs": 3}
    return unskew.identify(
        train, spec.identify["name"], out=folder, resume=True, seed=spec.seed, progress=False,
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
        "device": device_name(pick_device(device)),
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
        work(spec, Path(results), json.loads(settings), data_dir[0] if data_dir else None)
    except UnskewError as error:
        print(f"unskew: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

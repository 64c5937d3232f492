"""What the commands do: the verbs of the API, with files and a screen around them."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import unskew
from unskew.data import splits_in
from unskew.data.dataset import Dataset
from unskew.data.sources import NAMES
from unskew.engine.processes import is_main
from unskew.engine.progress import Listener, TensorBoard, WeightsAndBiases
from unskew.errors import UnskewError
from unskew.files import write_text
from unskew.options import help_of
from unskew.run_folder import METRICS, REPORT, MetricsFile
from unskew.training import Run

LOADING = ("data", "data_dir", "size", "skip_bad")


def identify(config: Mapping[str, Any], out: Path, resume: bool, log: str | None) -> None:
    loading, options = _split(config)
    options.pop("method", None)
    stage1 = {"name": "ph", **options.pop("identify", {}), **options}
    data = unskew.load(loading.pop("data"), **loading)
    say(f"{data.name}: {len(data)} images of {data.size} px in {data.num_classes} classes")
    tell(data.notes)
    listeners = [*_listeners(log, out, config), MetricsFile(out / METRICS)]
    how = stage1.pop("name")
    partition = unskew.identify(data, how, out=out, resume=resume, progress=True, listeners=listeners, **stage1)
    tell(partition.notes)
    if is_main():
        unskew.report(data, partition, None, out / REPORT)
        share = partition.conflicting_share
        say(f"{int(partition.conflicting.sum())} of {len(data)} samples ({share:.1%}) break the pattern.")
        say(f"Written: {out / 'partition.csv'}, {out / REPORT}")


def train(config: Mapping[str, Any], out: Path, resume: bool, log: str | None) -> None:
    loading, options = _split(config)
    method = {"name": "lmix", **options.pop("method", {})}
    stage1 = {"name": "ph", **options.pop("identify", {})}
    origin = dict(loading)
    splits = unskew.load_splits(loading.pop("data"), **loading)
    data, test = splits.train, splits.test
    say(f"{data.name}: {len(data)} images of {data.size} px in {data.num_classes} classes, {len(test)} for test")
    tell(splits.notes)
    name = method.pop("name")
    run = unskew.train(
        data, None, name, identify=stage1, test=test, out=out, resume=resume, progress=True,
        listeners=_listeners(log, out, config), origin=origin, **method, **options,
    )  # fmt: skip
    if is_main():
        tell(run.partition.notes if run.partition else ())
        unskew.report(data, run.partition, run, out / REPORT)
        show([run])
        say(f"Written: {out / 'model.safetensors'}, {out / 'results.jsonl'}, {out / REPORT}")


def evaluate(run: Path, source: str, data_dir, split, skip_bad: bool, as_json: bool, device: str) -> None:
    import json

    model, card = unskew.load_model(run)
    data = _for_model(source, data_dir, split, skip_bad, card)
    scores = unskew.evaluate(model, data, device=device)
    if as_json:
        print(json.dumps(scores.to_dict()))
    else:
        say(f"{data.name}: {len(data)} images")
        say(str(scores))


def predict(run: Path, source: str, data_dir, split, skip_bad: bool, out: Path, device: str) -> None:
    from unskew.engine.inference import predict_logits

    model, card = unskew.load_model(run)
    data = unskew.load(source, data_dir, split, size=card.size, skip_bad=skip_bad, labelled=False)
    tell(data.notes)
    probabilities = predict_logits(model, data, device).softmax(1)
    confidence, which = probabilities.max(1)
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["id", "prediction", "confidence", *(f"p_{name}" for name in card.class_names)])
    rows = zip(data.ids, which.tolist(), confidence.tolist(), probabilities.tolist())
    for name, k, sure, each in rows:
        table.writerow([name, card.class_names[k], f"{sure:.6f}", *(f"{p:.6f}" for p in each)])
    write_text(out, text.getvalue())
    say(f"{len(data)} predictions written: {out}")


def export(run: Path, onnx: Path | None, safetensors: Path | None) -> None:
    if onnx is None and safetensors is None:
        raise UnskewError("nothing to export: say --onnx FILE or --safetensors FILE.")
    model, card = unskew.load_model(run)
    if onnx is not None:
        difference = unskew.export_onnx(model, onnx, card.size)
        say(f"{onnx}: logits differ from torch's by at most {difference:.1e}")
    if safetensors is not None:
        unskew.export_safetensors(model, safetensors)
        say(f"{safetensors}: written")


def methods() -> None:
    from unskew.identifiers import IDENTIFIERS

    table = Table("name", "needs", "what it does", box=None)
    options = Table("option", "default", "meaning", box=None)
    registries = (("method", unskew.METHODS), ("identify", IDENTIFIERS))
    for section, registry in registries:
        for name, cls in registry.items():
            about = (cls.__doc__ or "").strip().splitlines()[0]
            needs = ", ".join(sorted(cls.needs)) or "-"
            table.add_row(name if section == "method" else f"{name} (stage 1)", needs, about)
            for key, (default, help_) in help_of(cls.Config).items():
                options.add_row(f"{name}: --{section}.{key}", str(default), help_)
    Console().print(table, "", options)


def datasets() -> None:
    table = Table("name", "what it is", box=None)
    for name, source in NAMES.items():
        about = (source.__doc__ or "").strip().splitlines()[0]
        table.add_row(name, about)
    Console().print(table)
    say("Or a folder of class folders (with train/ val/ test/ above or not), a CSV or Parquet with path,label")
    say("[,bias][,split], an .npz with images and labels, or hf:owner/name.")


def show(runs: Sequence[Run]) -> None:
    """The scores of some runs as a table."""
    names = ("all", "unbiased", "aligned", "worst_group")
    table = Table("method", *names, "seconds", box=None)
    for run in runs:
        scores = run.result.scores
        values = [getattr(scores, name) if scores else None for name in names]
        shown = ["-" if value is None else f"{value:.1%}" for value in values]
        table.add_row(run.result.method, *shown, f"{run.result.seconds:.0f}")
    Console().print(table)


def say(text: str) -> None:
    if is_main():
        Console(soft_wrap=True, highlight=False, markup=False).print(text)


def tell(notes: Sequence[str]) -> None:
    for note in notes:
        say(f"note: {note}")


def _split(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """How to load the data, and everything else."""
    if not config.get("data"):
        raise UnskewError("which data? Give a folder, a file or a name, for example: unskew train photos/")
    loading = {name: config[name] for name in LOADING if config.get(name) is not None}
    return loading, {name: value for name, value in config.items() if name not in LOADING}


def _listeners(log: str | None, out: Path, config: Mapping[str, Any]) -> list[Listener]:
    if log is None or not is_main():
        return []
    return [TensorBoard(out / "tensorboard") if log == "tensorboard" else WeightsAndBiases(out, config)]


def _for_model(source: str, data_dir, split: str | None, skip_bad: bool, card) -> Dataset:
    """The images at the model's size, with labels in the model's order of classes."""
    if split is None and "test" in splits_in(source, data_dir):
        split = "test"
    data = unskew.load(source, data_dir, split, size=card.size, skip_bad=skip_bad)
    tell(data.notes)
    return data.with_classes(card.class_names)

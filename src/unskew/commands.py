"""What the commands do: the verbs of the API, with files and a screen around them."""

import csv
import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import unskew
from unskew.config import NESTED, Loading
from unskew.data.corrections import load_corrections, without_wrong_labels
from unskew.data.dataset import Dataset
from unskew.data.sources import NAMES
from unskew.data.sources import read as listing_of
from unskew.earlier import earlier_run
from unskew.engine.processes import is_main
from unskew.engine.progress import Listener, TensorBoard, WeightsAndBiases
from unskew.errors import UnskewError
from unskew.files import write_text
from unskew.identifiers import IDENTIFIERS, NEEDS_BIAS, RepairOptions, stage1_of
from unskew.methods import method_named
from unskew.options import build, help_of, names
from unskew.pages.verdict import verdict
from unskew.run_folder import METRICS, PARTITION, REPORT, TENSORBOARD, MetricsFile, begin, saved_config, was_trained_on
from unskew.selection import told
from unskew.training import Run, try_out

PACKAGES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb"}


def identify(config: Mapping[str, Any], out: Path, resume: bool, log: str | None, command: str = "") -> None:
    loading, options = _split(config)
    for of_training in ("method", "corrections"):
        options.pop(of_training, None)
    own = options.pop("identify", {})
    stage1 = {"name": NESTED["identify"], **options, **own}
    origin = dict(loading)
    data = unskew.load(loading.pop("data"), **loading)
    say(f"{data.name}: {len(data)} images of {data.size} px in {data.num_classes} classes")
    tell(data.notes)
    listeners = _listeners(log, out, config)
    how, model = stage1.pop("name"), stage1.pop("model", None)
    job = stage1_of(data, {"name": how, **stage1}, model)
    try_out(job)
    partition = unskew.identify(data, how, **stage1) if job is None else None
    if is_main():
        begin(out, {**origin, "identify": job.as_dict() if job else {"name": how, **stage1}}, resume)
        listeners.append(MetricsFile(out / METRICS))
    if partition is None:
        shown = {"progress": True, "listeners": listeners}
        partition = unskew.identify(data, how, model=model, out=out, resume=resume, **shown, **stage1)
    elif is_main():
        partition.save(out / PARTITION)
    tell(partition.notes)
    if is_main():
        unskew.report(data, partition, None, out / REPORT, command=command, config=saved_config(out))
        found = verdict(data, partition)
        say(" ".join([found.headline, *found.sentences]))
        say(f"Written: {out / PARTITION}, {out / REPORT}")


def train(
    config: Mapping[str, Any], out: Path, resume: bool, log: str | None, against: Path | None, command: str = ""
) -> None:
    loading, options = _split(config)
    method = {"name": NESTED["method"], **options.pop("method", {})}
    own = options.pop("identify", {})
    origin = dict(loading)
    splits = unskew.load_splits(loading.pop("data"), **loading)
    data, test = splits.train, splits.test
    corrections = options.pop("corrections", None)
    marks = load_corrections(corrections, data, test) if corrections is not None else None
    if marks is not None:
        origin["corrections"] = str(corrections)
        data = without_wrong_labels(data, marks)
    say(f"{data.name}: {len(data)} images of {data.size} px in {data.num_classes} classes, {len(test)} for test")
    tell(data.notes)
    name = method.pop("name")
    cls = method_named(name)[1]
    stage1 = {"name": cls.stage1, **own}
    build(cls.Config, method, f"{name!r}")
    if "identify" in config and "partition" not in cls.needs and options.get("select") != "val":
        tell([f"{name} needs no partition: what was said about it is not used"])
    others = [] if against is None else [earlier_run(against, data, test, options.get("device", "auto"))]
    run = unskew.train(
        data, None, name, identify=stage1, test=test, val=splits.val, out=out, resume=resume, progress=True,
        listeners=_listeners(log, out, config), origin=origin, corrections=marks, **method, **options,
    )  # fmt: skip
    if is_main():
        tell(run.partition.notes if run.partition else ())
        runs = [*others, run]
        unskew.report(data, run.partition, runs, out / REPORT, test=test, command=command, config=saved_config(out))
        show(runs)
        if run.result.validation is not None:
            say(told(run.result.validation))
        say(f"Written: {out / 'model.safetensors'}, {out / 'results.jsonl'}, {out / REPORT}")


def evaluate(run: Path, source: str, data_dir, split, skip_bad: bool, as_json: bool, device: str) -> None:
    import json

    model, card = unskew.load_model(run)
    data, divided = _for_model(source, data_dir, split, skip_bad, card, labelled=True)
    tell(data.notes, stderr=as_json)
    if not divided and split is None and was_trained_on(run, source):
        note = f"the model was trained on most of {source}: --split test scores the images that were held out"
        tell([note], stderr=as_json)
    data = data.with_classes(card.class_names)
    scores = unskew.evaluate(model, data, device=device)
    if as_json:
        print(json.dumps(scores.to_dict()))
    else:
        say(f"{data.name}: {len(data)} images")
        say(str(scores))


def predict(run: Path, source: str, data_dir, split, skip_bad: bool, out: Path, device: str) -> None:
    from unskew.engine.inference import predict_logits

    model, card = unskew.load_model(run)
    data, _ = _for_model(source, data_dir, split, skip_bad, card, labelled=False)
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
    table = Table("method", "from", "bias labels", "stages", "cost", "what it does", box=None)
    stage1 = Table("stage 1", "bias labels", "what it does", box=None)
    options = Table("option", "default", "meaning", box=None)
    for name, cls in unskew.METHODS.items():
        two = "partition" in cls.needs
        labels = "needed" if "bias" in cls.needs or (two and cls.stage1 in NEEDS_BIAS) else "-"
        table.add_row(name, cls.source or "-", labels, f"{cls.stage1}, {name}" if two else "1", cls.cost, _first(cls))
    for name, cls in IDENTIFIERS.items():
        stage1.add_row(name, "-", _first(cls))
    stage1.add_row("repair", "needed", "Weights under which the bias label says least about the class.")
    stage1.add_row("oracle", "needed", "The true partition.")
    stage1.add_row("random", "-", "Half of the samples, at random.")
    stage1.add_row("FILE.csv", "-", "A partition with columns id and conflicting.")
    rows = [("method", unskew.METHODS), ("identify", {**IDENTIFIERS, "repair": RepairOptions})]
    for section, registry in rows:
        for name, cls in registry.items():
            for key, (default, help_) in help_of(getattr(cls, "Config", cls)).items():
                options.add_row(f"{name}: --{section}.{key}", str(default), help_)
    for each in (table, stage1, options):
        _print(each)
        say("")
    say("cost: of an epoch, against plain training, roughly. Any stage 1 goes with any method that has two stages.")


def _first(cls: type) -> str:
    """The first sentence of its docstring."""
    text = " ".join((cls.__doc__ or "").split()).replace("``", "")
    return text.partition(". ")[0].rstrip(".") + "."


def download(name: str, data_dir: Path) -> None:
    from unskew.data.download import download as fetch

    say(f"{name}: in {fetch(name, data_dir)}; use it with --data-dir {data_dir}")


def convert(source: Path, out: Path) -> None:
    from unskew.models import keras

    count = keras.convert(source, out)
    say(f"{out}: {count} tensors; use it with --model {keras.MODEL} --weights {out}")


def datasets() -> None:
    table = Table("name", "what it is", box=None)
    for name, source in NAMES.items():
        about = (import_module(source.__module__).__doc__ or "").strip().splitlines()[0]
        table.add_row(name, about)
    _print(table)
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
    _print(table)


def say(text: str, stderr: bool = False) -> None:
    if is_main():
        Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False).print(text)


def tell(notes: Sequence[str], stderr: bool = False) -> None:
    for note in notes:
        say(f"note: {note}", stderr)


def _print(table: Table) -> None:
    """In a pipe, a row is a line."""
    console = Console()
    (console if console.is_terminal else Console(width=1000)).print(table)


def _split(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """How to load the data, and everything else."""
    if not config.get("data"):
        raise UnskewError("which data? Give a folder, a file or a name, for example: unskew train photos/")
    given = {name: config[name] for name in names(Loading) if config.get(name) is not None}
    build(Loading, given, "the data")
    return given, {name: value for name, value in config.items() if name not in names(Loading)}


def _listeners(log: str | None, out: Path, config: Mapping[str, Any]) -> list[Listener]:
    if log is None or not is_main():
        return []
    try:
        import_module(PACKAGES[log])
    except ImportError as error:
        raise UnskewError(f"--log {log} needs a package ({error}): pip install 'unskew[log]'.") from error
    return [Log(log, out, config)]


class Log:
    """TensorBoard or Weights & Biases, opened when training starts: by then the run folder is ready."""

    def __init__(self, kind: str, out: Path, config: Mapping[str, Any]) -> None:
        self.kind, self.out, self.config = kind, out, config
        self.log: Listener | None = None

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None:
        if self.log is None:
            try:
                if self.kind == "tensorboard":
                    self.log = TensorBoard(self.out / TENSORBOARD)
                else:
                    self.log = WeightsAndBiases(self.out, self.config)
            except Exception as error:  # wandb asks for a login, a network
                raise UnskewError(f"--log {self.kind} could not start: {' '.join(str(error).split())}") from error
        self.log.start(stage, epochs, steps, done)

    def step(self) -> None: ...

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None:
        if self.log is not None:
            self.log.epoch(stage, row)

    def end(self) -> None:
        if self.log is not None:
            self.log.end()


def _for_model(source: str, data_dir, split: str | None, skip_bad: bool, card, labelled: bool) -> tuple[Dataset, bool]:
    """The images at the model's size, of the test split where there is one; and whether there are splits."""
    has = listing_of(source, data_dir, labelled, None).split
    if split is None and has is not None and "test" in has:
        split = "test"
    data = unskew.load(source, data_dir, split, size=card.size, skip_bad=skip_bad, labelled=labelled)
    return data, has is not None

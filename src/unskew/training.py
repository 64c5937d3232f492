"""Stage 2: train a network on both parts of a partition, or by any other method."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unskew.data.corrections import corrected, load_corrections, without_wrong_labels
from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.fit import Job, decide, fit
from unskew.engine.inference import pick_device
from unskew.engine.method import Method
from unskew.engine.processes import device_name, is_main, wait
from unskew.engine.progress import Listener, listeners_for
from unskew.errors import UnskewError
from unskew.identifiers import identify as run_stage1
from unskew.identifiers import stage1_of
from unskew.methods import method_named
from unskew.models.saved import save_model
from unskew.results import Result, about_partition, versions, write_results
from unskew.run_folder import CHECKPOINT, METRICS, MODEL, PARTITION, RESULTS, MetricsFile, begin
from unskew.scores import evaluate
from unskew.selection import Selection, with_sides
from unskew.validation import hold_out_rows

# What stage 1 takes over from stage 2 unless it is told otherwise.
SHARED = ("seed", "device", "precision", "compile")
HELD_OUT = 0.2  # of the training set, to choose the epoch on where there is no validation set
OF_THE_MODEL = ("weights", "stem")  # and these, where it does not name a model of its own


@dataclass(frozen=True, repr=False)
class Run:
    """What training gives.

    Attributes
    ----------
    model : nn.Module
        Plain: float images in [0, 1] in, logits out; in eval mode, on the CPU.
    result : Result
    metrics : list of dict
        One row an epoch.
    partition : Partition or None
    """

    model: nn.Module
    result: Result
    metrics: Sequence[Mapping[str, Any]]
    partition: Partition | None
    class_names: Sequence[str]

    def __repr__(self) -> str:
        result, scores = self.result, self.result.scores
        told = "not evaluated" if scores is None else f"{scores.all:.1%} of all right"
        told += f", {scores.unbiased:.1%} of the conflicting" if scores and scores.unbiased is not None else ""
        return f"<Run {result.method} on {result.dataset}, epoch {result.epoch}: {told}>"

    def save(self, folder: str | Path) -> None:
        """``model.safetensors`` and ``results.jsonl``."""
        folder = Path(folder)
        save_model(self.model, self.result.model, folder / MODEL, self.class_names)  # type: ignore[arg-type]
        write_results(folder / RESULTS, [self.result])


def train(
    data: Dataset,
    partition: Partition | None = None,
    method: str | type[Method] = "lmix",
    *,
    identify: str | Path | Mapping[str, Any] | None = None,
    corrections: str | Path | Mapping[str, str] | None = None,
    test: Dataset | None = None,
    val: Dataset | None = None,
    model: str | nn.Module | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    listeners: Sequence[Listener] = (),
    origin: Mapping[str, Any] | None = None,
    **options: Any,
) -> Run:
    """Train a model that does not take the shortcut.

    Parameters
    ----------
    data : Dataset
        The training set.
    partition : Partition, optional
        From :func:`unskew.identify`. If the method needs one and none is given, it is made as ``identify`` says.
    method : str or subclass of Method
        One of ``unskew.METHODS``, or your own.
    identify : str, path or dict, optional
        Stage 1: ``ph``, ``sp``, ``oracle``, ``random``, a CSV, or ``{"name": "ph", "window": 5, "epochs": 10}``. By
        default what the method says: ``ph`` for most.
    corrections : path or dict, optional
        ``corrections.csv`` as `unskew view` writes it, for a partition that is given: samples marked conflicting or
        aligned change sides, and those whose label is wrong are left out.
    test : Dataset, optional
        Scored once, with the weights that were selected; nothing is ever selected on it.
    val : Dataset, optional
        To choose the epoch on, with ``select="val"``: without bias labels, by the worst of the classes' sides as stage
        1's model sees them. Where there is none, a fifth of ``data`` is held out.
    model : str or nn.Module, optional
        A name, or a backbone of your own (images in, features out).
    out : path, optional
        Run folder: config, metrics, a checkpoint after every epoch, partition, results and the model.
    resume : bool
        Go on from what ``out`` holds; without a checkpoint there, start afresh.
    progress : bool, optional
        Show a table that grows each epoch; by default where there is a terminal.
    origin : dict, optional
        Where the data came from, for ``config.yaml``.
    **options
        Of the method (``omega``, ``zeta``…) and of training (``epochs``, ``lr``, ``seed``, ``device``…).

    Examples
    --------
    >>> import unskew
    >>> data, test = unskew.load("digits"), unskew.load("digits", split="test")
    >>> run = unskew.train(data, method="erm", test=test, epochs=1)
    >>> 0 < run.result.scores.all < 1
    True
    """
    name, cls = method_named(method)
    if "bias" in cls.needs and data.bias is None:
        raise UnskewError(f"{name} needs bias labels, and {data.name} has none: use a method that does not, like lmix.")
    marks: Mapping[str, str] = {}
    if corrections is not None:
        marks = corrections if isinstance(corrections, Mapping) else load_corrections(corrections, data)
        data = without_wrong_labels(data, marks)
        if isinstance(corrections, str | Path):
            origin = {**(origin or {"data": data.name}), "corrections": str(corrections)}
    job = decide(name, cls, data, options, model)
    choosing = job.settings.select == "val"
    val = val if choosing else None
    stage1 = _stage1(partition, identify, options, cls.stage1) if choosing or "partition" in cls.needs else {}
    stage1_model = stage1.pop("model", None) or model
    stage1_job = stage1_of(data, stage1, stage1_model) if stage1 and partition is None else None
    if stage1_job is not None and corrections is not None:
        raise UnskewError("corrections need the partition that they correct: give --partition partition.csv too.")
    folder = Path(out) if out is not None else None
    more = {key: value for key, value in stage1.items() if key != "name"}
    # What cannot work is found out before the folder of an older run is cleared.
    for some in (job, stage1_job):
        try_out(some)
    if stage1 and partition is None and stage1_job is None:
        partition = run_stage1(data, stage1["name"], val=val, **more)
    if stage1 and partition is not None:
        partition = _two_sided(corrected(partition.matched_to(data), marks), data)
        if val is not None and partition.val is None:
            raise UnskewError(
                f"the partition ({partition.how}) does not tell the sides of the validation set: make it with one, as "
                "in identify(data, val=val), or leave it to train."
            )
    listeners = (*listeners_for(progress), *listeners)
    if folder is not None and is_main():
        about_stage1 = stage1_job.as_dict() if stage1_job else stage1
        begin(folder, _config(job, about_stage1, origin or {"data": data.name}), resume)
        listeners = (*listeners, MetricsFile(folder / METRICS))
    wait()
    if stage1_job is not None:
        shown = {"progress": False, "listeners": listeners, "val": val}
        partition = run_stage1(data, stage1["name"], model=stage1_model, out=out, resume=resume, **shown, **more)
        partition = _two_sided(partition, data)
    elif stage1 and partition is not None and folder is not None and is_main():
        partition.save(folder / PARTITION)
    learnt, sides, selection = data, partition, None
    if choosing and partition is not None:
        learnt, sides, selection = _validation(data, partition, val, job.settings.seed)
    checkpoint = folder / CHECKPOINT if folder else None
    trained, engine = fit(job, learnt, sides, checkpoint, resume, listeners, selection)
    network, epoch, chosen = trained.model.eval(), engine.epoch, None
    if selection is not None:
        epoch, chosen, scores = selection.settle(network, test, str(engine.device))
    else:
        scores = evaluate(network, test, device=str(engine.device)) if test is not None else None
    result = Result(
        dataset=data.name,
        fingerprint=data.fingerprint,
        method=name,
        seed=job.settings.seed,
        partition=about_partition(partition, data) if stage1 else None,
        selected=job.settings.select,
        epoch=epoch,
        config=job.as_dict(),
        model=job.make_model.describe(),
        scores=scores,
        seconds=engine.clock.seconds(),
        images_per_second=engine.images_per_second,
        device=device_name(engine.device, job.settings.precision),
        versions=versions(),
        notes=tuple(data.notes),
        validation=chosen,
    )
    run = Run(network.cpu(), result, engine.rows, partition, data.class_names)
    if folder is not None and is_main():
        run.save(folder)
    wait()
    return run


def _stage1(
    partition: Partition | None, identify: str | Path | Mapping[str, Any] | None, options: Mapping, usual: str
) -> dict[str, Any]:
    if partition is not None:
        return {"name": partition.how}
    chosen = dict(identify) if isinstance(identify, Mapping) else {"name": str(identify or usual)}
    shared = SHARED if chosen.get("model") else (*SHARED, *OF_THE_MODEL)
    return {**{key: value for key, value in options.items() if key in shared}, "name": usual, **chosen}


def _validation(
    data: Dataset, partition: Partition, val: Dataset | None, seed: int
) -> tuple[Dataset, Partition, Selection]:
    """What to train on, its partition, and what to choose the epoch by."""
    if val is None:
        rest, held = hold_out_rows(data, partition, HELD_OUT, seed)
        truth, left = data.subset(held), data.subset(rest)
        sides = with_sides(truth, partition.conflicting[held])
        return left, partition.matched_to(left), Selection(sides, truth, HELD_OUT)
    assert partition.val is not None
    return data, partition, Selection(with_sides(val, partition.val.matched_to(val).conflicting), val)


def _two_sided(partition: Partition, data: Dataset) -> Partition:
    """A partition out of a file can have all samples on one side, or all of one side held out."""
    conflicting = int(partition.conflicting.sum())
    if 0 < conflicting < len(data):
        return partition
    if not conflicting and partition.made_by:
        raise UnskewError(
            "nothing was found conflicting, so there is no sign of a shortcut here: train with --method erm, or change "
            "how long stage 1 trains (--identify.epochs)."
        )
    raise UnskewError(
        f"the partition ({partition.how}) calls {conflicting} of the {len(data)} training samples conflicting, and "
        "training needs some that are and some that are not: mark others, or train with --method erm."
    )


def try_out(job: Job | None) -> None:
    """Raise now what would be raised later: no such device, weights that do not fit."""
    if job is None:
        return
    pick_device(job.settings.device)
    if job.settings.weights is not None:
        with torch.random.fork_rng(devices=[]):
            job.make_model()


def _config(job: Job, stage1: Mapping[str, Any], origin: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was decided, as ``--config`` takes it."""
    method = {"name": job.name, **asdict(job.config)}
    stage = {"identify": dict(stage1)} if stage1 else {}
    return {**origin, "method": method, **stage, **asdict(job.settings)}

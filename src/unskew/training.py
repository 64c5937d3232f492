"""Stage 2: train a network on both parts of a partition, or by any other method."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.fit import Job, decide, fit
from unskew.engine.method import Method
from unskew.engine.processes import device_name, is_main
from unskew.engine.progress import Listener, listeners_for
from unskew.errors import UnskewError
from unskew.identifiers import identify as run_stage1
from unskew.identifiers import stage1_of
from unskew.methods import method_named
from unskew.models.saved import save_model
from unskew.results import Result, about_partition, versions, write_results
from unskew.run_folder import CHECKPOINT, METRICS, MODEL, PARTITION, RESULTS, MetricsFile, begin
from unskew.scores import evaluate

# What stage 1 takes over from stage 2 unless it is told otherwise.
SHARED = ("seed", "device", "precision", "compile", "model", "weights", "stem")


@dataclass(frozen=True)
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
    identify: str | Path | Mapping[str, Any] = "ph",
    test: Dataset | None = None,
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
        ``lmix``, ``smix``, ``mixup``, ``erm``, or your own.
    identify : str, path or dict
        Stage 1: ``ph``, ``sp``, ``oracle``, ``random``, a CSV, or ``{"name": "ph", "window": 5, "epochs": 10}``.
    test : Dataset, optional
        Scored once, with the weights of the last epoch; nothing is ever selected on it.
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
    job = decide(name, cls, data, options, model)
    stage1 = _stage1(partition, identify, options) if "partition" in cls.needs else None
    stage1_job = stage1_of(data, stage1, model) if stage1 and partition is None else None
    folder = Path(out) if out is not None else None
    listeners = (*listeners_for(progress), *listeners)
    if folder is not None and is_main():
        about_stage1 = stage1_job.as_dict() if stage1_job else stage1
        begin(folder, _config(job, about_stage1, origin or {"data": data.name}), resume)
        listeners = (*listeners, MetricsFile(folder / METRICS))
    if stage1 is not None:
        if partition is None:
            more = {key: value for key, value in stage1.items() if key != "name"}
            partition = run_stage1(
                data, stage1["name"], model=model, out=out, resume=resume, progress=False, listeners=listeners, **more
            )
        elif folder is not None and is_main():
            partition.save(folder / PARTITION)
        partition = partition.matched_to(data)
    trained, engine = fit(job, data, partition, folder / CHECKPOINT if folder else None, resume, listeners)
    network = trained.model.eval()
    scores = evaluate(network, test, device=str(engine.device)) if test is not None else None
    result = Result(
        dataset=data.name,
        fingerprint=data.fingerprint,
        method=name,
        seed=job.settings.seed,
        partition=about_partition(partition, data) if stage1 is not None else None,
        selected="last",
        epoch=engine.epoch,
        config=job.as_dict(),
        model=job.make_model.describe(),
        scores=scores,
        seconds=engine.clock.seconds(),
        images_per_second=engine.images_per_second,
        device=device_name(engine.device),
        versions=versions(),
        notes=tuple(data.notes),
    )
    run = Run(network.cpu(), result, engine.rows, partition, data.class_names)
    if folder is not None and is_main():
        run.save(folder)
    return run


def _stage1(partition: Partition | None, identify: str | Path | Mapping[str, Any], options: Mapping) -> dict[str, Any]:
    if partition is not None:
        return {"name": partition.how}
    chosen = dict(identify) if isinstance(identify, Mapping) else {"name": str(identify)}
    return {**{key: value for key, value in options.items() if key in SHARED}, **chosen}


def _config(job: Job, stage1: Mapping[str, Any] | None, origin: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was decided, as ``--config`` takes it."""
    method = {"name": job.name, **asdict(job.config)}
    stage = {"identify": dict(stage1)} if stage1 is not None else {}
    return {**origin, "method": method, **stage, **asdict(job.settings)}

"""Stage 1: find the samples that break the shortcut, without being told what it is."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.data.partition_file import load_partition
from unskew.engine.fit import Job, decide, fit
from unskew.engine.method import Method
from unskew.engine.processes import agree, is_main, wait
from unskew.engine.progress import Listener, listeners_for
from unskew.engine.settings import Settings
from unskew.errors import UnskewError, nearest
from unskew.identifiers.biased import Biased
from unskew.identifiers.errors import ErrorSet
from unskew.identifiers.given import coin, judged_sides, oracle
from unskew.identifiers.history import PH
from unskew.identifiers.repair import RepairOptions, repair
from unskew.identifiers.single import SP
from unskew.models.saved import save_model
from unskew.options import build, split
from unskew.run_folder import PARTITION
from unskew.run_folder import STAGE1_CHECKPOINT as CHECKPOINT
from unskew.run_folder import STAGE1_MODEL as MODEL

IDENTIFIERS: dict[str, type[Method]] = {"ph": PH, "sp": SP, "jtt": ErrorSet, "gce": Biased}
GIVEN = ("oracle", "random", "repair")  # these train no network
NEEDS_BIAS = ("oracle", "repair")


def identify(
    data: Dataset,
    how: str | Path = "ph",
    *,
    val: Dataset | None = None,
    model: str | nn.Module | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    listeners: Sequence[Listener] = (),
    **options: Any,
) -> Partition:
    """Split a training set into samples that follow its shortcut and samples that break it.

    Parameters
    ----------
    data : Dataset
        From :func:`unskew.load`.
    how : {"ph", "sp", "jtt", "gce", "repair", "oracle", "random"} or path
        Prediction history, single prediction, the errors of plain training, those of a network biased on purpose,
        REPAIR's weights (needs bias labels), the true split, a coin, or a CSV with ``id`` and ``conflicting``.
    val : Dataset, optional
        A validation set: the partition's ``val`` then tells its sides, as the trained network sees them.
    model : str or nn.Module, optional
        The network to train; by default by image size.
    out : path, optional
        Folder for ``partition.csv``, the network that judged, and the checkpoint while it runs.
    resume : bool
        Go on from what ``out`` holds.
    progress : bool, optional
        Show a table that grows each epoch; by default where there is a terminal.
    **options
        Of the identifier (``window``, ``gamma``…) and of training (``epochs``, ``lr``, ``seed``…).

    Examples
    --------
    >>> import unskew
    >>> data = unskew.load("digits")
    >>> partition = unskew.identify(data, epochs=2)
    >>> len(partition) == len(data)
    True
    """
    out = Path(out) if out is not None else None
    job = stage1_of(data, {"name": str(how), **options}, model)
    if job is None:
        partition = _given(data, val, str(how), given_options(str(how), options))
    elif resume and out is not None and agree(lambda: (out / PARTITION).exists()):
        return _finished(out / PARTITION, data, val, job)
    else:
        checkpoint = out / CHECKPOINT if out is not None else None
        method, engine = fit(job, data, None, checkpoint, resume, (*listeners_for(progress), *listeners))
        assert isinstance(method, PH | SP | ErrorSet | Biased)
        partition = replace(method.result(), made_by=job.digest(data))
        if val is not None:
            partition = replace(partition, val=judged_sides(method.model, val, str(how), str(engine.device)))
        if out is not None and is_main():
            save_model(method.model, job.make_model.describe(), out / MODEL, data.class_names)  # type: ignore[arg-type]
    if out is not None and is_main():
        partition.save(out / PARTITION)
        (out / CHECKPOINT).unlink(missing_ok=True)
    wait()
    return partition


def _given(data: Dataset, val: Dataset | None, how: str, options: dict[str, Any]) -> Partition:
    if how == "repair":
        return repair(data, build(RepairOptions, options, "'repair'"))
    if how not in GIVEN:
        return load_partition(how, data, val)

    def of(some: Dataset) -> Partition:
        return oracle(some) if how == "oracle" else coin(some, int(options.get("seed") or 0))

    return of(data) if val is None else replace(of(data), val=of(val))


def given_options(how: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a stage 1 that trains no network may be told: its own options, and settings, of which it uses the seed."""
    given = {key: value for key, value in options.items() if value is not None}
    if how != "repair":
        return split(given, Settings, where=f"{how!r}")[0]
    own = {field.name for field in fields(RepairOptions)}
    rest = {key: value for key, value in given.items() if key not in own}
    split(rest, Settings, where="'repair'")
    return {key: value for key, value in given.items() if key in own}


def _finished(path: Path, data: Dataset, val: Dataset | None, job: Job) -> Partition:
    """The partition of a stage 1 that had ended, if it was this one."""
    partition = load_partition(path, data, val)
    if partition.made_by != job.digest(data) or (val is not None and partition.val is None):
        raise UnskewError(
            f"{path} was made by another stage 1 than this {job.name}: continue with the options it was started with, "
            "or leave out --resume."
        )
    return partition


def stage1_of(data: Dataset, stage1: Mapping[str, Any], model: str | nn.Module | None = None) -> Job | None:
    """The training that stage 1 needs, with everything decided; None where it needs none."""
    how = stage1["name"]
    if how in IDENTIFIERS:
        options = {key: value for key, value in stage1.items() if key != "name"}
        if options.get("select", "last") != "last":
            raise UnskewError("stage 1 ends with its last epoch: select is for stage 2.")
        return decide(how, IDENTIFIERS[how], data, options, model, stage1=True)
    if how not in GIVEN and not Path(how).is_file():
        raise UnskewError(f"there is no identifier or file {how!r}; {nearest(how, [*IDENTIFIERS, *GIVEN])}")
    return None

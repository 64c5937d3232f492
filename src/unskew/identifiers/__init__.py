"""Stage 1: find the samples that break the shortcut, without being told what it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.data.partition_file import load_partition
from unskew.engine.fit import Job, decide, fit
from unskew.engine.method import Method
from unskew.engine.processes import is_main
from unskew.engine.progress import Listener, listeners_for
from unskew.errors import UnskewError, nearest
from unskew.identifiers.given import coin, oracle
from unskew.identifiers.history import PH
from unskew.identifiers.single import SP
from unskew.run_folder import PARTITION
from unskew.run_folder import STAGE1_CHECKPOINT as CHECKPOINT

IDENTIFIERS: dict[str, type[Method]] = {"ph": PH, "sp": SP}
GIVEN = ("oracle", "random")


def identify(
    data: Dataset,
    how: str | Path = "ph",
    *,
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
    how : {"ph", "sp", "oracle", "random"} or path
        Prediction history, single prediction, the true split, a coin, or a CSV with ``id`` and ``conflicting``.
    model : str or nn.Module, optional
        The network to train; by default by image size.
    out : path, optional
        Folder for ``partition.csv`` and for the checkpoint while it runs.
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
    if resume and out is not None and (out / PARTITION).exists():
        return load_partition(out / PARTITION, data)
    partition = _identify(data, str(how), model, out, resume, (*listeners_for(progress), *listeners), options)
    if out is not None and is_main():
        partition.save(out / PARTITION)
        (out / CHECKPOINT).unlink(missing_ok=True)
    return partition


def _identify(data, how, model, out, resume, listeners, options) -> Partition:
    job = stage1_of(data, {"name": how, **options}, model)
    if job is not None:
        method, _ = fit(job, data, None, out / CHECKPOINT if out else None, resume, listeners)
        assert isinstance(method, PH | SP)
        return method.result()
    if how == "oracle":
        return oracle(data)
    if how == "random":
        return coin(data, int(options.get("seed") or 0))
    return load_partition(how, data)


def stage1_of(data: Dataset, stage1: Mapping[str, Any], model: str | nn.Module | None = None) -> Job | None:
    """The training that stage 1 needs, with everything decided; None where it needs none."""
    how = stage1["name"]
    if how in IDENTIFIERS:
        options = {key: value for key, value in stage1.items() if key != "name"}
        return decide(how, IDENTIFIERS[how], data, options, model)
    if how not in GIVEN and not Path(how).is_file():
        raise UnskewError(f"there is no identifier or file {how!r}; {nearest(how, [*IDENTIFIERS, *GIVEN])}")
    return None

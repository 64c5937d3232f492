"""The command line: it parses, calls the API and prints. ``unskew --help`` does not wait for torch."""

from __future__ import annotations

import dataclasses
import io
import shlex
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from unskew import __version__
from unskew.config import combine, dotted
from unskew.errors import UnskewError
from unskew.flags import (
    ConfigFile,
    Data,
    DataDir,
    Device,
    Flags,
    Identify,
    Images,
    Log,
    Out,
    Resume,
    Size,
    SkipBad,
    Split,
    TrainedRun,
    whole,
)  # fmt: skip
from unskew.label_check import check_labels
from unskew.paper.commands import app as paper
from unskew.view.command import view

TAKES = {
    "train": ("method", "identify"),
    "identify": ("identify",),
    "check-labels": (),
}  # which dotted options a command has

app = App(
    name="unskew",
    version=__version__,
    suppress_keyboard_interrupt=False,  # main() says how to go on
    help="Find the shortcut in a labelled image set, and train a model that does not take it.",
    help_epilogue="An option of a method or of stage 1 is set with a dot: --method.tau 0.3 --identify.window 5. "
    "--debug shows the traceback of an error.",
)
app.command(paper)
app.command(view)
app.command(check_labels)
_overrides: dict[str, dict[str, Any]] = {}  # the dotted options of this call
_said: list[str] = []  # and all of it, for the report


@app.command
def demo(
    *,
    out: Out = Path("demo"),
    seed: Annotated[int, Parameter(help="Decides everything that is random.", converter=whole)] = 0,
    device: Device = "auto",
) -> None:
    """The whole road on data that comes with the install: identify, then ERM, s-mix and l-mix."""
    from unskew.demo import run_demo

    run_demo(out, seed=seed, device=device, command=_command())


@app.command
def identify(
    data: Data = None,
    /,
    *,
    out: Out = Path("runs/identify"),
    identify: Identify = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    resume: Resume = False,
    log: Log = None,
    training: Annotated[Flags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
) -> None:
    """Find the samples that break the shortcut: partition.csv and report.html."""
    from unskew import commands

    flags = _flags(data=data, data_dir=data_dir, size=size, skip_bad=skip_bad, identify=identify)
    # --epochs and the like mean stage 1 here, and win over what a file says of it.
    stage1 = {**_flags(training=training), **_overrides.get("identify", {})}
    commands.identify(combine(config, flags, {"identify": stage1}), out, resume, log, _command())


@app.command
def train(
    data: Data = None,
    /,
    *,
    method: Annotated[
        str | None, Parameter(help="See `unskew methods`; --method.OPTION VALUE sets its options.")
    ] = None,
    out: Out = Path("runs/train"),
    identify: Identify = None,
    partition: Annotated[Path | None, Parameter(help="A partition.csv, instead of stage 1.")] = None,
    corrections: Annotated[
        Path | None, Parameter(help="The corrections.csv that `unskew view` wrote, for that partition.")
    ] = None,
    against: Annotated[
        Path | None, Parameter(help="A run to compare with in the report, such as one with --method erm.")
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    resume: Resume = False,
    log: Log = None,
    training: Annotated[Flags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
) -> None:
    """Train a model that does not take the shortcut (stage 1 first, where the method needs it)."""
    from unskew import commands

    if partition is not None and identify is not None:
        raise UnskewError("give --partition or --identify, not both: each says where the partition comes from.")
    if partition is not None and partition.is_dir():  # the folder of a run
        partition = partition / "partition.csv"
    stage1 = identify if partition is None else str(partition)
    if corrections is not None and corrections.is_dir():
        corrections = corrections / "corrections.csv"
    flags = _flags(
        data=data, data_dir=data_dir, size=size, skip_bad=skip_bad, identify=stage1, corrections=corrections,
        training=training,
    )  # fmt: skip
    values = combine(config, flags | ({"method": method} if method else {}), _overrides)
    commands.train(values, out, resume, log, against, _command())


@app.command
def evaluate(
    run: TrainedRun,
    data: Images,
    /,
    *,
    data_dir: DataDir = None,
    split: Split = None,
    skip_bad: SkipBad = False,
    json: Annotated[bool, Parameter(help="Print the scores as JSON.", negative="")] = False,
    device: Device = "auto",
) -> None:
    """Score a trained model on labelled images."""
    from unskew import commands

    commands.evaluate(run, data, data_dir, split, skip_bad, json, device)


@app.command
def predict(
    run: TrainedRun,
    data: Images,
    /,
    *,
    out: Annotated[Path, Parameter(help="The CSV to write.")] = Path("predictions.csv"),
    data_dir: DataDir = None,
    split: Split = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
) -> None:
    """Predict images, labelled or not: a CSV with the class and every probability."""
    from unskew import commands

    commands.predict(run, data, data_dir, split, skip_bad, out, device)


@app.command
def export(
    run: TrainedRun,
    /,
    *,
    onnx: Annotated[Path | None, Parameter(help="The ONNX file to write.")] = None,
    safetensors: Annotated[Path | None, Parameter(help="The file of plain weights to write.")] = None,
) -> None:
    """Write a trained model as ONNX (checked against torch), or as plain weights."""
    from unskew import commands

    commands.export(run, onnx, safetensors)


@app.command
def methods() -> None:
    """List the methods and their options."""
    from unskew import commands

    commands.methods()


datasets = App(name="datasets", help="List the data sets that have a name, and the kinds of source.")
app.command(datasets)


@datasets.default
def list_datasets() -> None:
    """List the data sets that have a name, and the kinds of source."""
    from unskew import commands

    commands.datasets()


@datasets.command
def download(name: str, /, *, data_dir: Path = Path("data")) -> None:
    """Fetch a data set from its own page: cifar10."""
    from unskew import commands

    commands.download(name, data_dir)


weights = App(name="weights", help="Pretrained weights in other formats.")
app.command(weights)


@weights.command
def convert(
    source: Annotated[Path, Parameter(help="model.json of TensorFlow.js, or a Keras .h5.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The file to write.")] = Path("resnet50-v1.safetensors"),
) -> None:
    """Turn Keras's ResNet-50 weights into what --model resnet50-v1 --weights takes."""
    from unskew import commands

    commands.convert(source, out)


def _command() -> str:
    return shlex.join(["unskew", *_said])


def _flags(*, training: Any = None, skip_bad: bool = False, **given: Any) -> dict[str, Any]:
    """What was said on the command line, and nothing else."""
    said = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    said |= dataclasses.asdict(training) if training is not None else {}
    said["skip_bad"] = skip_bad or None
    return {name: value for name, value in said.items() if value is not None}


def main(argv: list[str] | None = None) -> None:
    """Exit status: 0 done, 1 a fault of ours, 2 something to put right, 130 interrupted."""
    argv = sys.argv[1:] if argv is None else argv
    debug = "--debug" in argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a pipe may not know λ
    command = next((token for token in argv if token != "--debug"), "")
    try:
        tokens, found = dotted([token for token in argv if token != "--debug"], TAKES.get(command, ()))
        _overrides.clear()
        _overrides.update(found)
        _said[:] = argv
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except UnusedCliTokensError as error:
        _leave(f"{command} has no use for {shlex.join(error.unused_tokens or ())}: see unskew {command} --help.", 2)
    except (UnskewError, CycloptsError) as error:
        _leave(" ".join(str(error).split()), 2, debug)
    except KeyboardInterrupt:
        again = shlex.join(["unskew", *argv, *([] if "--resume" in argv else ["--resume"])])
        _leave("interrupted; " + (f"go on with: {again}" if command in TAKES else "nothing was kept."), 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _leave(f"{error.filename or 'the output'}: {error.strerror or error}.", 2, debug)
    except Exception as error:
        message = f"unexpected {type(error).__name__}: {error} (this is a fault in unskew; --debug shows where)"
        _leave(message, 1, debug)


def _warn(message: Any, *where: Any, **more: Any) -> None:
    print(f"unskew: warning: {message}", file=sys.stderr)


def _leave(message: str, status: int, debug: bool = False) -> None:
    if debug:
        traceback.print_exc()
    print(f"unskew: {message}", file=sys.stderr)
    sys.exit(status)

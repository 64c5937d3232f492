"""The command line: it parses, calls the API and prints. ``unskew --help`` does not wait for torch."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter

from unskew import __version__
from unskew.config import combine, dotted
from unskew.engine.settings import Settings
from unskew.errors import UnskewError

_TRAINING = Group("How to train", sort_key=10)
_HINTS = get_type_hints(Settings)
_FLAGS = [
    (
        f.name,
        Annotated[_HINTS[f.name] | None, Parameter(help=f.metadata["help"], group=_TRAINING, negative="")],
        dataclasses.field(default=None),
    )
    for f in dataclasses.fields(Settings)
]
Flags = dataclasses.make_dataclass("Flags", _FLAGS, frozen=True)
Flags.__module__ = __name__  # cyclopts looks up the annotations there

Data = Annotated[str | None, Parameter(help="A folder of class folders, CSV, Parquet, .npz, hf:NAME, or a name.")]
DataDir = Annotated[Path | None, Parameter(help="Where a data set with a name lies.")]
Size = Annotated[int | None, Parameter(help="Working size in pixels; 32 for sources to 64 px, otherwise 224.")]
SkipBad = Annotated[bool, Parameter(help="Leave out images that cannot be read.", negative="")]
Out = Annotated[Path, Parameter(help="The run folder.")]
Identify = Annotated[
    str | None, Parameter(help="Stage 1: ph, sp, oracle, random or a CSV; --identify.OPTION VALUE sets its options.")
]
ConfigFile = Annotated[Path | None, Parameter(name="--config", help="YAML file; what the command line says wins.")]
Resume = Annotated[bool, Parameter(help="Go on from the checkpoint in --out.", negative="")]
Log = Annotated[Literal["tensorboard", "wandb"] | None, Parameter(help="Log each epoch there as well.")]
Training = Annotated[Any, Parameter(name="*")]

app = App(
    name="unskew",
    version=__version__,
    help="Find the shortcut in a labelled image set, and train a model that does not take it.",
    help_epilogue="An option of a method or of stage 1 is set with a dot: --method.omega 0.01 --identify.window 5. "
    "--debug shows the traceback of an error.",
)
_overrides: dict[str, dict[str, Any]] = {}  # the dotted options of this call


@app.command
def demo(*, out: Out = Path("demo"), seed: int = 0, device: str = "auto") -> None:
    """The whole road on data that comes with the install: identify, then ERM, s-mix and l-mix."""
    from unskew.demo import run_demo

    run_demo(out, seed=seed, device=device)


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

    flags = _flags(data=data, data_dir=data_dir, size=size, skip_bad=skip_bad, identify=identify, training=training)
    commands.identify(combine(config, flags, _overrides), out, resume, log)


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

    stage1 = str(partition) if partition else identify
    flags = _flags(data=data, data_dir=data_dir, size=size, skip_bad=skip_bad, identify=stage1, training=training)
    commands.train(combine(config, flags | ({"method": method} if method else {}), _overrides), out, resume, log)


@app.command
def evaluate(
    run: Annotated[Path, Parameter(help="A run folder, or a model.safetensors.")],
    data: str,
    /,
    *,
    data_dir: DataDir = None,
    split: Annotated[str | None, Parameter(help="By default test where there is one, else everything.")] = None,
    skip_bad: SkipBad = False,
    json: Annotated[bool, Parameter(help="Print the scores as JSON.", negative="")] = False,
    device: str = "auto",
) -> None:
    """Score a trained model on labelled images."""
    from unskew import commands

    commands.evaluate(run, data, data_dir, split, skip_bad, json, device)


@app.command
def predict(
    run: Path,
    data: str,
    /,
    *,
    out: Annotated[Path, Parameter(help="The CSV to write.")] = Path("predictions.csv"),
    data_dir: DataDir = None,
    split: str | None = None,
    skip_bad: SkipBad = False,
    device: str = "auto",
) -> None:
    """Predict images, labelled or not: a CSV with the class and every probability."""
    from unskew import commands

    commands.predict(run, data, data_dir, split, skip_bad, out, device)


@app.command
def export(run: Path, /, *, onnx: Path | None = None, safetensors: Path | None = None) -> None:
    """Write a trained model as ONNX (checked against torch), or as plain weights."""
    from unskew import commands

    commands.export(run, onnx, safetensors)


@app.command
def methods() -> None:
    """List the methods and their options."""
    from unskew import commands

    commands.methods()


@app.command
def datasets() -> None:
    """List the data sets that have a name, and the kinds of source."""
    from unskew import commands

    commands.datasets()


def _flags(*, training: Any, skip_bad: bool, **given: Any) -> dict[str, Any]:
    """What was said on the command line, and nothing else."""
    said = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    said |= dataclasses.asdict(training) if training is not None else {}
    said["skip_bad"] = skip_bad or None
    return {name: value for name, value in said.items() if value is not None}


def main(argv: list[str] | None = None) -> None:
    """Exit status: 0 done, 1 a fault of ours, 2 something to put right, 130 interrupted."""
    argv = sys.argv[1:] if argv is None else argv
    debug = "--debug" in argv
    try:
        tokens, found = dotted([token for token in argv if token != "--debug"])
        _overrides.clear()
        _overrides.update(found)
        app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except (UnskewError, CycloptsError) as error:
        if debug:
            raise
        _leave(str(error).strip(), 2)
    except KeyboardInterrupt:
        again = shlex.join(["unskew", *argv, *([] if "--resume" in argv else ["--resume"])])
        able = any(command in argv for command in ("train", "identify"))
        _leave("interrupted; " + (f"go on with: {again}" if able else "nothing was kept."), 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if debug:
            raise
        _leave(f"unexpected {type(error).__name__}: {error} (this is a fault in unskew; --debug shows where)", 1)


def _leave(message: str, status: int) -> None:
    print(f"unskew: {message}", file=sys.stderr)
    sys.exit(status)

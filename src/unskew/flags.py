"""The options that commands have in common; those of training are the fields of ``Settings``."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from cyclopts import Group, Parameter

from unskew.engine.settings import Settings


def whole(kind: Any, tokens: Any) -> int:
    """Left to itself, the parser rounds 1.5 to 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value} is not a whole number.") from None


_TRAINING = Group("How to train", sort_key=10)
_HINTS = get_type_hints(Settings)
_FLAGS = [
    (
        f.name,
        Annotated[
            _HINTS[f.name] | None,
            Parameter(
                help=f.metadata["help"],
                group=_TRAINING,
                negative="",
                converter=whole if _HINTS[f.name] in (int, int | None) else None,
            ),
        ],
        dataclasses.field(default=None),
    )
    for f in dataclasses.fields(Settings)
]
Flags = dataclasses.make_dataclass("Flags", _FLAGS, frozen=True)
Flags.__module__ = __name__  # cyclopts looks up the annotations there

Data = Annotated[str | None, Parameter(help="A folder of class folders, CSV, Parquet, .npz, hf:NAME, or a name.")]
DataDir = Annotated[Path | None, Parameter(help="Where a data set with a name lies.")]
Size = Annotated[
    int | None,
    Parameter(help="What a network sees, in pixels; 32 for sources to 64 px, otherwise 224.", converter=whole),
]
SkipBad = Annotated[bool, Parameter(help="Leave out images that cannot be read.", negative="")]
Out = Annotated[Path, Parameter(help="The run folder.")]
Identify = Annotated[
    str | None, Parameter(help="Stage 1: see `unskew methods`, or a CSV; --identify.OPTION VALUE sets its options.")
]
ConfigFile = Annotated[Path | None, Parameter(name="--config", help="YAML file; what the command line says wins.")]
Resume = Annotated[bool, Parameter(help="Go on from the checkpoint in --out.", negative="")]
Log = Annotated[Literal["tensorboard", "wandb"] | None, Parameter(help="Log each epoch there as well.")]
TrainedRun = Annotated[Path, Parameter(name="RUN", help="A run folder, or a model.safetensors.")]
Images = Annotated[str, Parameter(name="DATA", help="A folder, CSV, Parquet, .npz, hf:NAME, or a name.")]
Split = Annotated[str | None, Parameter(help="By default test where there is one, else everything.")]
Device = Annotated[str, Parameter(help="auto, cpu, cuda, cuda:1, mps")]

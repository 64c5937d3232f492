"""``unskew view``, as the command line has it."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def view(
    folder: Annotated[Path, Parameter(name="DIR", help="A run folder of identify, train or demo.")],
    /,
    *,
    data: Annotated[str | None, Parameter(help="Where the images are now, if not where config.yaml says.")] = None,
    data_dir: Annotated[Path | None, Parameter(help="Where a data set with a name lies.")] = None,
    port: Annotated[int, Parameter(help="0: any that is free.")] = 0,
    device: Annotated[str, Parameter(help="Where features are computed: auto, cpu, cuda, cuda:1, mps")] = "auto",
    browse: Annotated[bool, Parameter(help="Open the page in the browser.", negative="")] = False,
) -> None:
    """Browse the samples of a run in a page on this machine, and correct what stage 1 said of them."""
    from unskew.view.serve import view

    view(folder, data, data_dir, port, device, browse)

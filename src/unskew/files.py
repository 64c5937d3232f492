"""Files are written whole or not at all: a temporary file beside the target, then a rename."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unskew.errors import UnskewError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path to write; move it over ``path`` once the block has ended well.

    A full disk, or any other failure to write, is told in one sentence, and leaves ``path`` as it was.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise UnskewError(
            f"{path} could not be written ({error.strerror or error}); what was there before is untouched."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")

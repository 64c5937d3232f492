"""Data sets that can be had from their own page: fetched, checked, unpacked, and never left half there."""

import hashlib
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unskew.data.parallel import watched
from unskew.errors import UnskewError, nearest
from unskew.files import replacing

CHUNK = 1 << 20
PATIENCE = 30.0  # seconds without an answer


@dataclass(frozen=True)
class Archive:
    address: str
    md5: str
    holds: str  # the folder that it unpacks to


ARCHIVES = {
    "cifar10": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
        "cifar-10-batches-py",
    )
}


def download(name: str, data_dir: Path) -> Path:
    """Fetch a data set into ``data_dir`` and give its folder; what is there already is left alone."""
    if name not in ARCHIVES:
        raise UnskewError(f"{name!r} cannot be downloaded here; {nearest(name, ARCHIVES)}")
    archive = ARCHIVES[name]
    folder = data_dir / archive.holds
    if folder.exists():
        return folder
    packed = data_dir / archive.address.rpartition("/")[2]
    if not packed.exists() or _md5(packed) != archive.md5:
        _fetch(archive, packed)
    _unpack(packed, archive, data_dir)
    packed.unlink()
    return folder


def _fetch(archive: Archive, path: Path) -> None:
    try:
        with urllib.request.urlopen(archive.address, timeout=PATIENCE) as answer, replacing(path) as temporary:
            size = int(answer.headers.get("Content-Length") or 0)
            digest = hashlib.md5(usedforsecurity=False)
            with open(temporary, "wb") as file:
                for block in watched(_blocks(answer), -(-size // CHUNK), f"downloading {path.name}"):
                    digest.update(block)
                    file.write(block)
            if digest.hexdigest() != archive.md5:
                raise UnskewError(f"what {archive.address} gave is damaged or not the file we know: try again.")
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise UnskewError(
            f"{archive.address} cannot be reached ({reason}): fetch it on another machine, "
            f"and put {archive.holds}/ under --data-dir."
        ) from error


def _blocks(answer) -> Iterator[bytes]:
    while block := answer.read(CHUNK):
        yield block


def _unpack(packed: Path, archive: Archive, data_dir: Path) -> None:
    """Into a folder beside, which then takes its name: a folder that is there is whole."""
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(dir=data_dir) as beside:
        try:
            with tarfile.open(packed) as file:
                file.extractall(beside, filter="data")  # nothing outside, no links, no devices
        except (tarfile.TarError, OSError, EOFError) as error:
            raise UnskewError(f"{packed} cannot be unpacked ({error}): remove it and try again.") from error
        if not (Path(beside) / archive.holds).is_dir():
            raise UnskewError(f"{packed} does not hold {archive.holds}/.")
        shutil.move(Path(beside) / archive.holds, data_dir / archive.holds)


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()

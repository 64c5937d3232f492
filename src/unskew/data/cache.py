"""Images are decoded once: the pixels are kept on disk, and used again while the files stay the same."""

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unskew.data.listing import Encoded, Framing
from unskew.data.mapping import map_file, memory_bytes
from unskew.data.parallel import each, watched
from unskew.errors import UnskewError
from unskew.files import replacing, write_text

Items = Sequence[Path | Encoded]
LARGEST_IN_MEMORY = 4 << 30  # bytes: beyond, reading again what is needed costs little


@dataclass(frozen=True)
class Decoded:
    """The pixels of the readable items, N×H×W×3, in their order; the reason for each row left out; and the size at
    which a network is to see them."""

    pixels: np.ndarray
    unreadable: dict[int, str]
    size: int


def decoded(items: Items, size: int | None, name: str, framing: Framing, mapped: bool = False) -> Decoded:
    """Decode, or find what an earlier run decoded.

    The array is memory-mapped where it would take more than the set share of memory, or more than 4 GB; what an earlier
    run decoded also where it is to be ``mapped``.
    """
    from unskew.data import decode  # Pillow, which importing the package should not need

    size = size or framing.size
    stem = folder() / _digest(items, size, framing, decode.VERSION)
    found = _found(stem, items, mapped)
    if found:
        return found
    size = size or decode.working_size(items)
    side = framing.kept(size)
    results = each(lambda item: decode.decode(item, side, framing.fit), items)
    watched_results = watched(results, len(items), f"decoding {name}", "images")
    keep = _decode_to_memory if _fits(len(items) * side * side * 3) else _decode_to_disk
    return keep(watched_results, stem, items, size, side)


def folder() -> Path:
    """``$UNSKEW_CACHE``, else the ``unskew`` folder in the user's cache."""
    if own := os.environ.get("UNSKEW_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "unskew"


def _decode_to_memory(results, stem: Path, items: Items, size: int, side: int) -> Decoded:
    pixels = np.empty((len(items), side, side, 3), np.uint8)
    unreadable: dict[int, str] = {}
    for row, result in enumerate(results):
        if isinstance(result, str):
            unreadable[row] = result
        else:
            pixels[row - len(unreadable)] = result
    pixels = pixels[: len(items) - len(unreadable)]
    try:
        with replacing(stem.with_suffix(".npy")) as temporary, open(temporary, "wb") as file:
            np.save(file, pixels)
        _write_sidecar(stem, items, size, side, unreadable)
    except (UnskewError, OSError) as error:
        warnings.warn(f"the decoded images are not kept for the next run: {error}", stacklevel=2)
    return Decoded(pixels, unreadable, size)


def _decode_to_disk(results, stem: Path, items: Items, size: int, side: int) -> Decoded:
    """Row after row through plain writes: a full disk is then an error, where a memory map would crash."""
    unreadable: dict[int, str] = {}
    row_bytes = side * side * 3
    try:
        with replacing(stem.with_suffix(".npy")) as temporary, open(temporary, "wb") as file:
            shape = (len(items), side, side, 3)
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            start = file.tell()
            for row, result in enumerate(results):
                if isinstance(result, str):
                    unreadable[row] = result
                else:
                    file.write(result.tobytes())
            file.truncate(start + len(items) * row_bytes)  # unreadable rows leave a gap at the end
        _write_sidecar(stem, items, size, side, unreadable)
    except (UnskewError, OSError) as error:
        raise UnskewError(
            f"The decoded images need {len(items) * row_bytes / 1e9:.1f} GB of disk, as that is too much for memory:"
            f" {error} Set UNSKEW_CACHE to a folder with that much room."
        ) from error
    found = _found(stem, items)
    if found is None:
        raise UnskewError(f"{stem}.npy was removed or changed as it was written.")
    return found


def _found(stem: Path, items: Items, mapped: bool = False) -> Decoded | None:
    """What an earlier run left, if it is whole."""
    try:
        sidecar = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        size, side, reasons = sidecar["size"], sidecar["side"], sidecar["unreadable"]
        readable = len(items) - len(reasons)
        read = map_file if mapped or not _fits(readable * side * side * 3) else np.load
        pixels = read(stem.with_suffix(".npy"))[:readable]
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    if pixels.shape != (readable, side, side, 3):
        return None
    called = map(_called, items) if reasons else ()  # to name many takes a while
    unreadable = {row: reasons[name] for row, name in enumerate(called) if name in reasons}
    return Decoded(pixels, unreadable, size)


def _write_sidecar(stem: Path, items: Items, size: int, side: int, unreadable: dict[int, str]) -> None:
    """Written after the pixels, so that where it is they are."""
    reasons = {_called(items[row]): reason for row, reason in unreadable.items()}
    about = {"size": size, "side": side, "unreadable": reasons}
    write_text(stem.with_suffix(".json"), json.dumps(about, indent=1))


def _digest(items: Items, size: int | None, framing: Framing, version: int) -> str:
    """Names the files as they are now, in this order.

    The size asked for is in it, not the working size: that would mean opening every file before any use.
    """
    digest = hashlib.sha256(f"{version} {size} {framing.fit} {framing.largest}".encode())
    for item in items:
        digest.update(f"\0{_called(item)}".encode(errors="surrogateescape"))
        if isinstance(item, Path):
            with suppress(OSError, ValueError):  # one that is not there has a name only
                stat = item.stat()
                digest.update(f"\0{stat.st_size}\0{stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:32]


def _called(item: Path | Encoded) -> str:
    return os.path.abspath(item) if isinstance(item, Path) else item.identity


def _fits(nbytes: int) -> bool:
    """Whether so much data may lie in memory."""
    text = os.environ.get("UNSKEW_RAM_SHARE", "0.25")
    try:
        share = float(text)
    except ValueError:
        raise UnskewError(f"UNSKEW_RAM_SHARE must be a share of memory such as 0.25, not {text!r}.") from None
    return nbytes <= min(share * memory_bytes(), LARGEST_IN_MEMORY)

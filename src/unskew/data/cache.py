"""Images are decoded once: the pixels are kept on disk, and used again while the files stay the same."""

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unskew.data.listing import Encoded
from unskew.data.parallel import each, watched
from unskew.errors import UnskewError
from unskew.files import replacing, write_text

Items = Sequence[Path | Encoded]


def decoded(items: Items, size: int | None, name: str) -> tuple[np.ndarray, dict[int, str]]:
    """The pixels of the readable items, N×H×W×3, in their order, and the reason for each row left out.

    The array is memory-mapped where it would take more than the set share of memory.
    """
    from unskew.data import decode  # Pillow, which importing the package should not need

    stem = folder() / _digest(items, size, decode.VERSION)
    kept = _kept(stem, items)
    if kept:
        return kept
    size = size or decode.working_size(items)
    pixels = watched(each(lambda item: decode.decode(item, size), items), len(items), f"decoding {name}")
    in_memory = _fits(len(items) * size * size * 3)
    keep = _decode_to_memory if in_memory else _decode_to_disk
    return keep(pixels, stem, items, size)


def folder() -> Path:
    """``$UNSKEW_CACHE``, else the ``unskew`` folder in the user's cache."""
    if own := os.environ.get("UNSKEW_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "unskew"


def _decode_to_memory(results, stem: Path, items: Items, size: int) -> tuple[np.ndarray, dict[int, str]]:
    pixels = np.empty((len(items), size, size, 3), np.uint8)
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
        _write_sidecar(stem, items, size, unreadable)
    except (UnskewError, OSError) as error:
        warnings.warn(f"the decoded images are not kept for the next run: {error}", stacklevel=2)
    return pixels, unreadable


def _decode_to_disk(results, stem: Path, items: Items, size: int) -> tuple[np.ndarray, dict[int, str]]:
    """Row after row through plain writes: a full disk is then an error, where a memory map would crash."""
    unreadable: dict[int, str] = {}
    row_bytes = size * size * 3
    try:
        with replacing(stem.with_suffix(".npy")) as temporary, open(temporary, "wb") as file:
            shape = (len(items), size, size, 3)
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            start = file.tell()
            for row, result in enumerate(results):
                if isinstance(result, str):
                    unreadable[row] = result
                else:
                    file.write(result.tobytes())
            file.truncate(start + len(items) * row_bytes)  # unreadable rows leave a gap at the end
        _write_sidecar(stem, items, size, unreadable)
    except (UnskewError, OSError) as error:
        raise UnskewError(
            f"The decoded images need {len(items) * row_bytes / 1e9:.1f} GB of disk, as that is too much for memory:"
            f" {error} Set UNSKEW_CACHE to a folder with that much room."
        ) from error
    kept = _kept(stem, items)
    if kept is None:
        raise UnskewError(f"{stem}.npy was removed or changed as it was written.")
    return kept


def _kept(stem: Path, items: Items) -> tuple[np.ndarray, dict[int, str]] | None:
    """What an earlier run left, if it is whole."""
    try:
        sidecar = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        size, reasons = sidecar["size"], sidecar["unreadable"]
        readable = len(items) - len(reasons)
        mode = None if _fits(readable * size * size * 3) else "c"  # copy on write: torch wants writable memory
        pixels = np.load(stem.with_suffix(".npy"), mmap_mode=mode)[:readable]
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    if pixels.shape != (readable, size, size, 3):
        return None
    unreadable = {row: reasons[_called(item)] for row, item in enumerate(items) if _called(item) in reasons}
    return pixels, unreadable


def _write_sidecar(stem: Path, items: Items, size: int, unreadable: dict[int, str]) -> None:
    """Written after the pixels, so that where it is they are."""
    reasons = {_called(items[row]): reason for row, reason in unreadable.items()}
    write_text(stem.with_suffix(".json"), json.dumps({"size": size, "unreadable": reasons}, indent=1))


def _digest(items: Items, size: int | None, version: int) -> str:
    """Names the files as they are now, in this order.

    The size asked for is in it, not the working size: that would mean opening every file before any use.
    """
    digest = hashlib.sha256(f"{version} {size}".encode())
    for item in items:
        digest.update(f"\0{_called(item)}".encode(errors="surrogateescape"))
        if isinstance(item, Path) and item.exists():
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
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):  # not every system tells
        memory = 8 << 30
    return nbytes <= share * memory

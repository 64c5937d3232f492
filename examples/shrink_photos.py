"""python examples/shrink_photos.py BAR BAR-256: the same tree, every photo as a 256×256 JPEG, to take along.

It is cut as `unskew` cuts photos (short side 256, centre), so that a network sees what it would have seen, but for the
second JPEG. Other files are left out. Not for CelebA, which is small already, nor Waterbirds, which is not cut so.
"""

import argparse
from pathlib import Path

from PIL import Image

from unskew.data.decode import decode
from unskew.data.folder import is_image
from unskew.data.parallel import each, watched


def shrink(path: Path, source: Path, out: Path, side: int, quality: int) -> str | None:
    """Why the photo cannot be read, or nothing."""
    pixels = decode(path, side)
    if isinstance(pixels, str):
        return f"{path}: {pixels}"
    to = out / path.relative_to(source)
    to.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(to, format="JPEG", quality=quality)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--quality", type=int, default=90)
    given = parser.parse_args()
    photos = sorted(path for path in given.source.rglob("*") if is_image(path))
    results = each(lambda path: shrink(path, given.source, given.out, given.side, given.quality), photos)
    bad = [why for why in watched(results, len(photos), "shrinking", "images") if why]
    size = sum(path.stat().st_size for path in given.out.rglob("*") if path.is_file())
    print("\n".join([*bad, f"{len(photos) - len(bad)} photos, {size / 1e6:.0f} MB: {given.out}"]))


if __name__ == "__main__":
    main()

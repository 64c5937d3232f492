"""``celeba``: faces, blond or not; most of the blond are women.

Liu et al., "Deep Learning Face Attributes in the Wild", ICCV 2015. The label is Blond_Hair, the bias Male.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unskew.data import places
from unskew.data.listing import Framing, Listing
from unskew.data.table import Csv, Spaced, Table
from unskew.errors import UnskewError

PAGE = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
LABEL, BIAS = "Blond_Hair", "Male"
CLASSES, SEXES, SPLITS = ("not blond", "blond"), ("female", "male"), ("train", "val", "test")
FOLDER = "img_align_celeba"
SIDE = 178  # the width of every photo
PUBLISHED = {
    "train not blond/female": 71629,
    "train not blond/male": 66874,
    "train blond/female": 22880,
    "train blond/male": 1387,
    "val": 19867,
    "test": 19962,
}


@dataclass(frozen=True)
class Faces:
    """What the attributes say; ``split`` is there where they tell it too, as JTT's metadata.csv does."""

    table: Table
    names: Sequence[str]
    label: np.ndarray
    bias: np.ndarray
    split: np.ndarray | None


def read(argument: str, data_dir: Path | None, labelled: bool) -> Listing:
    if argument:
        raise UnskewError(f"celeba:{argument}: celeba takes nothing after its name.")
    faces = places.find(_look, data_dir, "CelebA", PAGE, "list_attr_celeba.csv, list_attr_celeba.txt or metadata.csv")
    path, names = faces.table.path, faces.names
    root = _photos(path, names[0])
    places.refuse_missing(names, root, path, faces.table.row, PAGE)
    split = faces.split if faces.split is not None else _partition(path, names)
    y, sex, parts = faces.label, faces.bias, np.array(SPLITS)[split]
    counts = Counter(f"train {CLASSES[a]}/{SEXES[b]}" for a, b in zip(y[split == 0], sex[split == 0]))
    counts += Counter(parts.tolist())
    return Listing(
        name="celeba",
        where=str(path),
        images=[root / name for name in names],
        ids=list(names),
        labels=y if labelled else None,
        bias=sex if labelled else None,
        split=parts,
        class_names=CLASSES if labelled else None,
        framing=Framing(size=224, largest=SIDE),
        notes=places.counted("CelebA", PUBLISHED, counts),
    )


def _look(folder: Path) -> Faces | None:
    for name in ("list_attr_celeba.csv", "list_attr_celeba.txt", "metadata.csv"):
        path = folder / name
        merged = name == "metadata.csv"
        if not (places.has_columns(path, ("image_id", LABEL, BIAS, "split")) if merged else path.is_file()):
            continue
        # As first published: how many, the names of the attributes, and then a line for each photo.
        table = Csv(path) if path.suffix == ".csv" else Spaced(path, ("image_id",), skip=1)
        label, bias = (table.coded(column, (-1, 0, 1)) > 0 for column in (LABEL, BIAS))
        split = table.coded("split", (0, 1, 2)) if merged else None
        return Faces(table, table.texts("image_id"), label.astype(np.int64), bias.astype(np.int64), split)
    return None


def _around(path: Path) -> Iterator[Path]:
    """Folders near the attributes; as first published, Anno/, Eval/ and Img/ lie side by side."""
    apart = path.parent.name.lower() == "anno"
    yield from places.below(path.parent.parent if apart else path.parent)


def _photos(path: Path, first: str) -> Path:
    """The folder of the photos, which is sometimes nested in one of the same name."""
    seen = None
    for folder in _around(path):
        for inside in (folder / FOLDER, folder / FOLDER / FOLDER):
            if (inside / first).is_file():
                return inside
            if inside.is_dir() and seen is None:
                seen = inside
    if seen is not None:
        return seen  # what is missing in it is told by name
    raise UnskewError(f"{path.parent}/{FOLDER}/ of CelebA is missing: get the photos from {PAGE}.")


def _partition(path: Path, names: Sequence[str]) -> np.ndarray:
    """0, 1, 2 for each photo, in the order of the attributes."""
    for folder in _around(path):
        for name in ("list_eval_partition.csv", "list_eval_partition.txt"):
            if (folder / name).is_file():
                return _splits_of(folder / name, names)
    raise UnskewError(f"{path.parent}/list_eval_partition.csv (or .txt) of CelebA is missing: get it from {PAGE}.")


def _splits_of(path: Path, names: Sequence[str]) -> np.ndarray:
    table = Csv(path) if path.suffix == ".csv" else Spaced(path, ("image_id", "partition"))
    found = dict(zip(table.texts("image_id"), table.coded("partition", (0, 1, 2)).tolist()))
    missing = [name for name in names if name not in found]
    if missing:
        raise UnskewError(f"{path} does not say the split of {len(missing)} photos, first {missing[0]}.")
    return np.array([found[name] for name in names])

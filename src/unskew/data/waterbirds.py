"""``waterbirds``: birds of land and of water, most before a background of their own kind.

Sagawa et al., "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020. The label is the kind of bird, the
bias the background.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from unskew.data import places
from unskew.data.listing import Framing, Listing
from unskew.data.table import Csv
from unskew.errors import UnskewError

PAGE = "https://nlp.stanford.edu/data/dro/waterbird_complete95_forest2water2.tar.gz"
COLUMNS = ("img_filename", "y", "split", "place")
CLASSES, PLACES, SPLITS = ("landbird", "waterbird"), ("land", "water"), ("train", "val", "test")
PUBLISHED = {
    "train landbird/land": 3498,
    "train landbird/water": 184,
    "train waterbird/land": 56,
    "train waterbird/water": 1057,
    "val": 1199,
    "test": 5794,
}


def read(argument: str, data_dir: Path | None, labelled: bool) -> Listing:
    if argument:
        raise UnskewError(f"waterbirds:{argument}: waterbirds takes nothing after its name.")
    table = places.find(_look, data_dir, "Waterbirds", PAGE, f"metadata.csv with columns {', '.join(COLUMNS)}")
    names = table.texts("img_filename")
    root = table.path.parent
    places.refuse_missing(names, root, table.path, table.row, PAGE)
    y, place, split = table.coded("y", (0, 1)), table.coded("place", (0, 1)), table.coded("split", (0, 1, 2))
    parts = np.array(SPLITS)[split]
    counts = Counter(f"train {CLASSES[a]}/{PLACES[b]}" for a, b in zip(y[split == 0], place[split == 0]))
    counts += Counter(parts.tolist())
    return Listing(
        name="waterbirds",
        where=str(table.path),
        images=[root / name for name in names],
        ids=names,
        labels=y if labelled else None,
        bias=place if labelled else None,
        split=parts,
        class_names=CLASSES if labelled else None,
        framing=Framing("squash", size=224),
        notes=places.counted("Waterbirds", PUBLISHED, counts),
    )


def _look(folder: Path) -> Csv | None:
    path = folder / "metadata.csv"
    return Csv(path) if places.has_columns(path, COLUMNS) else None

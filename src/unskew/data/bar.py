"""``bar``: Biased Action Recognition, six actions, each in its usual place in train and in others in test.

Nam et al., "Learning from Failure: Training Debiased Classifier from Biased Classifier", NeurIPS 2020. There are no
bias labels and no validation split.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from unskew.data import places
from unskew.data.folder import is_image
from unskew.data.listing import Framing, Listing
from unskew.errors import UnskewError

PAGE = "https://github.com/alinlab/BAR"
PUBLISHED = {
    "train": {"climbing": 326, "diving": 520, "fishing": 163, "pole vaulting": 279, "racing": 336, "throwing": 317},
    "test": {"climbing": 105, "diving": 159, "fishing": 42, "pole vaulting": 131, "racing": 132, "throwing": 85},
}
CLASSES = tuple(PUBLISHED["train"])


def read(argument: str, data_dir: Path | None, labelled: bool) -> Listing:
    if argument:
        raise UnskewError(f"bar:{argument}: bar takes nothing after its name.")
    root = places.find(_look, data_dir, "BAR", PAGE, "train/ with photos such as climbing_0.jpg")
    files = {split: _photos(root / split) for split in PUBLISHED}
    images = [path for paths in files.values() for path in paths]
    labels = [_action(path) for path in images]
    split = np.repeat(list(files), [len(paths) for paths in files.values()])
    counts = Counter(f"{part} {CLASSES[label]}" for part, label in zip(split, labels))
    published = {f"{part} {name}": count for part, each in PUBLISHED.items() for name, count in each.items()}
    return Listing(
        name="bar",
        where=str(root),
        images=images,
        ids=[path.relative_to(root).as_posix() for path in images],
        labels=np.array(labels) if labelled else None,
        split=split,
        class_names=CLASSES if labelled else None,
        framing=Framing(size=224),
        notes=places.counted("BAR", published, counts),
    )


def _look(folder: Path) -> Path | None:
    train = folder / "train"
    known = train.is_dir() and any(next(train.glob(f"{action}_*"), None) for action in CLASSES)
    return folder if known else None


def _photos(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UnskewError(f"{folder}/ of BAR is missing; get the set again from {PAGE}.")
    return sorted(path for path in folder.iterdir() if is_image(path.name) and not path.name.startswith("."))


def _action(path: Path) -> int:
    """What stands before the last "_": "pole vaulting_7.jpg"."""
    action = path.stem.rpartition("_")[0]
    if action not in CLASSES:
        raise UnskewError(f"{path} is not named after an action of BAR ({', '.join(CLASSES)}), as in climbing_0.jpg.")
    return CLASSES.index(action)

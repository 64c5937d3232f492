"""``digits[:ratio]``: real handwritten digits on coloured grounds, a shortcut that comes with the install."""

import numpy as np

from unskew.data.listing import Listing, joined
from unskew.errors import UnskewError

RATIO = 0.95
SCALE = 3  # 8 px to 24 px
TEST_PER_CLASS = 60  # a third of each class, and six of each colour
INK = 1.0  # how much of the ground the fullest stroke covers
JITTER = 30  # standard deviation of a ground's colour, of 255
COLOURS = np.array(
    [
        (214, 39, 40), (44, 160, 44), (31, 90, 220), (240, 210, 40), (150, 40, 190),
        (40, 200, 210), (250, 130, 20), (235, 120, 180), (110, 70, 40), (150, 150, 150),
    ],
    dtype=np.float64,
)  # fmt: skip


def read(ratio: str, data_dir, labelled: bool) -> Listing:
    """Train has ``ratio`` of each class on its own colour, test has every colour equally often."""
    from sklearn.datasets import load_digits

    share = _share(ratio)
    digits = load_digits()  # pyright: ignore[reportAttributeAccessIssue]
    strokes, labels = digits.images / 16, digits.target  # pyright: ignore[reportAttributeAccessIssue]
    random = np.random.RandomState(20)  # this one's stream is promised never to change
    order = random.permutation(len(labels))
    jitter = random.normal(0, JITTER, (len(labels), 3))
    colours = np.empty_like(labels)
    test = np.zeros(len(labels), bool)
    for label in range(10):
        rows = order[labels[order] == label]
        test[rows[:TEST_PER_CLASS]] = True
        colours[rows[:TEST_PER_CLASS]] = np.arange(TEST_PER_CLASS) % 10
        train = rows[TEST_PER_CLASS:]
        conflicting = min(max(round((1 - share) * len(train)), 1), len(train) - 1)
        colours[train] = label
        # The others in turn, starting after the class's own, so that over all classes no colour is favoured.
        colours[train[:conflicting]] = (label + 1 + np.arange(conflicting) % 9) % 10
    images = _painted(strokes, COLOURS[colours] + jitter)
    name = f"digits:{share:g}"

    def part(split: str, rows: np.ndarray) -> Listing:
        return Listing(
            name=name,
            where=name,
            images=images[rows],
            ids=[f"{name}/{split}/{row:04d}" for row in rows],
            labels=labels[rows] if labelled else None,
            bias=colours[rows] if labelled else None,
            aligned=(colours == labels)[rows] if labelled else None,
        )

    return joined(
        {"train": part("train", np.flatnonzero(~test)), "test": part("test", np.flatnonzero(test))}, name, name
    )


def _painted(strokes: np.ndarray, grounds: np.ndarray) -> np.ndarray:
    """White ink over a coloured ground, enlarged with straight lines between the pixels."""
    side = strokes.shape[1]
    places = (np.arange(SCALE * side) + 0.5) / SCALE - 0.5
    enlarge = np.stack([np.interp(places, np.arange(side), pixel) for pixel in np.eye(side)], axis=1)
    cover = INK * (enlarge @ strokes @ enlarge.T)[..., None]
    return np.rint(((1 - cover) * grounds[:, None, None] + cover * 255).clip(0, 255)).astype(np.uint8)


def _share(text: str) -> float:
    try:
        share = float(text or RATIO)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise UnskewError(
            f"digits:{text}: the share of digits on their own colour lies between 0 and 1, as in digits:0.95."
        )
    return share

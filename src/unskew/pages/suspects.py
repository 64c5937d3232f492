"""The suspects as a table that can be sorted and filtered: the most certain of each class; the rest is in the CSV."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.pages.chart import strip
from unskew.pages.gallery import certainty, first
from unskew.pages.images import ICONS, encoder_for

ROWS = 300
MOST_EPOCHS = 40  # drawn in a history
BUDGET = 450_000  # bytes of images


@dataclass(frozen=True)
class Suspect:
    src: str
    id: str
    label: str
    mistaken: str
    score: float
    loss: float | None
    history: Markup | None
    right: int | None
    truth: str


def suspects(data: Dataset, partition: Partition) -> Sequence[Suspect]:
    """In turn from every class, then by certainty."""
    place = certainty(partition)
    hit = partition.labels[partition.conflicting].unique().tolist()
    each = max(1, ROWS // max(len(hit), 1))
    rows = [row for k in hit for row in first(place, (partition.labels == k) & partition.conflicting, each, most=True)]
    rows = sorted(rows, key=lambda row: -int(place[row]))[:ROWS]
    wrong, loss = partition.usual_wrong_class, partition.losses
    encode = encoder_for(data.pixels, rows, BUDGET, ICONS)
    found = []
    for row in rows:
        history, right = None, None
        if partition.predictions is not None and partition.times_right is not None:
            answers = partition.predictions[row, :MOST_EPOCHS]
            right = int(partition.times_right[row])
            if len(answers) > 1:
                history = strip((answers == partition.labels[row]).tolist(), (answers >= 0).tolist())
        found.append(
            Suspect(
                src=encode(data.pixels[row].numpy()),
                id=data.ids[row],
                label=data.class_names[int(partition.labels[row])],
                mistaken="" if wrong is None or wrong[row] < 0 else data.class_names[int(wrong[row])],
                score=float(partition.score[row]),
                loss=None if loss is None else float(loss[row].float().nanmean()),
                history=history,
                right=right,
                truth="" if data.aligned is None else "aligned" if data.aligned[row] else "conflicting",
            )
        )
    return found

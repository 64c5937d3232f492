"""Stage 1 in charts: how often each sample was right, and what the epochs did."""

import torch
from markupsafe import Markup
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition, quality

MOST_BARS = 31
SIDES = ("conflict", "aligned")


def stage1_charts(data: Dataset, partition: Partition) -> list[Markup]:
    """Nothing without a history of at least two epochs."""
    from unskew.pages.chart import line_chart

    if partition.predictions is None or partition.predictions.shape[1] < 2:
        return []
    right = partition.predictions == partition.labels[:, None]
    charts = [_histogram(partition, right.shape[1])]
    if partition.losses is not None and partition.conflicting.any():
        sides = {"conflicting": partition.conflicting, "aligned": ~partition.conflicting}
        lines = {name: _means(partition.losses, side) for name, side in sides.items()}
        note = "Mean loss of the samples that ended on each side: the further apart, the plainer the case."
        charts.append(line_chart("Loss of the two sides", lines, note=note, colours=SIDES))
    if partition.suspects is None:
        return charts
    note = "Who would be conflicting, had stage 1 ended with that epoch."
    count = {"conflicting": partition.suspects.sum(0).tolist()}
    charts.append(line_chart("Suspects after each epoch", count, note=note, colours=SIDES))
    if data.aligned is not None:
        each = [quality(found, ~data.aligned) for found in partition.suspects.T]
        lines = {"F1": [q.f1 for q in each], "ρ": [q.rho for q in each]}
        lines |= {"precision": [q.precision for q in each], "recall": [q.recall for q in each]}
        note = "Against the truth that this data set knows, and stage 1 was not told."
        charts.append(line_chart("How well they are found", lines, note=note))
    return charts


def _histogram(partition: Partition, epochs: int) -> Markup:
    from unskew.pages.chart import bar_chart

    assert partition.times_right is not None
    width = -(-(epochs + 1) // MOST_BARS)  # epochs that share a bar
    place = partition.times_right // width
    bars = {}
    for i in range(epochs // width + 1):
        low, high = i * width, min(i * width + width - 1, epochs)
        inside = place == i
        bars[str(low) if low == high else f"{low}–{high}"] = {
            "conflicting": int((inside & partition.conflicting).sum()),
            "aligned": int((inside & ~partition.conflicting).sum()),
        }
    note = "ŝ of every sample. Heights go by the root of the count, so that few can be seen beside many."
    return bar_chart("How often each sample was right", bars, x_label="epochs right, ŝ", note=note, colours=SIDES)


def _means(losses: Tensor, side: Tensor) -> list[float]:
    part = losses[side].float()
    return torch.nanmean(part, 0).tolist() if len(part) else []

"""Where each model looks on samples that break the shortcut."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.augment import batch_of
from unskew.engine.inference import NO_DRAWS
from unskew.models.gradcam import gradcam
from unskew.models.network import Network
from unskew.pages.accuracy import title
from unskew.pages.images import Encoder
from unskew.training import Run

SAMPLES = 8
SIDE = 96
# Dark to bright, so that it reads the same without colour.
RAMP = np.array([(20, 11, 52), (101, 21, 110), (188, 55, 84), (243, 120, 25), (252, 255, 164)], np.float32)


@dataclass(frozen=True)
class Look:
    src: str
    says: str
    right: bool


@dataclass(frozen=True)
class Looked:
    src: str
    id: str
    label: str
    looks: Sequence[Look]


@dataclass(frozen=True)
class Attention:
    methods: Sequence[str]
    rows: Sequence[Looked]
    where: str
    why_not: str = ""


def attention(
    data: Dataset, partition: Partition | None, test: Dataset | None, runs: Sequence[Run]
) -> Attention | None:
    """Plain training, or else the first run, beside the last one; None where no sample is known to conflict."""
    plain = [*(run for run in runs if run.result.method == "erm"), *runs][:1]
    chosen = [*plain, *(run for run in runs[-1:] if run is not plain[0])]
    if test is not None and test.aligned is not None and not test.aligned.all():
        source, conflicting, where = test, ~test.aligned, "test images that break the shortcut"
    elif partition is not None and partition.conflicting.any():
        source, conflicting, where = data, partition.conflicting, "training images that stage 1 calls conflicting"
    else:
        return None
    if not chosen:
        return None
    rows = _spread(source.labels, conflicting)
    # As the networks see them: the centre, where more was kept to crop from.
    images = batch_of(source.pixels[rows], torch.arange(len(rows)), "none", NO_DRAWS, source.size)
    pixels = (images * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
    found = [gradcam(run.model, images) if isinstance(run.model, Network) else None for run in chosen]
    names = [title(run) for run in chosen]
    if any(one is None for one in found):
        why_not = f"The network of {names[found.index(None)]} ends in tokens or flat features,"
        return Attention(names, [], where, why_not)
    encode = Encoder(SIDE, lossless=False)
    looked = []
    for i, row in enumerate(map(int, rows)):
        label = int(source.labels[row])
        looks = []
        for maps, predictions in (one for one in found if one is not None):
            says = int(predictions[i])
            looks.append(Look(encode(_overlaid(pixels[i], maps[i])), source.class_names[says], says == label))
        looked.append(Looked(encode(_enlarged(pixels[i])), source.ids[row], source.class_names[label], looks))
    return Attention(names, looked, where)


def _spread(labels: Tensor, conflicting: Tensor) -> Tensor:
    """The first of each class in turn: chosen by no result."""
    rows = conflicting.nonzero().flatten()
    turn = torch.zeros(len(rows), dtype=torch.int64)
    for k in labels[rows].unique():
        inside = labels[rows] == k
        turn[inside] = torch.arange(int(inside.sum()))
    return rows[turn.argsort(stable=True)[:SAMPLES]].sort().values


def _enlarged(pixels: Tensor) -> np.ndarray:
    from PIL import Image

    small = Image.fromarray(pixels.numpy())
    return np.asarray(small.resize((SIDE, SIDE), Image.Resampling.NEAREST if pixels.shape[0] < SIDE else None))


def _overlaid(pixels: Tensor, heat: Tensor) -> np.ndarray:
    """The image in grey under the map's colours."""
    from PIL import Image

    grey = _enlarged(pixels).astype(np.float32).mean(2, keepdims=True)
    sized = Image.fromarray(heat.numpy()).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    strength = np.asarray(sized, np.float32).clip(0, 1)
    at = np.linspace(0, 1, len(RAMP))
    colour = np.stack([np.interp(strength, at, RAMP[:, c]) for c in range(3)], 2)
    return (0.45 * grey + 0.55 * colour).clip(0, 255).astype(np.uint8)

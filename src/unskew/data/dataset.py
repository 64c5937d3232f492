"""The noun that every room shares: a set of labelled images, decoded once."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from unskew.errors import UnskewError


@dataclass(frozen=True, repr=False)
class Dataset:
    """Labelled images at one working size.

    Parameters
    ----------
    images : uint8 tensor, N×C×H×W
        In memory, or over a memory-mapped file. Held as N×H×W×C underneath, so that gathering rows gives
        ``channels_last`` batches for free.
    labels : int64 tensor, N
        Index into ``class_names``; −1 where there is no label (prediction only).
    ids : sequence of str
        What a person would call each sample: a path relative to the source, or an index.
    class_names : sequence of str
    bias : int64 tensor, N, optional
        The nuisance of each sample, where it is known.
    aligned : bool tensor, N, optional
        Whether the sample follows the shortcut, where that is known.
    group_weights : float tensor, classes × biases, optional
        Share of the *training* set in each (label, bias) group; follows from ``bias`` where it is not given.
    name : str
        For tables and messages.
    notes : sequence of str
        What a reader of the results should know: images skipped, a hold-out made.
    input_size : int, optional
        The side of what a network sees, where that is not all of the image: a random crop in training, the centre
        in evaluation. Images smaller than that are enlarged.
    """

    images: Tensor
    labels: Tensor
    ids: Sequence[str]
    class_names: Sequence[str]
    bias: Tensor | None = None
    aligned: Tensor | None = None
    group_weights: Tensor | None = None
    name: str = "data"
    notes: Sequence[str] = field(default=())
    input_size: int | None = None

    def __post_init__(self) -> None:
        n = len(self.labels)
        if self.images.ndim != 4 or self.images.dtype != torch.uint8:
            raise UnskewError(
                f"{self.name}: images must be uint8 and N×C×H×W, not {self.images.dtype} {tuple(self.images.shape)}."
            )
        per_sample = {"images": self.images, "ids": self.ids, "bias": self.bias, "aligned": self.aligned}
        for what, values in per_sample.items():
            if values is not None and len(values) != n:
                raise UnskewError(f"{self.name}: {len(values)} {what} for {n} labels.")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        about = [f"{len(self):,} images", f"{self.size} px", f"{self.num_classes} classes"]
        if self.aligned is not None:
            about.append(f"{int((~self.aligned).sum()):,} known to conflict")
        return f"<Dataset {self.name}: {', '.join(about)}>"

    @property
    def size(self) -> int:
        """The side of the square that a network sees."""
        return self.input_size or self.images.shape[-1]

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def pixels(self) -> Tensor:
        """The images as N×H×W×C, the layout they are stored in."""
        return self.images.permute(0, 2, 3, 1)

    @cached_property
    def fingerprint(self) -> str:
        """Names this set of samples: ids, labels, classes, and a spread of up to 256 images."""
        digest = hashlib.sha256()
        digest.update("\0".join([*self.ids, "", *self.class_names]).encode())
        digest.update(self.labels.numpy().tobytes())
        spread = np.linspace(0, max(len(self) - 1, 0), min(len(self), 256)).astype(np.int64)
        digest.update(self.pixels[torch.from_numpy(spread)].contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def subset(self, rows: Tensor | slice, **changes) -> "Dataset":
        """The samples at ``rows``, in that order: a copy of them for indices, a view for a slice."""

        def take(values):
            return None if values is None else values[rows]

        ids = self.ids[rows] if isinstance(rows, slice) else [self.ids[i] for i in rows.tolist()]
        return replace(
            self,
            images=self.pixels[rows].permute(0, 3, 1, 2),
            labels=self.labels[rows],
            ids=ids,
            bias=take(self.bias),
            aligned=take(self.aligned),
            **changes,
        )

    def with_classes(self, class_names: Sequence[str]) -> "Dataset":
        """The same samples, with labels in another order of classes: a model's, say."""
        if list(class_names) == list(self.class_names):
            return self
        place = {name: i for i, name in enumerate(class_names)}
        used = [self.class_names[i] for i in self.labels.unique().tolist() if i >= 0]
        unknown = [name for name in used if name not in place]
        if unknown:
            raise UnskewError(
                f"{self.name} has samples of class {unknown[0]!r}, which is not one of {', '.join(class_names)}."
            )
        order = torch.tensor([place.get(name, -1) for name in self.class_names])
        labels = torch.where(self.labels < 0, -1, order[self.labels])
        table = self.group_weights
        if table is not None:
            moved = table.new_zeros(len(class_names), table.shape[1])
            moved[order[order >= 0]] = table[order >= 0]
            table = moved
        return replace(self, labels=labels, class_names=list(class_names), group_weights=table)


def association(labels: Tensor, bias: Tensor, num_classes: int, num_biases: int | None = None) -> Tensor:
    """Share of samples in each (label, bias) cell: classes × biases."""
    biases = num_biases or int(bias.max()) + 1
    cells = torch.bincount(labels * biases + bias, minlength=num_classes * biases)
    return cells.reshape(num_classes, biases).double() / len(labels)


def follows_shortcut(labels: Tensor, bias: Tensor, cells: Tensor) -> Tensor:
    """Whether each sample's (label, bias) occurs more often in training than if the two were independent.

    This is pointwise mutual information > 0. "The commonest bias of the class" would not do: in CelebA both
    classes are mostly women, and yet only blond hair is tied to them.
    """
    shortcut = cells > cells.sum(1, keepdim=True) * cells.sum(0, keepdim=True)
    known = bias < shortcut.shape[1]
    return shortcut[labels, bias.clamp(max=shortcut.shape[1] - 1)] & known

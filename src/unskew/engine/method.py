"""The contract between the loop and whatever is trained in it: debiasing methods, baselines, identifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.streams import Stream, Streams

if TYPE_CHECKING:
    from unskew.engine.engine import Engine

Loss = tuple[Tensor, dict[str, Tensor]]


@dataclass
class Samples:
    """What one stream brings to one step."""

    x: Tensor  # float images in [0, 1]
    y: Tensor  # class index
    index: Tensor  # which sample of the data set
    noise: Tensor  # uniform numbers, batch × the stream's ``noise``


@dataclass
class Batch:
    """One step's samples by stream, and the uniform numbers that the whole step shares."""

    streams: Mapping[str, Samples]
    noise: Tensor

    def __getitem__(self, stream: str) -> Samples:
        return self.streams[stream]

    def __contains__(self, stream: str) -> bool:
        return stream in self.streams


@dataclass(frozen=True)
class NoOptions:
    pass


class Method(nn.Module):
    """One way to train. Everything that must survive a restart is in ``state_dict``.

    A subclass names its options in ``Config`` (a frozen dataclass), says in ``needs`` whether it wants a
    partition or bias labels, and defines at least ``forward``. ``defaults`` are the settings it prefers.

    With ``recordable = True`` a class promises that every step is the same work on the device: the host decides and
    counts nothing, and tensors that last stay in their place. One GPU then replays a recording of the step, which
    is twice as fast for a small network. It is not inherited: a subclass makes its own promise.

    With ``coupled = True`` the samples of a batch act on each other (pairs, ranks, maxima), so that the gradient of a
    batch is not the mean of its halves': several processes then train on as many smaller batches.

    With ``changed = True`` it learns images that are mixed, or otherwise not of the kind that it will be asked about;
    what BatchNorm knows of them is then made anew in the end.

    Attributes
    ----------
    model : nn.Module
        What is evaluated, averaged, saved and exported.
    """

    Config: ClassVar[type] = NoOptions
    needs: ClassVar[frozenset[str]] = frozenset()
    defaults: ClassVar[Mapping[str, Any]] = {}
    recordable: ClassVar[bool] = False
    coupled: ClassVar[bool] = False
    changed: ClassVar[bool] = False
    stage1: ClassVar[str] = "ph"  # the identifier it takes its partition from, unless told otherwise
    source: ClassVar[str] = ""  # the publication, for `unskew methods`
    cost: ClassVar[str] = "1"  # of an epoch, against plain training

    def __init__(
        self, data: Dataset, partition: Partition | None, make_model: Callable[[], nn.Module], config: Any
    ) -> None:
        super().__init__()
        self.data, self.partition, self.config, self.make_model = data, partition, config, make_model
        self.model = make_model()

    def streams(self) -> Streams:
        """By default every sample once an epoch, as stream ``all``."""
        return Streams({"all": Stream(torch.arange(len(self.data)))}, samples=len(self.data))

    def param_groups(self) -> list[dict[str, Any]]:
        """As torch.optim takes them; a group may set its own ``lr`` or ``weight_decay``."""
        return [{"params": list(self.parameters())}]

    def forward(self, batch: Batch) -> Loss:
        """The loss, a mean over the batch, and metrics that stay on the device."""
        raise NotImplementedError(f"{type(self).__name__} must define forward(batch)")

    def train_step(self, engine: Engine, batch: Batch) -> Loss:
        """One update. Override for several optimizer steps or losses of their own."""
        loss, metrics = engine.forward(batch)
        engine.backward(loss)
        engine.step()
        return loss, metrics

    def after_step(self, engine: Engine, batch: Batch, out: Loss) -> None:
        """Bookkeeping by sample index."""

    def epoch_end(self, engine: Engine) -> None:
        """A pass over the data, extra metrics (``engine.log``), or the end of training (``engine.stop``)."""


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each sample: never silently a mean."""
    each = F.cross_entropy(logits, labels, reduction="none")
    assert each.shape == labels.shape, f"expected one loss a sample, got {tuple(each.shape)}"
    return each


def gce_losses(logits: Tensor, labels: Tensor, q: float) -> Tensor:
    """Generalised cross-entropy (Zhang and Sabuncu 2018) of each sample, as p^q·CE with p^q held fixed: the gradient is
    that of (1 − p^q)/q."""
    each = losses(logits, labels)
    return torch.exp(-q * each.detach()) * each

"""Which suspects break the shortcut, and which only carry a wrong label: stage 1 alone cannot tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unskew.data.corrections import WRONG
from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.fit import decide, fit
from unskew.engine.inference import predict_logits
from unskew.engine.looks import with_looks
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.engine.progress import Listener, listeners_for
from unskew.engine.random import generator
from unskew.engine.streams import Stream, Streams
from unskew.errors import UnskewError
from unskew.options import option

HELD, MOST_HELD = 0.2, 2000  # aligned samples kept to say what a wrong label looks like
BINS = 20
FEW = 20  # suspects: of so many the estimated share still has an sd of .12


class LabelJudge(Method):
    """Plain training on the aligned side, each sample under a share U(0, 1) of another's look.

    What is left to learn by is content, so the labels it believes of a suspect, which it never saw, are those that
    fit its content: of two classes that look and content speak for, a wrong label is neither.
    """

    @dataclass(frozen=True)
    class Config:
        looks: float = option(1.0, "the most of its look that a sample gives up", least=0, most=1)

    config: Config
    partition: Partition
    needs = frozenset({"partition"})
    defaults: ClassVar = {"epochs": 20}
    recordable = True
    coupled = True

    def streams(self) -> Streams:
        pool = (~self.partition.conflicting).nonzero().flatten()
        return Streams({"all": Stream(pool, noise=1)}, samples=len(pool))

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        images = with_looks(samples.x, samples.x.roll(1, 0), self.config.looks * samples.noise[:, 0])
        return losses(self.model(images), samples.y).mean(), {}


@dataclass(frozen=True, repr=False)
class LabelCheck:
    """How likely the label of each sample is wrong.

    Attributes
    ----------
    ids : sequence of str
    wrong : float tensor, N
        0 for samples that are no suspects, which are not asked about.
    share, error : float
        The estimated share of wrong labels among the suspects that were judged, and its standard error by chance.
    judged : int
        How many those are.
    """

    ids: Sequence[str]
    wrong: Tensor
    share: float
    error: float
    judged: int

    @property
    def marks(self) -> Mapping[str, str]:
        """The samples more likely mislabelled than not, as corrections for :func:`unskew.train`."""
        likely = (self.wrong > 0.5).tolist()
        return {name: WRONG for name, marked in zip(self.ids, likely) if marked}

    def __repr__(self) -> str:
        return f"<LabelCheck: about {self.share:.0%} of the suspects mislabelled, {len(self.marks):,} marked>"


def check_labels(
    data: Dataset,
    partition: Partition,
    *,
    model: str | nn.Module | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    listeners: Sequence[Listener] = (),
    **options: Any,
) -> LabelCheck:
    """Tell wrong labels among the suspects from samples that break the shortcut.

    A network learns content from the aligned samples, under borrowed looks, and says how well a suspect's label fits.
    How well a wrong label fits is known: aligned samples that it did not learn from are asked about every class but
    their own. What the suspects have in excess of that breaks the shortcut (two groups, as in false discovery rates:
    Efron 2001; Storey 2002). A suspect whose content the network cannot read counts as mislabelled; one of a class that
    has no aligned sample to learn from is not judged.

    Parameters
    ----------
    data : Dataset
        The training set.
    partition : Partition
        From :func:`unskew.identify`.
    model : str or nn.Module, optional
        The network to train; by default by image size.
    checkpoint : path, optional
        Written after every epoch, for ``resume``.
    **options
        Of the judge (``looks``) and of training (``epochs``, ``lr``, ``seed``…).

    Examples
    --------
    >>> import unskew
    >>> data = unskew.load("digits")
    >>> check = unskew.check_labels(data, unskew.identify(data, "oracle"), epochs=1)
    >>> len(check.wrong) == len(data)
    True
    """
    partition = partition.matched_to(data)
    if options.get("select", "last") != "last":
        raise UnskewError("check_labels ends with its last epoch: select is for stage 2.")
    job = decide("labels", LabelJudge, data, options, model, stage1=True)
    held = _held_out(partition, data.num_classes, job.settings.seed)
    seen = data.subset((~partition.conflicting & ~held).nonzero().flatten())
    if len(seen.labels.unique()) < 2 or not bool(held.any()):
        raise UnskewError(f"the partition ({partition.how}) leaves too few aligned samples to learn from.")
    suspects = (partition.conflicting & torch.isin(data.labels, seen.labels)).nonzero().flatten()
    if len(suspects) < FEW:
        raise UnskewError(f"the partition ({partition.how}) has {len(suspects)} suspects: too few to tell them apart.")
    path = Path(checkpoint) if checkpoint is not None else None
    shown = (*listeners_for(progress), *listeners)
    judge, engine = fit(job, seen, partition.matched_to(seen), path, resume, shown)
    suspected, reference = data.subset(suspects), data.subset(held.nonzero().flatten())
    found = _fits(predict_logits(judge.model, suspected, str(engine.device)))
    other = _fits(predict_logits(judge.model, reference, str(engine.device)))
    asked = torch.isin(torch.arange(data.num_classes), seen.labels).repeat(len(reference), 1)
    asked[torch.arange(len(reference)), reference.labels] = False  # its own class is no wrong label
    wrong, share = two_groups(found.gather(1, suspected.labels[:, None])[:, 0], other[asked])
    half = share / 2  # of the suspects, counted twice
    error = 2 * (half * (1 - half) / len(suspects)) ** 0.5
    return LabelCheck(data.ids, torch.zeros(len(data)).index_copy(0, suspects, wrong), share, error, len(suspects))


def _held_out(partition: Partition, classes: int, seed: int) -> Tensor:
    """The same share of each class's aligned samples."""
    held, random = torch.zeros(len(partition), dtype=torch.bool), generator(seed, "labels")
    share = min(HELD, MOST_HELD / max(int((~partition.conflicting).sum()), 1))
    for k in range(classes):
        inside = (~partition.conflicting & (partition.labels == k)).nonzero().flatten()
        held[inside[torch.randperm(len(inside), generator=random)[: int(share * len(inside))]]] = True
    return held


def _fits(logits: Tensor) -> Tensor:
    """How well each class fits each sample: by how much its logit passes the best of the others."""
    first, which = logits.topk(2, 1)
    best = first[:, :1].expand_as(logits).scatter(1, which[:, :1], first[:, 1:])
    return logits - best


def two_groups(found: Tensor, null: Tensor) -> tuple[Tensor, float]:
    """Which of ``found`` are of the kind of ``null``: the chance of each, and their share.

    Each number's rank in the null is uniform for its kind, and small for the other, which is larger. So the share is
    what the upper half of the ranks holds, twice; and the chance is the share over the density, which falls.

    Examples
    --------
    >>> import torch
    >>> null = torch.linspace(-1, 1, 1000)
    >>> chance, share = two_groups(torch.cat([null[::10], torch.full((100,), 2.0)]), null)
    >>> 0.4 < share < 0.6, bool(chance[0] > 0.9), bool(chance[-1] < 0.2)
    (True, True, True)
    """
    from sklearn.isotonic import isotonic_regression

    order = null.sort().values
    rank = 1 - torch.searchsorted(order, found).double() / len(order)
    share = min(1.0, 2 * (rank > 0.5).double().mean().item())
    bin_ = (rank * BINS).long().clamp(max=BINS - 1)
    density = bin_.bincount(minlength=BINS).numpy() * BINS / len(found)
    falling = torch.tensor(isotonic_regression(density, increasing=False).tolist(), dtype=torch.float64)
    return (share / falling[bin_].clamp(min=1e-9)).clamp(max=1).float(), share

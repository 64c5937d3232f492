"""Prediction history (PH): what a network never once gets right, while it is told not to mind, breaks the shortcut."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from unskew.data.dataset import Dataset
from unskew.data.partition import FEWEST, Partition, at_least
from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, losses
from unskew.engine.random import generator
from unskew.engine.streams import Stream, Streams
from unskew.identifiers.judged import Suspects, log_truth
from unskew.identifiers.valley import valley
from unskew.options import option

Cut = Literal["valley", "never"]
MOST = 60000.0  # what a half-precision number holds


class PredictionHistory:
    """Records predictions epoch by epoch; gives each sample's weight and, in the end, the partition.

    Works in any training loop, on whatever device ``labels`` is.

    Parameters
    ----------
    labels : int64 tensor, N
    window : int
        M: after every M epochs the weights change by −(1 − (Σ right in the last M + 1) / M), within [0, 1].
    class_names : sequence of str, optional

    Examples
    --------
    >>> import torch
    >>> history = PredictionHistory(torch.tensor([0, 1, 1]), window=2)
    >>> for epoch in range(2):
    ...     history.record(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 0]))
    ...     history.end_epoch()
    >>> history.weights.tolist()
    [1.0, 1.0, 0.5]
    >>> history.never_right().tolist()
    [False, False, True]
    """

    def __init__(self, labels: Tensor, window: int = 5, class_names: Sequence[str] | None = None) -> None:
        self.labels, self.window = labels, window
        self.class_names = class_names or [str(i) for i in range(int(labels.max()) + 1)]
        self.weights = torch.ones(len(labels), device=labels.device)
        self.predictions: list[Tensor] = []
        self.losses: list[Tensor] = []
        self._epoch, self._epoch_losses = self._unseen(), None

    def _unseen(self) -> Tensor:
        return torch.full_like(self.labels, -1, dtype=torch.int16)

    def record(self, index: Tensor, predictions: Tensor, losses: Tensor | None = None) -> None:
        """The predicted classes of the samples at ``index``, in this epoch, and their losses; the last word counts."""
        self._epoch[index] = predictions.to(self._epoch)
        if losses is not None:
            if self._epoch_losses is None:
                self._epoch_losses = torch.full_like(self.labels, torch.nan, dtype=torch.float16)
            self._epoch_losses[index] = losses.clamp(max=MOST).to(self._epoch_losses)

    def end_epoch(self) -> None:
        """Close the epoch; each window's end updates the weights."""
        self.predictions.append(self._epoch)
        if self._epoch_losses is not None:
            self.losses.append(self._epoch_losses)
        self._epoch, self._epoch_losses = self._unseen(), None
        if len(self.predictions) % self.window == 0:
            right = sum((p == self.labels).float() for p in self.predictions[-self.window :])
            self.weights = (self.weights - (1 - (right + 1) / self.window)).clamp(0, 1)

    def times_right(self) -> Tensor:
        """ŝ of each sample."""
        return torch.stack([p == self.labels for p in self.predictions]).sum(0)

    def never_right(self) -> Tensor:
        return self.times_right() == 0

    def cleared(self, cut: Cut = "valley") -> float:
        """The share of the suspects of M epochs ago that are suspects no more; 1 before the second window ends."""
        if len(self.predictions) < 2 * self.window:
            return 1.0
        before, now = self.conflicting(cut, len(self.predictions) - self.window)[0], self.conflicting(cut)[0]
        return int((before & ~now).sum()) / max(int(before.sum()), 1)

    def trust(self, epochs: int | None = None) -> Tensor:
        """Mean probability of each sample's label in the later half of the epochs: low for what is not learnt.

        Where no losses were recorded, the share of those epochs in which it was right. Epochs that did not see the
        sample do not count, and one that none saw is not trusted.
        """
        end = len(self.predictions) if epochs is None else epochs
        if len(self.losses) == len(self.predictions):
            return (
                torch.stack([torch.exp(-each.float()) for each in self.losses[end // 2 : end]]).nanmean(0).nan_to_num()
            )
        return torch.stack([(p == self.labels).float() for p in self.predictions[end // 2 : end]]).mean(0)

    def conflicting(self, cut: Cut = "valley", epochs: int | None = None) -> tuple[Tensor, Tensor]:
        """Who is, after so many epochs or all, and each sample's score.

        ``never``: who was not once right; scored by the share of wrong answers. ``valley``: who is trusted less than at
        the valley of all samples' trust, scored by 1 − trust; where there is no valley, again who was not once right.
        """
        right = torch.stack([p == self.labels for p in self.predictions[:epochs]])
        if cut == "never":
            return ~right.any(0), 1 - right.float().mean(0)
        trust = self.trust(epochs)
        at = valley(trust)
        return (trust < at) if at else ~right.any(0), 1 - trust

    def partition(self, data: Dataset | None = None, fewest: int = FEWEST, cut: Cut = "valley") -> Partition:
        """Widened, and said so, where fewer than ``fewest`` × classes conflict."""
        found, score = (each.cpu() for each in self.conflicting(cut))
        once_wrong = (self.times_right() < len(self.predictions)).cpu()
        conflicting, note = at_least(found, score, fewest * len(self.class_names), found | once_wrong)
        shared: dict[str, Any] = {
            "predictions": torch.stack(self.predictions, 1).cpu(),
            "losses": torch.stack(self.losses, 1).cpu() if len(self.losses) == len(self.predictions) else None,
            "suspects": torch.stack([self.conflicting(cut, k + 1)[0] for k in range(len(self.predictions))], 1).cpu(),
            "weight": self.weights.cpu(),
            "notes": (note,) if note else (),
        }
        if data is not None:
            return Partition.of(data, conflicting, score, "ph", **shared)
        ids = [str(i) for i in range(len(found))]
        return Partition(conflicting, score, self.labels.cpu(), ids, self.class_names, "ph", **shared)

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self.weights, "predictions": self.predictions, "losses": self.losses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights = state["weights"].to(self.labels.device)
        self.predictions = [p.to(self.labels.device) for p in state["predictions"]]
        self.losses = [each.to(self.labels.device) for each in state["losses"]]


class PH(Method):
    """Train for K = ``epochs`` epochs on mean(c·CE); after each, one pass over the data feeds the history.

    With ``folds`` = k there are k networks, and each learns all folds but its own: a sample is judged by the one that
    never saw it, and so cannot be right because it was learnt by heart. More epochs then cost no recall.
    """

    @dataclass(frozen=True)
    class Config(Suspects):
        window: int = option(5, "M: every M epochs the samples' weights are updated", least=1)
        cut: Cut = option(
            "valley", "conflicting: trusted less than at the valley of all samples' trust; never: not once right"
        )
        folds: int = option(1, "2 or more: a sample is judged by a network that it did not train", least=1)
        settled: float = option(
            0.0, "end once fewer than this share of the suspects was cleared in M epochs; 0: never", least=0, below=1
        )

    config: Config
    weights: Tensor
    fold: Tensor
    defaults: ClassVar = {"epochs": 10}
    recordable = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.others = nn.ModuleList(self.make_model() for _ in range(self.config.folds - 1))
        self.history = PredictionHistory(self.data.labels, self.config.window, self.data.class_names)
        self.register_buffer("weights", self.history.weights, persistent=False)
        self.register_buffer("fold", folds_of(self.data.labels, self.config.folds), persistent=False)

    @property
    def networks(self) -> list[nn.Module]:
        return [self.model, *self.others]

    def streams(self) -> Streams:
        if self.config.folds == 1:
            return super().streams()
        fold, count = self.fold.cpu(), self.config.folds
        learnt = [(fold != k).nonzero().flatten() for k in range(count)]
        return Streams({f"but {k}": Stream(pool) for k, pool in enumerate(learnt)}, samples=min(map(len, learnt)))

    def forward(self, batch: Batch) -> Loss:
        loss = torch.zeros((), device=self.weights.device)
        for network, samples in zip(self.networks, batch.streams.values()):
            each = losses(network(samples.x), samples.y)
            loss = loss + (self.weights[samples.index] * each).mean()
        return loss, {}

    def epoch_end(self, engine: Engine) -> None:
        predictions, each = self._judged(engine)
        self.history.record(torch.arange(len(self.data)), predictions, each)
        self.history.end_epoch()
        self.weights.copy_(self.history.weights)
        conflicting, _ = self.history.conflicting(self.config.cut)
        wrong = predictions != self.data.labels
        engine.log(train_accuracy=1 - wrong.float().mean().item(), conflicting=int(conflicting.sum()))
        log_truth(engine, conflicting, wrong, each)
        if self.history.cleared(self.config.cut) < self.config.settled:
            engine.stop()

    def _judged(self, engine: Engine) -> tuple[Tensor, Tensor]:
        """Prediction and loss of every sample, by a network that did not learn it where there are several."""
        found, row = [engine.judge(network) for network in self.networks], torch.arange(len(self.data))

        def own(answers: list[Tensor]) -> Tensor:
            return torch.stack(answers).cpu()[self.fold.cpu(), row]

        return own([each.predictions for each in found]), own([each.losses for each in found])

    def result(self) -> Partition:
        return self.history.partition(self.data, self.config.fewest, self.config.cut)

    def get_extra_state(self) -> dict[str, Any]:
        return self.history.state_dict()

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.history.load_state_dict(state)
        self.weights.copy_(self.history.weights)


def folds_of(labels: Tensor, count: int) -> Tensor:
    """Which fold each sample is in: every class dealt out evenly, the same way each time."""
    fold = torch.empty_like(labels)
    for label in labels.unique():
        inside = (labels == label).nonzero().flatten()
        order = torch.randperm(len(inside), generator=generator(count, "folds", int(label)))
        fold[inside[order]] = torch.arange(len(inside)) % count
    return fold

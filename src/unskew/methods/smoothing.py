"""A running mean of every sample's loss, and the largest of each class, at a cost that does not grow with the data."""

import torch
from torch import Tensor, nn

from unskew.engine.engine import Engine

FAN = 64  # values under one node
UNSEEN = -1.0  # below any loss


class SmoothedLosses(nn.Module):
    """Each sample's loss, smoothed over its visits; the first is taken as it is.

    The values are the leaves of a tree of maxima for each class: a batch changes its own leaves and the nodes above
    them, so the exact maximum over a whole class costs 64 comparisons a level and sample, never a pass over all.

    Parameters
    ----------
    labels : int64 tensor, N
    decay : float
        Weight of the past.
    """

    labels: Tensor
    place: Tensor
    fresh: Tensor

    def __init__(self, labels: Tensor, num_classes: int, decay: float) -> None:
        super().__init__()
        self.decay, self.num_classes = decay, num_classes
        order = labels.argsort(stable=True)
        counts = labels.bincount(minlength=num_classes)
        place = torch.empty_like(labels)
        place[order] = torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels[order]]
        self.register_buffer("labels", labels.clone(), persistent=False)
        self.register_buffer("place", place, persistent=False)
        self.levels = 0
        nodes = max(int(counts.max()), 1)
        while self.levels == 0 or nodes > 1:
            nodes = -(-nodes // FAN)
            self.register_buffer(f"level{self.levels}", torch.full((num_classes, nodes * FAN), UNSEEN))
            self.levels += 1
        self.register_buffer("fresh", torch.zeros_like(self.level(0), dtype=torch.bool), persistent=False)

    def level(self, k: int) -> Tensor:
        return getattr(self, f"level{k}")

    @torch.no_grad()
    def update(self, index: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
        """Take in a batch of losses; returns them smoothed, and the maximum over the class of each."""
        label, place = self.labels[index], self.place[index]
        before = self.level(0)[label, place]
        after = torch.where(before < 0, losses.float(), self.decay * before + (1 - self.decay) * losses.float())
        self.level(0)[label, place] = after
        self.fresh[label, place] = True
        for k in range(1, self.levels):
            place = torch.div(place, FAN, rounding_mode="floor")
            under = self.level(k - 1).view(self.num_classes, -1, FAN)[label, place]
            self.level(k)[label, place] = under.amax(1)
        return after, self.level(self.levels - 1).amax(1)[label]

    def share(self, engine: Engine) -> None:
        """At the end of an epoch: take over what other processes saw of the samples that were theirs."""
        theirs = engine.gather(torch.stack([self.level(0) * self.fresh, self.fresh.float()])[None])
        value, count = theirs.sum(0)
        self.level(0).copy_(torch.where(count > 0, value / count.clamp(min=1), self.level(0)))
        for k in range(1, self.levels):
            above = self.level(k - 1).view(self.num_classes, -1, FAN).amax(2)
            self.level(k)[:, : above.shape[1]] = above
        self.fresh.zero_()

"""Which samples each step draws: a pure function of (seed, epoch, step), the same on every rank."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.engine.random import generator


@dataclass(frozen=True)
class Stream:
    """One named flow of samples.

    Parameters
    ----------
    pool : int64 tensor
        The indices to draw from.
    replace : bool
        Draw with replacement; otherwise each epoch is a fresh permutation of the pool, or several.
    shuffle_of : str, optional
        Instead of a pool: the samples of another stream's batch, in another order, augmented alike.
    weights : tensor, optional
        How likely each of the pool is drawn, with ``replace``; by default all alike.
    noise : int
        How many uniform numbers each sample brings along, for whatever the method draws at random.
    """

    pool: Tensor | None = None
    replace: bool = False
    shuffle_of: str | None = None
    noise: int = 0
    weights: Tensor | None = None


@dataclass(frozen=True)
class Streams:
    """The streams of a method, ``samples`` long each epoch.

    ``noise`` uniform numbers are shared by the whole step. With ``parts`` > 1 an engine's epoch is only that
    fraction of a pass over the data: what must look at the model several times a pass counts so.
    """

    streams: Mapping[str, Stream]
    samples: int
    noise: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Draws:
    """What one stream draws in an epoch: everything is steps × batch (× numbers)."""

    index: Tensor
    augment: Tensor
    noise: Tensor

    def to(self, device: torch.device) -> "Draws":
        return Draws(*(numbers.to(device) for numbers in self._all()))

    def copy_(self, other: "Draws") -> None:
        for mine, numbers in zip(self._all(), other._all()):
            mine.copy_(numbers)

    def at(self, step: Tensor) -> "Draws":
        """One step's: batch (× numbers)."""
        return Draws(*(numbers.index_select(0, step)[0] for numbers in self._all()))

    def _all(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.index, self.augment, self.noise


@dataclass(frozen=True)
class Plan:
    """Everything random in an epoch."""

    streams: Mapping[str, Draws]
    noise: Tensor
    steps: int


AUGMENT_NUMBERS = 5


def batch_and_steps(streams: Streams, batch_size: int) -> tuple[int, int]:
    """Steps of equal size; the tail of each permutation is left out, and another tail in the next epoch."""
    a_pass = max(streams.samples // streams.parts, 1)
    batch = min(batch_size, a_pass)
    return batch, a_pass // batch


def make_plan(streams: Streams, batch_size: int, seed: int, epoch: int) -> Plan:
    batch, steps = batch_and_steps(streams, batch_size)
    shape = (steps, batch)
    drawn: dict[str, Draws] = {}
    for name, stream in streams.streams.items():
        noise = torch.rand(*shape, stream.noise, generator=generator(seed, "noise", name, epoch))
        if stream.shuffle_of is not None:
            twin = drawn[stream.shuffle_of]
            order = torch.rand(shape, generator=generator(seed, "order", name, epoch)).argsort(1)
            augment = twin.augment.gather(1, order[..., None].expand_as(twin.augment))
            drawn[name] = Draws(twin.index.gather(1, order), augment, noise)
            continue
        assert stream.pool is not None
        index = _draw(stream, name, steps * batch, streams.parts, seed, epoch).reshape(shape)
        augment = torch.rand(*shape, AUGMENT_NUMBERS, generator=generator(seed, "augment", name, epoch))
        drawn[name] = Draws(index, augment, noise)
    shared = torch.rand(steps, streams.noise, generator=generator(seed, "step noise", epoch))
    return Plan(drawn, shared, steps)


def _draw(stream: Stream, name: str, count: int, parts: int, seed: int, epoch: int) -> Tensor:
    pool = stream.pool
    assert pool is not None
    if stream.weights is not None:
        below = stream.weights.double().cumsum(0)
        drawn = torch.rand(count, generator=generator(seed, "draw", name, epoch), dtype=torch.float64) * below[-1]
        return pool[torch.searchsorted(below, drawn, right=True).clamp(max=len(pool) - 1)]
    if stream.replace:
        return pool[torch.randint(len(pool), (count,), generator=generator(seed, "draw", name, epoch))]
    whole, part = divmod(epoch, parts)
    random = generator(seed, "order", name, whole)
    times = -(-(part + 1) * count // len(pool))  # a pool too small for the epoch is gone through several times
    order = torch.cat([torch.randperm(len(pool), generator=random) for _ in range(times)])
    return pool[order[part * count : (part + 1) * count]]

"""A random stream for each image, and none for a batch: chunks and workers then change nothing."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

Generators = Sequence[np.random.RandomState]


def generator(seed: int, name: str, number: int) -> np.random.RandomState:
    """The stream of image ``number``.

    RandomState, because what it draws is promised never to change; Philox, because it starts at any key for free.
    """
    purpose = hashlib.sha256(f"{seed} {name}".encode()).digest()[:8]
    key = np.array([int.from_bytes(purpose, "little"), number], np.uint64)
    return np.random.RandomState(np.random.Philox(key=key))  # pyright: ignore[reportArgumentType]


def draw(generators: Generators, one: Callable[[np.random.RandomState], np.ndarray | float]) -> np.ndarray:
    """What ``one`` draws from each generator, stacked: all arithmetic after it is on the whole batch."""
    return np.stack([one(random) for random in generators])

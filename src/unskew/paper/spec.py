"""One run of a table: everything that decides it, and a key by which results already there are recognised."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Spec:
    """What to train (``method`` None: stage 1 alone), on what, with what partition and seed.

    With ``holdout`` that share of the training set is kept from stage 2, for choosing by (see ``validation``).
    """

    data: str
    method: str | None
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    identify: Mapping[str, Any] | None = None
    scale: str = "full"
    holdout: float = 0.0

    @property
    def key(self) -> str:
        return _digest(self.to_dict())

    @property
    def stage1_key(self) -> str | None:
        """Runs with the same one share a partition."""
        if self.identify is None:
            return None
        return _digest([self.data, dict(self.identify), self.seed, self.scale])

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        return values if self.holdout else {k: v for k, v in values.items() if k != "holdout"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Spec":
        return cls(**values)

    def __str__(self) -> str:
        stage1 = f", {self.identify['name']}" if self.identify else ""
        return f"{self.method or 'stage 1'} on {self.data}{stage1}, seed {self.seed}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

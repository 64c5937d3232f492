"""From options to a trained method: what stage 1 and stage 2 do alike."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.method import Method
from unskew.engine.progress import Listener, Watcher
from unskew.engine.recipes import recipe
from unskew.engine.settings import FREE, Settings
from unskew.errors import UnskewError
from unskew.models.factory import ModelFactory, model_factory
from unskew.options import build, split


@dataclass(frozen=True)
class Job:
    """A method with everything decided: its options, how it is trained, and what network."""

    name: str
    method: type[Method]
    config: Any
    settings: Settings
    make_model: ModelFactory

    def identity(self) -> dict[str, Any]:
        """What makes it this training and no other, but for the settings."""
        return {"method": self.name, **asdict(self.config), "network": self.make_model.describe()}

    def digest(self, data: Dataset) -> str:
        settings = {key: value for key, value in asdict(self.settings).items() if key not in FREE}
        text = json.dumps([data.fingerprint, self.identity(), settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Options and settings side by side, as they can be given again."""
        return {"name": self.name, **asdict(self.config), **asdict(self.settings)}


def decide(
    name: str,
    method: type[Method],
    data: Dataset,
    options: Mapping[str, Any],
    model: str | nn.Module | None = None,
    stage1: bool = False,
) -> Job:
    """Put together the method's defaults, the data set's recipe and the user's options, the later ones winning."""
    if len(data.labels.unique()) < 2:
        only = data.class_names[int(data.labels[0])] if len(data) else "none"
        raise UnskewError(f"{data.name} has a single class to learn, {only}: there is nothing to tell apart.")
    where = f"{name!r}"
    chosen = dict(options)
    if isinstance(model, str):
        chosen["model"] = model
    given = {key: value for key, value in chosen.items() if value is not None}
    values = {**method.defaults, **recipe(data.name, name, stage1), **given}
    for_method, for_settings = split(values, method.Config, Settings, where=where)
    config = build(method.Config, for_method, where)
    settings = build(Settings, for_settings, where).for_data(len(data), data.size)
    module = model if isinstance(model, nn.Module) else settings.model
    make_model = model_factory(module, data.num_classes, data.size, weights=settings.weights, stem=settings.stem)
    return Job(name, method, config, settings, make_model)


def fit(
    job: Job,
    data: Dataset,
    partition: Partition | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
    watcher: Watcher | None = None,
) -> tuple[Method, Engine]:
    identity = job.identity()
    if partition is not None:
        identity["partition"] = hashlib.sha256(partition.conflicting.numpy().tobytes()).hexdigest()[:16]
    engine = Engine(data, job.settings, identity, checkpoint, resume, listeners, watcher)
    method = engine.fit(lambda: job.method(data, partition, job.make_model, job.config))
    return method, engine

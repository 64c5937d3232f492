"""The one contract test for a method, ours or yours, on the CPU: ``check_method(MyMethod)``."""

import contextlib
import dataclasses
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.fit import Job, decide, fit
from unskew.engine.method import Batch, Method, Samples
from unskew.engine.settings import Settings
from unskew.engine.streams import make_plan


def tiny_data(samples: int = 48, size: int = 16, classes: int = 3) -> Dataset:
    """Noise with a class-coloured corner, which one sample in six has wrong: enough to exercise a method."""
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(samples) % classes
    conflicting = torch.arange(samples) % 6 == 5
    bias = torch.where(conflicting, (labels + 1) % classes, labels)
    pixels = torch.randint(0, 256, (samples, size, size, 3), generator=random, dtype=torch.uint8)
    pixels[:, : size // 2, : size // 2] = (bias * (200 // classes) + 30)[:, None, None, None].to(torch.uint8)
    names = [f"class {k}" for k in range(classes)]
    ids = [str(i) for i in range(samples)]
    return Dataset(pixels.permute(0, 3, 1, 2), labels, ids, names, bias=bias, aligned=~conflicting, name="tiny")


class TinyBackbone(nn.Module):
    """Without BatchNorm, so that half a batch and the other half add up to the whole."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, stride=2)
        self.out = nn.Linear(8, 8)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(self.convolution(images).relu().mean((2, 3)))


class WaitedForTheHost(AssertionError):
    pass


class HostSyncs(TorchDispatchMode):
    """Counts what would make a GPU's host wait, on any device: ``.item()``, ``nonzero``, indexing by a mask.

    ``.cpu()``, ``.tolist()`` and ``.numpy()`` of a tensor that is on the CPU already cannot be seen here.
    """

    WAITING = (
        "aten._local_scalar_dense", "aten.nonzero", "aten.masked_select", "aten.masked_scatter", "aten.equal",
        "aten._unique",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        indices = args[1] if name.startswith(("aten.index.", "aten.index_put", "aten._index_put")) else ()
        masks = [i for i in indices if i is not None and i.dtype == torch.bool]
        if masks or name.startswith(self.WAITING):
            self.waited(name)
        return func(*args, **(kwargs or {}))

    def waited(self, operator: str) -> None:
        self.count += 1


class NoHostSync(HostSyncs):
    """Raises instead."""

    def waited(self, operator: str) -> None:
        raise WaitedForTheHost(f"{operator} makes the host wait for the device in every step")


def check_method(method: type[Method], *, data: Dataset | None = None, **options: Any) -> None:
    """Assert that a method keeps the contract.

    It builds, steps and predicts; its options are a frozen dataclass apart from the settings; a saved state gives
    the same logits; a run killed in the middle of an epoch and resumed ends with the same weights; a step never
    waits for the host; one that is ``recordable`` leaves nothing in Python; what it does outside its networks keeps
    its precision under bfloat16; and, unless it is ``coupled``, two processes with half the batch each have, together,
    one process's gradient.

    Parameters
    ----------
    method : subclass of Method
    data : Dataset, optional
        What to train on; by default :func:`tiny_data`.
    **options
        Of the method or of training.

    Examples
    --------
    >>> from unskew import METHODS
    >>> check_method(METHODS["erm"])
    """
    data = data or tiny_data()
    chosen = {"epochs": 2, "batch_size": 16, "device": "cpu", "augment": "crop", **options}
    job = decide(method.__name__.lower(), method, data, chosen, TinyBackbone())
    partition = Partition.of(data, ~_known(data.aligned), (~_known(data.aligned)).float(), "oracle")
    partition = partition if "partition" in method.needs else None
    _check_options(method)
    _check_streams(job, data, partition)
    _check_step(job, data, partition)
    _check_bfloat16(job, data, partition)
    _check_resume(job, data, partition)
    if not method.coupled:
        _check_halves(job, data, partition)


def _known(values: Tensor | None) -> Tensor:
    assert values is not None, "check_method needs data that says which samples conflict"
    return values


def _check_options(method: type[Method]) -> None:
    assert dataclasses.is_dataclass(method.Config), "Config must be a dataclass"
    assert method.Config.__dataclass_params__.frozen, "Config must be frozen"  # type: ignore[attr-defined]
    both = {f.name for f in dataclasses.fields(method.Config)} & {f.name for f in dataclasses.fields(Settings)}
    assert not both, f"options that are settings already: {both}"


def _check_streams(job: Job, data: Dataset, partition: Partition | None) -> None:
    method = job.method(data, partition, job.make_model, job.config)
    plans = [make_plan(method.streams(), 16, seed=1, epoch=2) for _ in range(2)]
    for name in plans[0].streams:
        first, again = (plan.streams[name] for plan in plans)
        assert torch.equal(first.index, again.index), f"stream {name} is not a function of (seed, epoch)"
        assert first.index.min() >= 0, f"stream {name} draws samples that do not exist"
        assert first.index.max() < len(data), f"stream {name} draws samples that do not exist"


def _check_step(job: Job, data: Dataset, partition: Partition | None) -> None:
    method, engine, batch = _first_batch(job, data, partition)
    before = {name: value.clone() for name, value in method.model.state_dict().items()}
    where = _whereabouts(method)
    with NoHostSync():
        out = method.train_step(engine, batch)
        method.after_step(engine, batch, out)
    if vars(job.method).get("recordable", False):
        moved = [name for name, value in _whereabouts(method).items() if where.get(name) != value]
        assert not moved, f"recordable, but a step changes {moved} in Python: a replayed one would not"
    loss, metrics = out
    assert loss.ndim == 0, f"the loss must be one number, not {tuple(loss.shape)}"
    assert torch.isfinite(loss), "the loss of a first step is not finite"
    for name, value in metrics.items():
        assert isinstance(value, Tensor), f"metric {name} must stay a tensor on the device"
        assert value.ndim == 0, f"metric {name} must be one number"
    after = method.model.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before), "a step changed nothing in model"
    images = data.images[:5].float() / 255
    logits = method.model(images)
    assert logits.shape == (5, data.num_classes), f"model must give logits, not {tuple(logits.shape)}"
    twin = job.method(data, partition, job.make_model, job.config)
    twin.load_state_dict(method.state_dict())
    method.eval()
    twin.eval()
    assert torch.equal(twin.model(images), method.model(images)), "state_dict does not hold all of the model"


def _whereabouts(method: Method) -> dict[str, Any]:
    """What a replayed step would leave behind: plain values on the method, and where its tensors are."""
    found: dict[str, Any] = {}
    for name, module in method.named_modules():
        for key, value in vars(module).items():
            if isinstance(value, int | float | str | list | dict | tuple) and not key.startswith("_"):
                found[f"{name}.{key}"] = repr(value)
            elif isinstance(value, Tensor):
                found[f"{name}.{key}"] = value.data_ptr()
    for name, value in (*method.named_parameters(), *method.named_buffers()):
        found[name] = value.data_ptr()
    return found


def _check_bfloat16(job: Job, data: Dataset, partition: Partition | None) -> None:
    """Networks apart, a step's loss is the same: autocast rounds every matrix product to two digits, a loss's too."""
    found = []
    for precision in ("float32", "bfloat16"):
        settings = dataclasses.replace(job.settings, precision=precision)
        at = dataclasses.replace(job, settings=settings)
        method, engine, batch = _first_batch(at, data, partition)
        for network in method.children():
            for module in network.modules():
                module.forward = torch.autocast("cpu", enabled=False)(module.forward)
        found.append(method.train_step(engine, batch)[0])
    exact, rounded = (loss.item() for loss in found)
    assert math.isclose(exact, rounded, rel_tol=1e-5), (
        f"under bfloat16 the first loss is {rounded:.6g} instead of {exact:.6g}, though its networks had float32: do "
        "matrix products in `with torch.autocast(device.type, enabled=False)`, or without @"
    )


def _check_resume(job: Job, data: Dataset, partition: Partition | None) -> None:
    whole, _ = fit(job, data, partition)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        try:
            fit(job, data, partition, path, listeners=[_Interrupt()])
            raise AssertionError("the run ended before it could be interrupted: give it at least 2 epochs of 2 steps")
        except _Interrupted:
            pass
        resumed, _ = fit(job, data, partition, path, resume=True)
    for (name, a), b in zip(whole.state_dict().items(), resumed.state_dict().values()):
        same = torch.equal(a, b) if isinstance(a, Tensor) else _same(a, b)
        assert same, f"killed in the middle of an epoch and resumed, {name} ends otherwise"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and torch.equal(a, b)
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return a == b


def _check_halves(job: Job, data: Dataset, partition: Partition | None) -> None:
    """Gradients of the two halves of a batch, averaged as DDP does, against the whole's."""
    method, _, batch = _first_batch(job, data, partition)
    half = len(next(iter(batch.streams.values())).y) // 2

    def gradients(rows: slice) -> list[Tensor]:
        streams = {
            name: Samples(*(getattr(s, f.name)[rows] for f in dataclasses.fields(s)))
            for name, s in batch.streams.items()
        }
        method.zero_grad()
        method.forward(Batch(streams, batch.noise))[0].backward()
        return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in method.parameters()]

    whole = gradients(slice(None))
    halves = zip(gradients(slice(0, half)), gradients(slice(half, 2 * half)))
    for one, (a, b) in zip(whole, halves):
        assert torch.allclose(one, (a + b) / 2, rtol=1e-3, atol=1e-6), (
            "two processes with half the batch each do not add up to one: the loss must be a mean over samples"
        )


class _Interrupted(Exception):
    pass


class _Interrupt:
    """A listener that ends a run in the middle of its second epoch, as a kill would."""

    def start(self, stage: str, epochs: int, steps: int, done: int) -> None:
        self.left = steps + (steps + 1) // 2

    def step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise _Interrupted

    def epoch(self, stage: str, row: Mapping[str, Any]) -> None: ...
    def end(self) -> None: ...


def _first_batch(job: Job, data: Dataset, partition: Partition | None) -> tuple[Method, Engine, Batch]:
    """A method set up in an engine, just before its first step."""
    caught: list[tuple[Method, Engine, Batch]] = []

    class Caught(Exception):
        pass

    class Catching(job.method):
        def train_step(self, engine: Engine, batch: Batch):
            caught.append((self, engine, batch))
            raise Caught

    with contextlib.suppress(Caught):
        Engine(data, job.settings).fit(lambda: Catching(data, partition, job.make_model, job.config))
    method, engine, batch = caught[0]
    method.__class__ = job.method
    return method, engine, batch

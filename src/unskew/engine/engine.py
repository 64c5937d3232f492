"""The loop. It trains any Method, and knows none by name."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.engine.augment import batch_of
from unskew.engine.checkpoint import load_checkpoint, load_into, save_checkpoint
from unskew.engine.ema import Average
from unskew.engine.inference import logits_of, pick_device, uses_bf16
from unskew.engine.method import Batch, Loss, Method, Samples, losses
from unskew.engine.optim import lr_factor, make_optimizer, set_lr
from unskew.engine.processes import agree, fast_kernels, make_fabric, rank_rows, wait
from unskew.engine.progress import Clock, Listener
from unskew.engine.random import derive
from unskew.engine.settings import FREE, Settings
from unskew.engine.store import Store
from unskew.engine.streams import Draws, batch_and_steps, make_plan
from unskew.errors import UnskewError


@dataclass(frozen=True)
class Judgement:
    """A model's answer on every training sample."""

    predictions: Tensor
    losses: Tensor


class Engine:
    """Trains one method on one data set.

    Parameters
    ----------
    data : Dataset
    settings : Settings
        With nothing left to decide (``batch_size``, ``augment``).
    identity : dict
        What else makes this run this run (the method's options, the model, the partition): a checkpoint of
        another identity is refused.
    checkpoint : Path, optional
        Written at the start and after every epoch.
    """

    def __init__(
        self,
        data: Dataset,
        settings: Settings,
        identity: dict[str, Any] | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.data, self.settings, self.checkpoint = data, settings, checkpoint
        self.identity = {"data": data.fingerprint, **(identity or {})}
        self.identity |= {name: value for name, value in asdict(settings).items() if name not in FREE}
        self.resume = resume
        self.device = pick_device(settings.device)
        self.identity["precision"] = "bfloat16" if uses_bf16(self.device, settings.precision) else "float32"
        self.fabric = make_fabric(self.device, settings.precision)
        self.device = self.fabric.device
        self.listeners = listeners if self.fabric.is_global_zero else ()
        self.rows: list[dict[str, Any]] = []  # one of metrics an epoch
        self.epoch = 0
        self.clock = Clock()
        self.training_seconds, self.training_images = 0.0, 0
        self._logged: dict[str, Any] = {}
        self._stopped = False

    # What a method may call

    def forward(self, batch: Batch) -> Loss:
        """The method's ``forward``, through the one door that precision and processes wrap."""
        return self._wrapped(batch)

    def backward(self, loss: Tensor) -> None:
        self.fabric.backward(loss)

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def log(self, **metrics: Any) -> None:
        """Add to this epoch's row."""
        self._logged |= metrics

    def stop(self) -> None:
        """Make this epoch the last."""
        self._stopped = True

    def judge(self, model: torch.nn.Module) -> Judgement:
        """Prediction and loss of every training sample, in eval mode and without augmentation.

        Each process judges its share; the answer is gathered, the same everywhere.
        """
        share = rank_rows(len(self.data), self.fabric)
        labels = self.store.labels
        found = torch.zeros(share.length, 2, device=self.device)
        for part, logits in logits_of(model, self.store.pixels, self.device, share.rows, self.settings.precision):
            here = slice(part.start - share.rows.start, part.stop - share.rows.start)
            found[here, 0] = logits.argmax(1).float()
            found[here, 1] = losses(logits, labels[part])
        if self.fabric.world_size > 1:
            found = self.fabric.all_gather(found)
            assert isinstance(found, Tensor)
            found = found.flatten(0, 1)
        found = found[: len(self.data)]
        return Judgement(found[:, 0].long(), found[:, 1].contiguous())

    # The loop

    def fit(self, make_method: Callable[[], Method]) -> Method:
        """Build the method under the seed, and train it; returns it with ``model`` ready to use."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []), fast_kernels():
            try:
                return self._fit(make_method)
            except torch.OutOfMemoryError as error:
                batch = self.settings.resolved_batch_size
                raise UnskewError(
                    f"the {self.device.type} memory is not enough for batch size {batch} at {self.data.size} px: "
                    f"try --batch-size {max(batch // 2, 1)}, a smaller --size or a smaller --model."
                ) from error
            finally:
                for listener in self.listeners:
                    listener.end()

    def _fit(self, make_method: Callable[[], Method]) -> Method:
        torch.manual_seed(derive(self.settings.seed, "weights"))
        self.method = method = make_method()
        method.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        if self.settings.compile:
            method.compile(dynamic=False)
        self.raw_optimizer = make_optimizer(method.param_groups(), self.settings, self.device)
        self._wrapped, self.optimizer = self.fabric.setup(method, self.raw_optimizer)
        self.average = Average(method.model, self.settings.ema) if self.settings.ema else None
        self.store = Store(self.data, self.device)
        self.streams = method.streams()
        self.batch, self.steps = batch_and_steps(self.streams, self.settings.resolved_batch_size)
        if self.batch % self.fabric.world_size:
            raise UnskewError(f"batch size {self.batch} cannot be shared evenly by {self.fabric.world_size} processes.")
        checkpoint = self.checkpoint
        if self.resume and checkpoint is not None and agree(checkpoint.exists):
            self._restore(checkpoint)
            wait()
        else:
            self._save()
        for listener in self.listeners:
            listener.start(self.stage, self.epochs, self.steps, self.epoch)
        while self.epoch < self.epochs and not self._stopped:
            self._epoch(method)
        if self.average is not None:
            method.model = self.average.model.requires_grad_(True)
        return method

    @property
    def stage(self) -> str:
        return str(self.identity.get("method", type(self.method).__name__))

    @property
    def epochs(self) -> int:
        return self.settings.epochs * self.streams.parts

    def _epoch(self, method: Method) -> None:
        started = time.perf_counter()
        torch.manual_seed(derive(self.settings.seed, "layers", self.epoch, self.fabric.global_rank))
        plan = make_plan(self.streams, self.settings.resolved_batch_size, self.settings.seed, self.epoch)
        on_host = {name: self._share(drawn) for name, drawn in plan.streams.items()}
        draws = {name: drawn.to(self.device) for name, drawn in on_host.items()}
        noise = plan.noise.to(self.device)
        method.train()
        total: dict[str, Tensor] = {}
        broken = torch.full((), -1, device=self.device, dtype=torch.int64)
        for step in range(self.steps):
            set_lr(self.raw_optimizer, lr_factor(self.settings, (self.epoch * self.steps + step) / self._all_steps))
            batch = self._batch(draws, on_host, noise, step)
            loss, metrics = out = method.train_step(self, batch)
            method.after_step(self, batch, out)
            if self.average is not None:
                self.average.update()
            # Nothing here waits for the device: a loss that is not a number is looked for when the epoch ends.
            bad = ~torch.isfinite(loss.detach())
            broken = torch.where(bad & (broken < 0), step, broken)
            for name, value in {"loss": loss, **metrics}.items():
                value = value.detach()
                total[name] = total[name] + value if name in total else value
            for listener in self.listeners:
                listener.step()
        self._end_epoch(method, total, broken, started)

    def _end_epoch(self, method: Method, total: dict, broken: Tensor, started: float) -> None:
        norms = torch.stack(torch._foreach_norm(list(method.parameters())))  # pyright: ignore[reportPrivateImportUsage]
        broken = torch.where((broken < 0) & ~torch.isfinite(norms).all(), self.steps - 1, broken)
        first_bad = int(broken)
        if first_bad >= 0:
            kept = f"; the checkpoint of epoch {self.epoch} is kept" if self.checkpoint else ""
            raise UnskewError(
                f"the loss of {self.stage} turned NaN at epoch {self.epoch + 1}, "
                f"step {first_bad + 1}: lower its learning rate (now {self.settings.lr:g}){kept}."
            )
        means = {name: float(value) / self.steps for name, value in total.items()}
        seconds = time.perf_counter() - started
        images = self.steps * self.batch * len(self.streams.streams)
        self.training_seconds += seconds
        self.training_images += images
        self._logged = {}
        method.epoch_end(self)
        self.epoch += 1
        row = {"epoch": self.epoch, **means, **self._logged}
        row |= {"images_per_second": images / seconds, "seconds": self.clock.seconds()}
        self.rows.append(row)
        for listener in self.listeners:
            listener.epoch(self.stage, row)
        self._save()

    @property
    def _all_steps(self) -> int:
        return self.epochs * self.steps

    def _share(self, draws: Draws) -> Draws:
        """This process's rows of every batch."""
        each = self.batch // self.fabric.world_size
        mine = slice(self.fabric.global_rank * each, (self.fabric.global_rank + 1) * each)
        return Draws(*(t[:, mine] for t in (draws.index, draws.augment, draws.noise)))

    def _batch(self, draws: dict[str, Draws], on_host: dict[str, Draws], noise: Tensor, step: int) -> Batch:
        streams = {}
        for name, drawn in draws.items():
            index = drawn.index[step]
            pixels, rows = self.store.rows(index, on_host[name].index[step])
            x = batch_of(pixels, rows, self.settings.augment or "none", drawn.augment[step])
            streams[name] = Samples(x, self.store.labels[index], index, drawn.noise[step])
        return Batch(streams, noise[step])

    # Stopping and going on

    def _save(self) -> None:
        if self.checkpoint is None or not self.fabric.is_global_zero:
            return
        state = {
            "epoch": self.epoch,
            "stopped": self._stopped,
            "method": self.method.state_dict(),
            "optimizer": self.raw_optimizer.state_dict(),
            "average": self.average.state_dict() if self.average is not None else None,
            "rows": self.rows,
            "seconds": self.clock.seconds(),
            "training": [self.training_seconds, self.training_images],
        }
        save_checkpoint(self.checkpoint, self.identity, state)

    def _restore(self, path: Path) -> None:
        state = load_checkpoint(path, self.identity)
        load_into(self.method, state["method"], path)
        self.raw_optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.epoch, self._stopped, self.rows = state["epoch"], state["stopped"], state["rows"]
        self.clock.before = state["seconds"]
        self.training_seconds, self.training_images = state["training"]

    @property
    def images_per_second(self) -> float:
        return self.training_images / self.training_seconds if self.training_seconds else math.nan

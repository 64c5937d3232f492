"""The loop. It trains any Method, and knows none by name."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.engine.allocator import keeping_memory
from unskew.engine.augment import batch_of
from unskew.engine.batch_norm import plain_batch_norm, renew_statistics, sync_batch_norm
from unskew.engine.checkpoint import load_checkpoint, load_into, save_checkpoint
from unskew.engine.ema import Average
from unskew.engine.inference import pick_device, uses_bf16
from unskew.engine.judgement import Judgement, judge
from unskew.engine.memory import used_gb
from unskew.engine.method import Batch, Loss, Method, Samples
from unskew.engine.optim import load_optimizer, lr_factor, make_optimizer, set_lr
from unskew.engine.processes import agree, fast_kernels, make_fabric, wait
from unskew.engine.progress import Clock, Listener, Watcher
from unskew.engine.random import derive
from unskew.engine.recording import Replayed, own_stream
from unskew.engine.settings import FREE, Settings
from unskew.engine.store import Store
from unskew.engine.streams import Draws, Plan, batch_and_steps, make_plan
from unskew.engine.tally import Tally
from unskew.errors import UnskewError


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
    watcher : Watcher, optional
        Looks at the model after every epoch.
    """

    def __init__(
        self,
        data: Dataset,
        settings: Settings,
        identity: dict[str, Any] | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
        listeners: Sequence[Listener] = (),
        watcher: Watcher | None = None,
    ) -> None:
        self.data, self.settings, self.checkpoint, self.watcher = data, settings, checkpoint, watcher
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

    def backward(self, loss: Tensor, only: Iterable[torch.nn.Parameter] | None = None, again: bool = False) -> None:
        """Gradients, of all parameters or ``only`` some; another backward pass can follow where it goes ``again``."""
        self.fabric.backward(loss, inputs=None if only is None else list(only), retain_graph=again)

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def log(self, **metrics: Any) -> None:
        """Add to this epoch's row."""
        self._logged |= metrics

    def stop(self) -> None:
        """Make this epoch the last."""
        self._stopped = True

    def gather(self, tensor: Tensor) -> Tensor:
        """What every process has, one after another along the first dimension."""
        if self.fabric.world_size == 1:
            return tensor
        every = self.fabric.all_gather(tensor)
        assert isinstance(every, Tensor)
        return every.flatten(0, 1)

    def judge(self, model: torch.nn.Module) -> Judgement:
        """Prediction and loss of every training sample, in eval mode and without augmentation, the same everywhere."""
        return judge(self, model)

    # The loop

    def fit(self, make_method: Callable[[], Method]) -> Method:
        """Build the method under the seed, and train it; returns it with ``model`` ready to use."""
        rng = torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else [])
        with rng, fast_kernels(), own_stream(self.device), keeping_memory(self.device):
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
        self._renews = (self.settings.batch_norm or ("renewed" if method.changed else "trained")) == "renewed"
        method.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        if self.fabric.world_size > 1 and self.device.type == "cuda":
            sync_batch_norm(method)
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
        self.tally, self.epoch_plan = Tally(self.device), None
        self._replayed = Replayed(self._one_step, record=self._may_record(method))
        checkpoint = self.checkpoint
        if self.resume and checkpoint is not None and agree(checkpoint.exists):
            self._restore(checkpoint)
            wait()
        else:
            self._save()
        for listener in self.listeners:
            listener.start(self.stage, self.epochs, self.steps, self.epoch)
        try:
            while self.epoch < self.epochs and not self._stopped:
                self._epoch(method)
        finally:
            self.store.end()
        if self.average is not None:
            method.model = self.average.model.requires_grad_(True)
        plain_batch_norm(method)
        if self._renews:
            renew_statistics(method.model, self.data, self.device)
        return method

    def _may_record(self, method: Method) -> bool:
        """On one GPU that holds the images, if the very class of the method says so: see ``Method.recordable``."""
        here = self.device.type == "cuda" and self.store.on_device and self.fabric.world_size == 1
        return here and vars(type(method)).get("recordable", False)

    @property
    def stage(self) -> str:
        return str(self.identity.get("method", type(self.method).__name__))

    @property
    def epochs(self) -> int:
        return self.settings.epochs * self.streams.parts

    def _epoch(self, method: Method) -> None:
        started = time.perf_counter()
        torch.manual_seed(derive(self.settings.seed, "layers", self.epoch, self.fabric.global_rank))
        self._plan(make_plan(self.streams, self.settings.resolved_batch_size, self.settings.seed, self.epoch))
        method.train()
        self.tally.begin()
        for step in range(self.steps):
            done = (self.epoch * self.steps + step) / (self.epochs * self.steps)
            set_lr(self.raw_optimizer, lr_factor(self.settings, done))
            self._replayed()
            for listener in self.listeners:
                listener.step()
        self._end_epoch(method, started)

    def _one_step(self) -> None:
        batch = self._batch()
        out = self.method.train_step(self, batch)
        self.method.after_step(self, batch, out)
        if self.average is not None:
            self.average.update()
        self.tally.add(*out)

    def _end_epoch(self, method: Method, started: float) -> None:
        norms = torch.stack(torch._foreach_norm(list(method.parameters())))  # pyright: ignore[reportPrivateImportUsage]
        first_bad = self.tally.first_broken()
        if first_bad < 0 and not bool(torch.isfinite(norms).all()):
            first_bad = self.steps - 1
        if first_bad >= 0:
            kept = f"; the checkpoint of epoch {self.epoch} is kept" if self.checkpoint else ""
            raise UnskewError(
                f"the loss of {self.stage} turned NaN at epoch {self.epoch + 1}, "
                f"step {first_bad + 1}: lower its learning rate (now {self.settings.lr:g}){kept}."
            )
        means = self.tally.means(self.steps)
        seconds = time.perf_counter() - started
        images = self.steps * self.batch * len(self.streams.streams)
        self.training_seconds += seconds
        self.training_images += images
        self._logged = {}
        method.epoch_end(self)
        self.epoch += 1
        if self.watcher is not None:
            model = method.model if self.average is None else self.average.model
            shown = renew_statistics(copy.deepcopy(model), self.data, self.device) if self._renews else model
            self.log(**self.watcher.look(self.epoch, shown, str(self.device)))
        row = {"epoch": self.epoch, **means, **self._logged}
        row |= {"images_per_second": images / seconds, "seconds": self.clock.seconds()}
        row |= {} if (memory := used_gb(self.device)) is None else {"memory_gb": memory}
        self.rows.append(row)
        for listener in self.listeners:
            listener.epoch(self.stage, row)
        self._save()

    def _share(self, draws: Draws) -> Draws:
        """This process's rows of every batch."""
        each = self.batch // self.fabric.world_size
        mine = slice(self.fabric.global_rank * each, (self.fabric.global_rank + 1) * each)
        return Draws(*(t[:, mine] for t in (draws.index, draws.augment, draws.noise)))

    def _plan(self, plan: Plan) -> None:
        """Put an epoch's random numbers where the steps read them: always the same place."""
        mine = {name: self._share(drawn) for name, drawn in plan.streams.items()}
        self.store.begin({name: drawn.index for name, drawn in mine.items()})
        if self.epoch_plan is None:
            draws = {name: drawn.to(self.device) for name, drawn in mine.items()}
            self.epoch_plan = Plan(draws, plan.noise.to(self.device), plan.steps)
            return
        for name, drawn in mine.items():
            self.epoch_plan.streams[name].copy_(drawn)
        self.epoch_plan.noise.copy_(plan.noise)

    def _batch(self) -> Batch:
        assert self.epoch_plan is not None
        streams = {}
        now = {name: whole.at(self.tally.now) for name, whole in self.epoch_plan.streams.items()}
        images = self.store.step({name: drawn.index for name, drawn in now.items()})
        for name, drawn in now.items():
            x = batch_of(*images[name], self.settings.augment or "none", drawn.augment, self.data.size)
            streams[name] = Samples(x, self.store.labels[drawn.index], drawn.index, drawn.noise)
        return Batch(streams, self.epoch_plan.noise.index_select(0, self.tally.now)[0])

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
            "watcher": self.watcher.state_dict() if self.watcher is not None else None,
            "seconds": self.clock.seconds(),
            "training": [self.training_seconds, self.training_images],
        }
        save_checkpoint(self.checkpoint, self.identity, state)

    def _restore(self, path: Path) -> None:
        state = load_checkpoint(path, self.identity)
        load_into(self.method, state["method"], path)
        load_optimizer(self.raw_optimizer, state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        if self.watcher is not None:
            self.watcher.load_state_dict(state["watcher"])
        self.epoch, self._stopped, self.rows = state["epoch"], state["stopped"], state["rows"]
        self.clock.before = state["seconds"]
        self.training_seconds, self.training_images = state["training"]

    @property
    def images_per_second(self) -> float:
        return self.training_images / self.training_seconds if self.training_seconds else math.nan

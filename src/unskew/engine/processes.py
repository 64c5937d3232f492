"""Device, precision and processes, all from Fabric."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from unskew.engine.inference import uses_bf16

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def make_fabric(device: torch.device, precision: str) -> Fabric:
    """One process, or the place of this process among those that ``torchrun`` started."""
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.precision import MixedPrecision, Precision
    from lightning_fabric.strategies.ddp import DDPStrategy

    class Autocast(MixedPrecision):
        """Without Fabric's cast of whatever a batch holds: bfloat16 has 128 numbers between ½ and 1, and 1 among
        them, which uniform noise must not be."""

        def convert_input(self, data: Any) -> Any:
            return data

    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)  # it announces what was asked for
    kind = Autocast("bf16-mixed", device.type) if uses_bf16(device, precision) else Precision()
    local, world = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        devices = [device.index or 0] if device.type == "cuda" else 1
        fabric = Fabric(accelerator=device.type, devices=devices, plugins=kind)
    else:
        # Buffers are not broadcast: per-sample state lives in some, and BatchNorm's are per rank on purpose.
        strategy = DDPStrategy(broadcast_buffers=False)
        fabric = Fabric(
            accelerator=device.type, devices=local, num_nodes=world // local, strategy=strategy, plugins=kind
        )
    fabric.launch()
    return fabric


@dataclass(frozen=True)
class Share:
    rows: range
    length: int  # equal on every rank, so that shares can be gathered; the last one is padded


def rank_rows(samples: int, fabric: Fabric) -> Share:
    each = -(-samples // fabric.world_size)
    start = min(fabric.global_rank * each, samples)
    return Share(range(start, min(start + each, samples)), each)


@contextmanager
def fast_kernels() -> Iterator[None]:
    """The quickest convolutions, and TF32 for what is left in float32; the caller's choice comes back.

    A compiled step keeps what a second backward pass needs, which some methods make.
    """
    from torch._functorch import config

    benchmark, matmul = torch.backends.cudnn.benchmark, torch.get_float32_matmul_precision()
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    try:
        with config.patch(donated_buffer=False):
            yield
    finally:
        torch.backends.cudnn.benchmark = benchmark
        torch.set_float32_matmul_precision(matmul)


def agree(decide: Callable[[], bool]) -> bool:
    """The first process decides, before anything moves, and the others follow."""
    if not _grouped():
        return decide()
    answer = [decide() if is_main() else None]
    torch.distributed.broadcast_object_list(answer, src=0)
    return bool(answer[0])


def wait() -> None:
    """Until every process is here: what the first one wrote is then there for all."""
    if _grouped():
        torch.distributed.barrier()


def _grouped() -> bool:
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        return False
    if not torch.distributed.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        torch.distributed.init_process_group()
    return True


def is_main() -> bool:
    """Whether this process is the one that writes files and speaks."""
    return int(os.environ.get("RANK", 0)) == 0


def device_name(device: torch.device, precision: str) -> str:
    """``NVIDIA H200``, or the processor, the number of threads torch uses and the precision it has."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    kind = "bfloat16" if uses_bf16(device, precision) else "float32"
    return f"{device.type} ({platform.machine()}, {torch.get_num_threads()} threads, {kind})"

"""Device, precision and processes, all from Fabric."""

from __future__ import annotations

import logging
import os
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def make_fabric(device: torch.device, precision: str) -> Fabric:
    """One process, or the place of this process among those that ``torchrun`` started."""
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.ddp import DDPStrategy

    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)  # it announces what was asked for
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")
    bf16 = precision == "bfloat16" or (precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported())
    kind = "bf16-mixed" if bf16 else "32-true"
    local, world = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        devices = [device.index or 0] if device.type == "cuda" else 1
        fabric = Fabric(accelerator=device.type, devices=devices, precision=kind)
    else:
        # Buffers are not broadcast: per-sample state lives in some, and BatchNorm's are per rank on purpose.
        strategy = DDPStrategy(broadcast_buffers=False)
        fabric = Fabric(
            accelerator=device.type, devices=local, num_nodes=world // local, strategy=strategy, precision=kind
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


def is_main() -> bool:
    """Whether this process is the one that writes files and speaks."""
    return int(os.environ.get("RANK", 0)) == 0


def device_name(device: torch.device) -> str:
    """``NVIDIA H200``, or the processor and the number of threads torch uses."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} ({platform.machine()}, {torch.get_num_threads()} threads)"

"""How much memory training takes: what grows from epoch to epoch is a leak."""

from pathlib import Path

import torch

STATUS = Path("/proc/self/status")


def used_gb(device: torch.device) -> float | None:
    """The most that tensors ever took of a GPU; else what this process holds of the machine's memory.

    Pages of a memory-mapped file are not held: the system takes them back when it needs them. None where the system
    does not tell.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resident_gb().get("RssAnon")


def resident_gb() -> dict[str, float]:
    """``RssAnon``, what the process holds, and ``RssFile``, pages of files that are in memory for now."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return {}
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon", "RssFile")))
    return {name: int(value.split()[0]) * 1024 / 1e9 for name, value in fields.items()}

"""A model's outputs on a whole data set: large batches, no gradients, no augmentation."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from unskew.data.dataset import Dataset
from unskew.engine.augment import batch_of
from unskew.engine.prefetch import Prefetch

NO_DRAWS = torch.empty(0)
CPU_BF16 = ("avx512_bf16", "amx_bf16")  # elsewhere a CPU's bfloat16 is emulated, and slower than float32


def default_batch(size: int, device: torch.device) -> int:
    """Enough to fill the device: eight megapixels on a GPU (3 GB for a ResNet-18), a quarter on a CPU."""
    pixels = 8_000_000 if device.type == "cuda" else 250_000
    return max(pixels // size**2, 8)


def uses_bf16(device: torch.device, precision: str) -> bool:
    """``auto`` is bfloat16 where the device has it in hardware."""
    return has_bf16(device) if precision == "auto" else precision == "bfloat16"


def has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    # Before torch 2.11 a CPU cannot be asked, and stays with float32.
    capabilities = getattr(torch.cpu, "get_capabilities", dict)() if device.type == "cpu" else {}
    return any(capabilities.get(name, False) for name in CPU_BF16)


def pick_device(name: str) -> torch.device:
    from unskew.errors import UnskewError

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UnskewError(f"there is no device {name!r}: use auto, cpu, cuda, cuda:1 or mps.") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UnskewError(
            f"{name} was asked for, but torch sees {torch.cuda.device_count()} CUDA devices here: use --device cpu."
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UnskewError("mps was asked for, but torch does not have it here: use --device cpu.")
    return device


@torch.inference_mode()
def logits_of(
    model: nn.Module, pixels: Tensor, device: torch.device, rows: range, precision: str, size: int | None = None
) -> Iterator[tuple[slice, Tensor]]:
    """Float32 logits of ``pixels[rows]``, batch by batch, on the device; the model is left in its mode.

    ``size`` is the side of what the model sees, in the centre of each image.
    """
    batch = default_batch(size or pixels.shape[1], device)
    parts = [slice(start, min(start + batch, rows.stop)) for start in range(rows.start, rows.stop, batch)]
    was_training = model.training
    model.eval()
    try:
        with torch.autocast(device.type, torch.bfloat16, enabled=uses_bf16(device, precision)):
            for part, chunk in zip(parts, _chunks(pixels, parts, device)):
                index = torch.arange(len(chunk), device=device)
                yield part, model(batch_of(chunk, index, "none", NO_DRAWS, size)).float()
    finally:
        model.train(was_training)


def _chunks(pixels: Tensor, parts: list[slice], device: torch.device) -> Iterable[Tensor]:
    if pixels.device.type == "cpu" and device.type == "cuda":
        return Prefetch(pixels, device)([torch.arange(part.start, part.stop) for part in parts])
    return (pixels[part].to(device) for part in parts)


def predict_logits(model: nn.Module, data: Dataset, device: str = "auto") -> Tensor:
    """N × classes, on the CPU, in float32; the model is left where it was."""
    where = pick_device(device)
    home = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), where)
    model.to(where)
    try:
        found = logits_of(model, data.pixels, where, range(len(data)), "float32", data.size)
        return torch.cat([logits.cpu() for _, logits in found])
    finally:
        model.to(home)

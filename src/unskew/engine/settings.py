"""How a network is trained, whatever the method: one flat record, so that a run can be read in one place."""

from dataclasses import dataclass, replace
from typing import Literal

from unskew.options import option


@dataclass(frozen=True)
class Settings:
    """``None`` means: by the data (see ``for_data``)."""

    epochs: int = option(30, "passes over the data", least=1)
    batch_size: int | None = option(
        None, "samples a step (pairs, for mixing); by default about N/20, 16 to 256", least=1
    )
    optimizer: Literal["adam", "adamw", "sgd"] = option("adam", "adam, adamw, or sgd with Nesterov momentum .9")
    lr: float = option(1e-3, "learning rate", above=0)
    weight_decay: float = option(0.0, "weight decay", least=0)
    schedule: Literal["constant", "cosine", "one-cycle"] = option("constant", "learning rate over the run")
    warmup: float = option(0.0, "share of the run over which the learning rate rises", least=0, below=1)
    ema: float = option(0.0, "decay of averaged weights, which are then what is evaluated; 0: off", least=0, below=1)
    augment: Literal["none", "crop", "crop-flip", "resized-crop"] | None = option(
        None, "none; crop (pad 4); crop-flip (default to 64 px); resized-crop, with flip (default above)"
    )
    select: Literal["last", "val"] = option(
        "last", "weights of the last epoch, or val: of the best by the worst pseudo-group of the validation set"
    )
    batch_norm: Literal["trained", "renewed"] | None = option(
        None, "renewed: its statistics are taken anew from images as they are; by default after learning changed ones"
    )
    seed: int = option(0, "decides initial weights, order, augmentation and noise")
    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps")
    precision: Literal["auto", "float32", "bfloat16"] = option("auto", "bfloat16 autocast where the device has it")
    compile: bool = option(False, "compile the step with torch.compile")
    model: str | None = option(
        None, "cnn, resnet18, resnet50[-v1], timm:NAME, torchvision:NAME; by default by image size"
    )
    weights: str | None = option(
        None, "pretrained weights to start from: a .pth or .safetensors file, or torchvision:IMAGENET1K_V1"
    )
    stem: Literal["small", "photo"] | None = option(None, "how a ResNet begins: small to 64 px, photo above")

    def for_data(self, samples: int, size: int) -> "Settings":
        """Decide what was left open."""
        batch_size = self.batch_size or default_batch_size(samples, size)
        augment = self.augment or ("crop-flip" if size <= 64 else "resized-crop")
        return replace(self, batch_size=batch_size, augment=augment)

    @property
    def resolved_batch_size(self) -> int:
        assert self.batch_size is not None, "for_data() decides it"
        return self.batch_size


# Settings that may change between a run and its continuation without changing what it computes.
FREE = frozenset({"device", "compile"})


def default_batch_size(samples: int, size: int) -> int:
    """A power of two near N/20, so that small sets still get steps; at most 256, or 128 for photos."""
    largest = 256 if size <= 64 else 128
    return min(max(2 ** (max(samples // 20, 1).bit_length() - 1), 16), largest)

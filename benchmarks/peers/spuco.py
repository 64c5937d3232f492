"""SpuCo's LfF (BigML-CS-UCLA/SpuCo), with our network and a data set of PIL images, as its own hold them."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn

from benchmarks.peers.outside import Loop, importable, in_this_process, stand_ins
from benchmarks.setup import Setup
from benchmarks.turns import Turn
from unskew.data.dataset import Dataset

NEEDS = ("torchvision", "tqdm", "sklearn")
UNUSED = ("wandb", "wilds", "transformers", "umap", "pytorch_grad_cam", "matplotlib", "requests")


class Photos(torch.utils.data.Dataset):
    def __init__(self, data: Dataset) -> None:
        transforms = importlib.import_module("torchvision.transforms")
        crop, flip = transforms.RandomCrop(data.size, padding=4), transforms.RandomHorizontalFlip()
        self.transform = transforms.Compose([crop, flip, transforms.ToTensor()])
        self.images = [Image.fromarray(pixels) for pixels in data.pixels.numpy()]
        self.labels, self.num_classes = data.labels.tolist(), data.num_classes

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int):
        return self.transform(self.images[row]), self.labels[row]


def prepare(clone: Path) -> list[str]:
    """Returns what it was given stand-ins for."""
    importable(clone, "src/spuco", NEEDS)
    with stand_ins(UNUSED) as absent:
        importlib.import_module("spuco.end2end.lff")
    return absent


def run(setup: Setup, data: Dataset, make_model: Callable[[], nn.Module], epochs: int) -> Callable[[Turn], None]:
    def go(turn: Turn) -> None:
        module: Any = importlib.import_module("spuco.end2end.lff")
        module.tqdm = Loop(turn, setup.steps)
        if setup.where.type == "cpu":
            module.DataLoader = in_this_process
        biased, debiased = (make_model().to(setup.where) for _ in range(2))
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in (biased, debiased)]
        module.LFF(
            Photos(data), biased, debiased, setup.batch_size, *optimizers, num_epochs=epochs, device=setup.where
        ).train()

    return go

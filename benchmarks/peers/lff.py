"""The authors' release of LfF (alinlab/LfF): its training script, on a data set in its layout, with our network."""

import importlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from benchmarks.peers.outside import Loop, importable, in_this_process
from benchmarks.setup import Setup
from benchmarks.turns import Turn
from unskew.data.dataset import Dataset

NEEDS = ("sacred", "torchvision", "tensorboard", "tqdm")
TAG = "CorruptedCIFAR10-noise"  # the part before the dash chooses the release's augmentation: crop and flip


def prepare(clone: Path, folder: Path, data: Dataset) -> None:
    importable(clone, "train.py", NEEDS)
    attributes = np.stack([data.labels.numpy(), _known(data.bias)], 1)
    for split, rows in (("train", slice(None)), ("valid", slice(0, 64))):
        (folder / TAG / split).mkdir(parents=True)
        np.save(folder / TAG / split / "images.npy", data.pixels[rows].numpy())
        np.save(folder / TAG / split / "attrs.npy", attributes[rows])
    (folder / TAG / "attr_names.pkl").write_bytes(pickle.dumps(["label", "bias"]))


def _known(bias) -> np.ndarray:
    assert bias is not None
    return bias.numpy()


def run(folder: Path, setup: Setup, make_model: Callable[[], nn.Module], epochs: int) -> Callable[[Turn], None]:
    """Its first step, after which it validates, falls before the first window."""

    def go(turn: Turn) -> None:
        script: Any = importlib.import_module("train")
        steps = Loop(turn, setup.steps, before=1)
        script.tqdm = lambda items, **_: steps(items) if isinstance(items, range) else items
        script.get_model = lambda tag, classes: make_model()
        if setup.where.type == "cpu":
            script.DataLoader = in_this_process
        script.train.__wrapped__(
            main_tag="speed", dataset_tag=TAG, model_tag="", data_dir=str(folder), log_dir=str(folder / "log"),
            device=str(setup.where), target_attr_idx=0, bias_attr_idx=1, main_num_steps=1 + epochs * setup.steps,
            main_valid_freq=10**9, main_batch_size=setup.batch_size, main_optimizer_tag="Adam",
            main_learning_rate=1e-3, main_weight_decay=0.0,
        )  # fmt: skip

    return go

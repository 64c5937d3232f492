"""python examples/screen.py [--data corrupted-cifar10:0.99] [--data-dir DIR] [--rows …] [--seed 0] --out FOLDER

Screens ways to mix with a ResNet-18 of a quarter of the width, which two cores train in minutes. A fifth of the
training set, every class and side in proportion as stage 1 sees them, is held out to choose on without bias labels. One
line of JSON a row in FOLDER/lines.jsonl; the partition is kept there too, and shared by all rows.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from learned_amplitude import LearnedAmplitude
from torch import Tensor, nn

import unskew
from unskew.data.partition_file import load_partition
from unskew.models.pooling import spatial_mean
from unskew.models.resnet import BasicBlock
from unskew.selection import with_sides
from unskew.validation import hold_out_rows, validate

MIX: dict[str, Any] = {"weighted_erm": False, "zeta": 1.0}
ROWS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain training": ("erm", {}),
    "l-mix as written": ("lmix", {}),
    **{
        f"s-mix, Beta({a:g}, {b:g}), amplitude {share:g}": (
            "smix", {**MIX, "beta_a": a, "beta_b": b, "amplitude": share}
        )
        for a, b in ((0.5, 2.0), (1.0, 1.0), (1.0, 2.0), (2.0, 1.0))
        for share in (0.0, 1.0)
    },
    "share of looks learned, Beta(1, 2)": (LearnedAmplitude, {"beta_a": 1.0, "beta_b": 2.0}),
}  # fmt: skip
TRAINING: dict[str, Any] = {"optimizer": "sgd", "lr": 0.1, "schedule": "one-cycle", "weight_decay": 1e-3}


class Slim(nn.Module):
    """A ResNet-18 with the 3×3 stem, of 16 to 128 channels."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        layers: list[nn.Module] = [stem, nn.BatchNorm2d(width), nn.ReLU()]
        for planes, before, stride in ((1, 1, 1), (2, 1, 2), (4, 2, 2), (8, 4, 2)):
            layers += [
                BasicBlock(before * width, planes * width, stride),
                BasicBlock(planes * width, planes * width, 1),
            ]
        self.layers = nn.Sequential(*layers)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        return spatial_mean(self.layers(images))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="corrupted-cifar10:0.99")
    parser.add_argument("--data-dir")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--stage1-epochs", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    splits = unskew.load_splits(given.data, given.data_dir)
    torch.manual_seed(given.seed)  # decides Slim's weights
    settings = {"seed": given.seed, "model": Slim(), "batch_size": 256}
    kept = given.out / f"{splits.train.name.replace(':', '-')}-{given.seed}.csv"
    if not kept.exists():
        given.out.mkdir(parents=True, exist_ok=True)
        unskew.identify(splits.train, "ph", epochs=given.stage1_epochs, **settings).save(kept)
    partition = load_partition(kept, splits.train)
    rest, rows = hold_out_rows(splits.train, partition, 0.2, given.seed)
    train, truth = splits.train.subset(rest), splits.train.subset(rows)
    held = with_sides(truth, partition.conflicting[rows])
    for name in given.rows:
        method, options = ROWS[name]
        run = unskew.train(
            train, partition, method, test=splits.test, epochs=given.epochs, **settings, **TRAINING, **options
        )
        chosen_by = validate(run.model, held, truth=truth).to_dict()
        note = f"a quarter-width ResNet-18 (examples/screen.py): {name}"
        line = {"note": note, **json.loads(run.result.to_json()), "validation": chosen_by}
        with open(given.out / "lines.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        print(name, run, f"balanced validation {chosen_by['balanced']:.1%}", flush=True)


if __name__ == "__main__":
    main()

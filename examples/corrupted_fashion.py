"""python examples/corrupted_fashion.py FOLDER OUT.npz [--ratio .99] [--train 20000] [--test 5000]: a set for two cores.

Fashion-MNIST (the four idx …-ubyte.gz files in FOLDER; Debian has them as dataset-fashion-mnist), each garment in a
random colour on grey, 32 px, and each class with a corruption of its own by the rule of Corrupted CIFAR-10. Then, say,
`unskew train OUT.npz --model cnn --method smix --method.looks 1 --out run`.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np

from unskew.data.corrupted_cifar10 import TYPES, biases
from unskew.data.corruptions import corrupt


def read(folder: Path, part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    def raw(kind: str, header: int) -> np.ndarray:
        file = next(folder.glob(f"{part}-{kind}-idx?-ubyte.gz"))
        return np.frombuffer(gzip.decompress(file.read_bytes()), np.uint8, offset=header)

    return raw("images", 16).reshape(-1, 28, 28)[:count], raw("labels", 8)[:count].astype(np.int64)


def coloured(grey: np.ndarray, seed: int) -> np.ndarray:
    """N×32×32×3: the colour says nothing of the class."""
    random = np.random.RandomState(seed)
    ink = random.uniform(0.3, 1, (len(grey), 1, 1, 3))
    ground = random.uniform(0.1, 0.5, (len(grey), 1, 1, 1))
    cloth = np.pad(grey, ((0, 0), (2, 2), (2, 2)))[..., None] / 255
    return (255 * (ground + (ink - ground) * cloth).clip(0, 1)).astype(np.uint8)


def corrupted(images: np.ndarray, bias: np.ndarray, seed: int) -> np.ndarray:
    out = np.empty_like(images)
    for number, name in enumerate(TYPES["type0"]):
        here = np.flatnonzero(bias == number)
        out[here] = corrupt(images[here], name, seed=seed, start=len(images) * number)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ratio", type=float, default=0.99)
    parser.add_argument("--train", type=int, default=20000)
    parser.add_argument("--test", type=int, default=5000)
    given = parser.parse_args()
    parts = []
    for seed, (part, count, ratio) in enumerate((("train", given.train, given.ratio), ("t10k", given.test, 0.1))):
        grey, labels = read(given.folder, part, count)
        bias = biases(labels, ratio)
        split = np.full(len(labels), "train" if part == "train" else "test")
        parts.append((corrupted(coloured(grey, seed), bias, seed), labels, bias, split))
    images, labels, bias, split = (np.concatenate(each) for each in zip(*parts))
    np.savez(given.out, images=images, labels=labels, bias=bias, split=split)


if __name__ == "__main__":
    main()

"""Small sets in the layouts in which Waterbirds, CelebA and BAR are published."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

BIRDS = ("001.Black_footed_Albatross", "016.Painted_Bunting")
# (y, place, split) of each photo: every group in every split.
GROUPS = [(y, place, split) for split in (0, 1, 2) for y in (0, 1) for place in (0, 1) for _ in range(2)]
ATTRIBUTES = ("5_o_Clock_Shadow", "Blond_Hair", "Male", "Young")


def photo(path: Path, size: tuple[int, int], seed: int, **options) -> Path:
    """Four blobs of colour: no two photos are alike, and JPEG leaves them much as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blobs = np.random.RandomState(seed).randint(0, 256, (2, 2, 3), np.uint8)
    Image.fromarray(blobs).resize(size, Image.Resampling.BICUBIC).save(path, **options)
    return path


def waterbirds(root: Path, groups: Sequence[tuple[int, int, int]] = GROUPS) -> Path:
    rows = [["img_id", "img_filename", "y", "split", "place", "place_filename"]]
    for number, (y, place, split) in enumerate(groups, 1):
        name = f"{BIRDS[y]}/Bird_{number:04d}.jpg"
        photo(root / name, (90, 60), number)
        rows.append([str(number), name, str(y), str(split), str(place), "/o/ocean/00000.jpg"])
    write_csv(root / "metadata.csv", rows)
    return root


def celeba(root: Path, layout: str, groups: Sequence[tuple[int, int, int]] = GROUPS) -> Path:
    """``layout``: kaggle (.csv, nested photos), torchvision (.txt), original (Anno/, Eval/, Img/) or jtt (merged)."""
    names = [f"{number:06d}.jpg" for number in range(1, len(groups) + 1)]
    attributes = [[1, 2 * y - 1, 2 * male - 1, -1] for y, male, _ in groups]
    splits = [split for *_, split in groups]
    places = {
        "kaggle": (".", ".", "img_align_celeba/img_align_celeba"),
        "torchvision": (".", ".", "img_align_celeba"),
        "original": ("Anno", "Eval", "Img/img_align_celeba"),
        "jtt": ("data", "", "data/img_align_celeba"),
    }
    at, of_splits, photos = places[layout]
    for number, name in enumerate(names):
        photo(root / photos / name, (178, 218), number)
    if layout == "jtt":
        header = ["", "image_id", *ATTRIBUTES, "split"]
        rows = [[i, name, *values, split] for i, (name, values, split) in enumerate(zip(names, attributes, splits))]
        write_csv(root / at / "metadata.csv", [header, *rows])
    elif layout == "kaggle":
        rows = [[name, *values] for name, values in zip(names, attributes)]
        write_csv(root / at / "list_attr_celeba.csv", [["image_id", *ATTRIBUTES], *rows])
        write_csv(root / of_splits / "list_eval_partition.csv", [["image_id", "partition"], *zip(names, splits)])
    else:
        lines = [str(len(names)), " ".join(ATTRIBUTES) + " "]
        lines += [f"{name} " + " ".join(f"{value:2d}" for value in values) for name, values in zip(names, attributes)]
        write_lines(root / at / "list_attr_celeba.txt", lines)
        partition = [f"{name} {split}" for name, split in zip(names, splits)]
        write_lines(root / of_splits / "list_eval_partition.txt", partition)
    return root


def bar(root: Path, each: int = 2) -> Path:
    """With a PNG in palette mode, and a grey one, called .jpg."""
    actions = ("climbing", "diving", "fishing", "pole vaulting", "racing", "throwing")
    for split in ("train", "test"):
        for k, action in enumerate(actions):
            for i in range(each):
                photo(root / split / f"{action}_{i}.jpg", (300, 280), 100 * k + i + (split == "test") * 50)
    palette = Image.open(root / "test/diving_0.jpg").convert("P")
    palette.save(root / "test/diving_0.jpg", format="PNG")
    photo(root / "test/racing_0.jpg", (300, 280), 7, format="PNG")
    (root / "README.md").write_text("BAR")
    return root


def write_csv(path: Path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")

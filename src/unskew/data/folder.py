"""A folder of class folders, or of train/ val/ test/ folders that hold class folders."""

import os
from pathlib import Path

import numpy as np

from unskew.data.listing import Listing, joined
from unskew.data.splits import split_name
from unskew.errors import UnskewError

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


def read(root: Path, labelled: bool) -> Listing:
    name, where = root.resolve().name, f"{root}/"
    splits, others = _splits(root)
    if not splits:
        return _part(root, root, labelled)
    notes = [f"{where} has splits, so these folders beside them were left out: {', '.join(others)}"] if others else []
    return joined({split: _part(path, root, labelled) for split, path in splits.items()}, name, where, notes)


def read_one(path: Path) -> Listing:
    """A single image, to predict."""
    return Listing(name=path.name, where=str(path), images=[path], ids=[path.name])


def _part(folder: Path, root: Path, labelled: bool) -> Listing:
    """One split, or the whole source; ids are paths below ``root``."""
    where = f"{folder}/"
    images, labels, notes = [], [], []
    if labelled:
        empty = []
        for path in _subfolders(folder):
            found = _images_under(path)
            images += found
            labels += [path.name] * len(found)
            if not found:
                empty.append(path.name)
        stray = len([entry for entry in _visible(folder) if is_image(entry.name)])
        if stray and not images:
            raise UnskewError(
                f"{where} holds {stray} images but no class folders: put the images of each class in one folder."
            )
        if stray:
            notes.append(f"{stray} images directly in {where} belong to no class and were left out")
        if empty:
            notes.append(f"folders without images in {where} were left out: {', '.join(empty)}")
    else:
        images = _images_under(folder)
    if not images:
        raise UnskewError(f"{where} holds no images ({', '.join(sorted(SUFFIXES))}).")
    return Listing(
        name=root.resolve().name,
        where=where,
        images=images,
        ids=[path.relative_to(root).as_posix() for path in images],
        labels=np.array(labels) if labelled else None,
        notes=notes,
    )


def _splits(root: Path) -> tuple[dict[str, Path], list[str]]:
    """The split folders, and what lies beside them; none where these are classes.

    A class can be called "train" too, beside "car" and "bus": then there is no test or val folder.
    """
    splits: dict[str, Path] = {}
    others = []
    for path in _subfolders(root):
        split = split_name(path.name)
        if split is None:
            others.append(path.name)
        elif split in splits:
            raise UnskewError(f"{root}/ holds both {splits[split].name}/ and {path.name}/: keep one of them.")
        else:
            splits[split] = path
    if others and not ("train" in splits and len(splits) > 1 and _subfolders(splits["train"])):
        return {}, []
    return splits, others


def _images_under(folder: Path, above: tuple[Path, ...] = ()) -> list[Path]:
    """Every image at any depth, sorted; a link back to a folder above is not followed round and round."""
    here = folder.resolve()
    if here in above:
        return []
    found = []
    for entry in _visible(folder):
        if entry.is_dir():
            found += _images_under(folder / entry.name, (*above, here))
        elif is_image(entry.name):
            found.append(folder / entry.name)
            if _not_text(entry.name):
                raise UnskewError(f"{folder}/ holds a file whose name is not UTF-8, {entry.name!a}: rename it.")
    return found


def _not_text(name: str) -> bool:
    """How Python shows bytes that are not UTF-8: such a name cannot be written into any of our files."""
    return any("\ud800" <= letter <= "\udfff" for letter in name)


def _visible(folder: Path) -> list[os.DirEntry[str]]:
    """In the order of their names. A folder's listing says what is a folder: nothing is asked for file by file."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise UnskewError(f"{folder}/ cannot be read ({error.strerror}).") from error


def _subfolders(folder: Path) -> list[Path]:
    return [folder / entry.name for entry in _visible(folder) if entry.is_dir()]


def is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES

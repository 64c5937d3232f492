"""``corrupted-cifar10:RATIO[:type1][:SEVERITY]``: CIFAR-10 in which each class comes with its own corruption.

Nam et al., "Learning from Failure: Training Debiased Classifier from Biased Classifier", NeurIPS 2020. A set that
was made elsewhere is used where there is one; otherwise it is made here from CIFAR-10, once.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from unskew.data import cache, cifar10, corruptions
from unskew.data.cifar10 import CLASSES, SIDE, Cifar10, Found
from unskew.data.listing import Listing, joined
from unskew.data.mapping import map_file
from unskew.data.parallel import each, watched
from unskew.errors import UnskewError, nearest
from unskew.files import replacing, write_text

SET = "corrupted-cifar10"
VERSION = 1  # raise it when the same recipe would give another set
SEED = 0  # of the noise; a set that goes by name is the same for everybody
TEST_RATIO = 0.1  # every corruption equally often
CHUNK = 250  # images corrupted at a time
# The corruption that class k comes with.
TYPES = {
    "type0": (
        "snow", "frost", "fog", "brightness", "contrast", "spatter", "elastic", "jpeg", "pixelate", "saturate",
    ),
    "type1": (
        "gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "gaussian_blur", "defocus_blur",
        "glass_blur", "motion_blur", "zoom_blur", "original",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    ratio: float
    type: str = "type0"
    severity: int = 5

    @property
    def name(self) -> str:
        kind = "" if self.type == "type0" else f":{self.type}"
        return f"{SET}:{self.ratio}{kind}{'' if self.severity == 5 else f':{self.severity}'}"


def read(argument: str, data_dir: Path | None, labelled: bool) -> Listing:
    recipe = parse(argument)
    places = cifar10.places(data_dir)
    return _lff(recipe, places, labelled) or _disent(recipe, places, labelled) or _built(recipe, data_dir, labelled)


def parse(text: str) -> Recipe:
    given = f"{SET}:{text}" if text else SET
    ratio, *options = text.split(":")
    try:
        share = float(ratio)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise UnskewError(
            f"{given}: the share of images with their class's own corruption lies between 0 and 1, as in {SET}:0.95."
        )
    type_ = options.pop(0) if options and not options[0].isdigit() else "type0"
    if type_ not in TYPES:
        raise UnskewError(f"{given}: unknown type {type_!r}; {nearest(type_, TYPES)}")
    severity = options.pop(0) if options else "5"
    if options or severity not in ("1", "2", "3", "4", "5"):
        raise UnskewError(f"{given}: after the type comes the severity, 1 to 5, and then nothing.")
    return Recipe(share, type_, int(severity))


def biases(labels: np.ndarray, ratio: float) -> np.ndarray:
    """Which corruption each image gets: its class's own with ``ratio``, the others evenly.

    Within a class, the images in their order are cut at round(n · cumulated shares), in the order of the
    corruptions.
    """
    own = np.eye(len(CLASSES))
    shares = ratio * own + (1 - ratio) / (len(CLASSES) - 1) * (1 - own)
    out = np.empty(len(labels), np.int64)
    for label, share in enumerate(shares):
        rows = np.flatnonzero(labels == label)
        cuts = np.round(len(rows) * np.cumsum(share))
        out[rows] = np.searchsorted(cuts, np.arange(len(rows)), side="right")
    return out


def _built(recipe: Recipe, data_dir: Path | None, labelled: bool) -> Listing:
    found = cifar10.find(data_dir)
    frost = corruptions.frost_source() if "frost" in TYPES[recipe.type] else None
    made = _made(recipe, found, frost)
    notes = [f"made from {found.where.name}", *cifar10.about(made, found.where)]
    if frost is not None:
        notes.append(f"frost: {frost}")
    bias = _all_biases(recipe, made)
    return Listing(
        name=recipe.name,
        where=recipe.name,
        images=made.images,
        ids=cifar10.numbered(recipe.name, made),
        labels=made.labels if labelled else None,
        bias=bias if labelled else None,
        aligned=bias == made.labels if labelled else None,
        split=cifar10.splits(made),
        class_names=CLASSES if labelled else None,
        notes=notes,
    )


def _all_biases(recipe: Recipe, cifar: Cifar10) -> np.ndarray:
    train, test = cifar.labels[: cifar.train], cifar.labels[cifar.train :]
    return np.concatenate([biases(train, recipe.ratio), biases(test, TEST_RATIO)])


def _made(recipe: Recipe, found: Found, frost: str | None) -> Cifar10:
    """From the cache, or made and put there. The labels lie beside the images, so that CIFAR-10 is not read again."""
    versions = {"code": VERSION, "corruptions": corruptions.VERSION}
    key = {**asdict(recipe), "seed": SEED, "frost": frost, **versions, "source": found.digest()}
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
    stem = cache.folder() / f"{SET}-{digest}"
    kept = _kept(stem)
    if kept is not None:
        return kept
    cifar = found.read()
    made = Cifar10(_corrupted(recipe, cifar), cifar.labels, cifar.train)
    labels = "".join(map(str, cifar.labels.tolist()))
    try:
        with replacing(stem.with_suffix(".npy")) as temporary, open(temporary, "wb") as file:
            np.save(file, made.images)
        write_text(stem.with_suffix(".json"), json.dumps({**key, "train": cifar.train, "labels": labels}, indent=1))
    except UnskewError as error:
        warnings.warn(f"{recipe.name} is not kept for the next run: {error}", stacklevel=2)
    return made


def _kept(stem: Path) -> Cifar10 | None:
    """What an earlier run left, if it is whole: mapped, so that loading takes no time and no memory."""
    try:
        sidecar = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        train, digits = sidecar["train"], sidecar["labels"]
        labels = np.frombuffer(digits.encode(), np.uint8).astype(np.int64) - ord("0")
        images = map_file(stem.with_suffix(".npy"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None
    whole = images.shape == (len(labels), SIDE, SIDE, 3) and images.dtype == np.uint8
    return Cifar10(images, labels, train) if whole else None


def _corrupted(recipe: Recipe, cifar: Cifar10) -> np.ndarray:
    """An image's noise hangs on its number in CIFAR-10, so it looks the same at every ratio that corrupts it alike."""
    bias = _all_biases(recipe, cifar)
    tasks = [
        (name, rows[start : start + CHUNK])
        for corruption, name in enumerate(TYPES[recipe.type])
        for rows in [np.flatnonzero(bias == corruption)]
        for start in range(0, len(rows), CHUNK)
    ]

    def corrupted(task: tuple[str, np.ndarray]) -> np.ndarray:
        name, rows = task
        return corruptions.corrupt_numbered(cifar.images[rows], name, recipe.severity, SEED, rows)

    out = np.empty_like(cifar.images)
    results = watched(each(corrupted, tasks), len(tasks), f"making {recipe.name}")
    for (_, rows), result in zip(tasks, results, strict=True):
        out[rows] = result
    return out


def _lff(recipe: Recipe, places: Sequence[Path], labelled: bool) -> Listing | None:
    """A set from the authors' own generator, which counts severity from 0 and gives the share that conflicts."""
    for folder in [folder for place in places for folder in (place, *sorted(place.glob("CorruptedCIFAR10-*")))]:
        told = re.fullmatch(
            r"CorruptedCIFAR10-Type(\d)-Skewed(\d*\.?\d+(?:e-\d+)?)-Severity(\d)", folder.resolve().name
        )
        if not told or f"type{told[1]}" != recipe.type or int(told[3]) + 1 != recipe.severity:
            continue
        if abs(1 - float(told[2]) - recipe.ratio) < 1e-6:
            parts = {"train": "train", "test": "valid"}
            listings = {split: _lff_part(recipe, folder / below, split, labelled) for split, below in parts.items()}
            return joined(listings, recipe.name, str(folder), [f"ready-made, from {folder}"])
    return None


def _lff_part(recipe: Recipe, folder: Path, split: str, labelled: bool) -> Listing:
    def loaded(name: str) -> np.ndarray:
        try:
            return np.load(folder / name, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UnskewError(f"{folder / name} cannot be read ({error}).") from error

    images, attributes = loaded("images.npy"), loaded("attrs.npy")
    fits = images.shape[1:] == (SIDE, SIDE, 3) and attributes.shape == (len(images), 2) and len(images)
    if not fits or images.dtype != np.uint8 or attributes.dtype.kind not in "iu":
        raise UnskewError(
            f"{folder}: images.npy must be N×32×32×3 of uint8 and attrs.npy N×2 whole numbers, not {images.shape}"
            f" of {images.dtype} and {attributes.shape} of {attributes.dtype}."
        )
    ids = [f"{recipe.name}/{split}/{i:05d}" for i in range(len(images))]
    return _listing(recipe, folder, images, ids, attributes, labelled)


def _disent(recipe: Recipe, places: Sequence[Path], labelled: bool) -> Listing | None:
    """The tree of PNG files that came with Lee et al., "Learning Debiased Representation via Disentangled...", 2021."""
    percent = f"{100 * (1 - recipe.ratio):.6g}pct"
    if recipe.type != "type0" or recipe.severity != 5:
        return None
    for folder in [folder.resolve() for place in places for folder in (place, place / percent)]:
        if folder.name == percent and (folder / "align").is_dir():
            parts = {"train": [folder / "align", folder / "conflict"], "test": [folder.parent / "test"]}
            if (folder / "valid").is_dir():
                parts["val"] = [folder / "valid"]
            listings = {split: _disent_part(recipe, below, labelled) for split, below in parts.items()}
            return joined(listings, recipe.name, str(folder), [f"ready-made, from {folder}"])
    return None


def _disent_part(recipe: Recipe, folders: list[Path], labelled: bool) -> Listing:
    files = [path for folder in folders for path in sorted(folder.rglob("*.png"))]
    if not files:
        raise UnskewError(f"{folders[0]}/ holds no PNG files, and {recipe.name} needs them.")
    told = [re.fullmatch(r".*_(\d+)_(\d+)", path.stem) for path in files]
    for path, match in zip(files, told):
        if match is None:
            raise UnskewError(f"{path}: the name of an image must end in its class and corruption, as in _3_5.png.")
    attributes = np.array([(int(match[1]), int(match[2])) for match in told if match])
    above = folders[0].parents[0 if folders[0].name == "test" else 1]
    ids = [path.relative_to(above).as_posix() for path in files]
    return _listing(recipe, folders[0], files, ids, attributes, labelled)


def _listing(recipe: Recipe, where: Path, images, ids: list[str], attributes: np.ndarray, labelled: bool) -> Listing:
    attributes = attributes.astype(np.int64)
    if attributes.min() < 0 or attributes.max() >= len(CLASSES):
        raise UnskewError(f"{where}: classes and corruptions go from 0 to 9, but there is {attributes.max()}.")
    labels, bias = attributes.T
    return Listing(
        name=recipe.name,
        where=str(where),
        images=images,
        ids=ids,
        labels=labels if labelled else None,
        bias=bias if labelled else None,
        aligned=labels == bias if labelled else None,
        class_names=CLASSES if labelled else None,
    )

"""Real image files in the layouts that people have."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory, monkeypatch) -> Path:
    """No test reads or fills the cache of whoever runs it."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("UNSKEW_CACHE", str(folder))
    monkeypatch.delenv("UNSKEW_RAM_SHARE", raising=False)
    return folder


@pytest.fixture
def save() -> Callable[..., Path]:
    """Write one image of one colour; the folders above it are made."""

    def save(path: Path, colour=(200, 30, 90), size=(20, 20), **options) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, colour).save(path, **options)
        return path

    return save


@pytest.fixture
def photos(tmp_path, save) -> Callable[..., Path]:
    """Class folders under ``tmp_path/photos/<below>``: ``photos(cat=3, dog=2)``; no two images are equal."""

    def photos(below: str = "", **counts: int) -> Path:
        root = tmp_path / "photos"
        for number, (name, count) in enumerate(counts.items()):
            for i in range(count):
                save(root / below / name / f"{i}.png", colour=(40 * number + 10, 2 * i, len(below)))
        return root

    return photos


@pytest.fixture
def decodes(monkeypatch) -> list:
    """Every item that is decoded from now on."""
    from unskew.data import decode

    seen: list = []
    real = decode.decode

    def decoding(item, *how):
        seen.append(item)
        return real(item, *how)

    monkeypatch.setattr(decode, "decode", decoding)
    return seen


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Twelve images of 8 px, each of one grey of its own, in three classes."""
    images = np.arange(12, dtype=np.uint8)[:, None, None, None] * np.full((12, 8, 8, 3), 10, np.uint8)
    return images, np.arange(12) % 3

import json
import os
import resource
import warnings
from pathlib import Path

import pytest
import torch

from unskew.data import load, load_splits
from unskew.data.cache import folder
from unskew.errors import UnskewError


def is_mapped(tensor: torch.Tensor, below: Path) -> bool:
    """Whether the tensor's memory is a file under ``below``, as the kernel sees it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, *_, path = line.split(maxsplit=5)
        start, end = (int(edge, 16) for edge in place.split("-"))
        if start <= tensor.data_ptr() < end:
            return path.startswith(str(below))
    return False


def test_second_load_decodes_nothing(photos, decodes):
    root = photos(cat=3, dog=3)
    first = load(root)
    assert len(decodes) == 6
    again = load(root)
    assert len(decodes) == 6
    assert torch.equal(first.images, again.images)
    assert first.ids == again.ids


def test_what_was_decoded_can_be_left_on_the_disk(photos, decodes):
    root = photos(cat=3, dog=3)
    first = load(root)
    assert not is_mapped(first.images, folder())
    again = load(root, mapped=True)
    assert is_mapped(again.images, folder())
    assert torch.equal(first.images, again.images)
    assert len(decodes) == 6


def test_files_that_cannot_be_read_are_named_from_the_cache_too(photos, decodes):
    root = photos(cat=3, dog=3)
    (root / "cat/1.png").write_bytes(b"no image")
    for _ in range(2):
        data = load(root, skip_bad=True)
        assert "first" in data.notes[0]
        assert "cat/1.png" in data.notes[0]
        assert len(decodes) == 6
    (root / "dog/0.png").unlink()
    assert len(load(root, skip_bad=True)) == 4


def test_all_ways_to_load_share_one_cache(photos, decodes):
    root = photos(cat=3, dog=3)
    load_splits(root)
    load(root)
    load(root, split="test")
    assert len(decodes) == 6


def test_touched_changed_and_added_files_are_decoded_again(photos, save, decodes):
    root = photos(cat=3, dog=3)
    load(root)
    os.utime(root / "cat/0.png", ns=(1, 1))
    load(root)
    assert len(decodes) == 12
    save(root / "cat/0.png", colour=(1, 2, 3))
    data = load(root)
    assert len(decodes) == 18
    assert data.images[list(data.ids).index("cat/0.png"), :, 0, 0].tolist() == [1, 2, 3]
    save(root / "cat/3.png")
    assert len(load(root)) == 7


def test_another_size_is_another_entry(photos, decodes):
    root = photos(cat=2, dog=2)
    assert load(root).size == 32
    assert load(root, size=16).size == 16
    assert load(root).size == 32
    assert len(decodes) == 8


def test_sidecar_says_size_and_unreadable_files(photos, cache_folder, decodes):
    root = photos(cat=3, dog=3)
    (root / "cat/1.png").write_bytes(b"")
    with pytest.raises(UnskewError, match="1 of 6"):
        load(root)
    (sidecar,) = cache_folder.glob("*.json")
    told = json.loads(sidecar.read_text())
    assert told["size"] == 32
    assert list(told["unreadable"]) == [str(root / "cat/1.png")]
    assert len(load(root, skip_bad=True)) == 5
    assert len(decodes) == 6, "the run with skip_bad uses what the failed one decoded"
    assert [path.suffix for path in cache_folder.iterdir() if path.suffix not in (".npy", ".json")] == []


@pytest.mark.parametrize("damage", ["cut", "empty", "no sidecar", "bad sidecar"])
def test_damaged_cache_is_made_anew(photos, cache_folder, decodes, damage):
    root = photos(cat=2, dog=2)
    first = load(root)
    (pixels,), (sidecar,) = cache_folder.glob("*.npy"), cache_folder.glob("*.json")
    if damage == "cut":
        pixels.write_bytes(pixels.read_bytes()[:-100])
    elif damage == "empty":
        pixels.write_bytes(b"")
    elif damage == "no sidecar":
        sidecar.unlink()
    else:
        sidecar.write_text("{")
    assert torch.equal(load(root).images, first.images)
    assert len(decodes) == 8


@pytest.mark.parametrize("bad", [False, True])
def test_beyond_the_share_of_memory_images_are_mapped_and_stay_so(photos, cache_folder, monkeypatch, bad):
    root = photos(cat=10, dog=10)
    if bad:  # first, so that rows after it have to move up
        (root / "cat/0.png").write_bytes(b"")
    in_memory = load(root, skip_bad=True, size=16)
    assert not is_mapped(in_memory.images, cache_folder)
    for path in cache_folder.iterdir():
        path.unlink()
    monkeypatch.setenv("UNSKEW_RAM_SHARE", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch complains about memory it may not write
        splits = load_splits(root, skip_bad=True, size=16)
        everything = load(root, skip_bad=True, size=16)
    assert is_mapped(splits.train.images, cache_folder)
    assert is_mapped(splits.test.images, cache_folder)
    storages = {split.images.untyped_storage().data_ptr() for split in (splits.train, splits.test)}
    assert len(storages) == 1, "both are views of one mapping"
    assert torch.equal(everything.images, in_memory.images)
    assert everything.ids == in_memory.ids


def test_splits_in_memory_are_views_too(photos):
    root = photos("train", cat=3, dog=3)
    photos("val", cat=1, dog=1)
    photos("test", cat=2, dog=2)
    splits = load_splits(root)
    assert splits.val is not None
    parts = (splits.train, splits.val, splits.test)
    assert len({part.images.untyped_storage().data_ptr() for part in parts}) == 1
    assert [len(part) for part in parts] == [6, 2, 4]


def test_unwritable_cache_warns_and_works_from_memory(photos, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="not kept for the next run"):
        data = load(photos(cat=2, dog=2))
    assert len(data) == 4


def test_unwritable_cache_is_an_error_beyond_memory(photos, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("UNSKEW_RAM_SHARE", "0")
    with pytest.raises(UnskewError, match="Set UNSKEW_CACHE"):
        load(photos(cat=2, dog=2))


@pytest.mark.parametrize("share", ["0", "0.25"])
def test_disk_that_fills_up(photos, cache_folder, monkeypatch, share):
    root = photos(cat=10, dog=10)
    monkeypatch.setenv("UNSKEW_RAM_SHARE", share)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # the decoded images take 61 kB
    try:
        if share == "0":
            with pytest.raises(UnskewError, match="Set UNSKEW_CACHE"):
                load(root)
        else:
            with pytest.warns(UserWarning, match="not kept"):
                assert len(load(root)) == 20
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(cache_folder.iterdir()) == []


def test_share_must_be_a_number(photos, monkeypatch):
    monkeypatch.setenv("UNSKEW_RAM_SHARE", "half")
    with pytest.raises(UnskewError, match="UNSKEW_RAM_SHARE"):
        load(photos(cat=2, dog=2))


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path / "own"))
    assert folder() == tmp_path / "own"
    monkeypatch.delenv("UNSKEW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder() == tmp_path / "xdg" / "unskew"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder() == tmp_path / ".cache" / "unskew"

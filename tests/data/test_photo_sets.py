import json
import os

import numpy as np
import pytest
import torch
from PIL import Image

import unskew
from photo_sets import GROUPS, bar, celeba, photo, waterbirds, write_csv
from unskew.data.bar import PUBLISHED
from unskew.errors import UnskewError

LAYOUTS = ("kaggle", "torchvision", "original", "jtt")


def groups_of(data) -> list[tuple[int, int]]:
    return list(zip(data.labels.tolist(), data.bias.tolist()))


@pytest.mark.parametrize("below", ["", "sets", "sets/of birds"])
def test_waterbirds_is_found_whatever_its_folder_is_called(tmp_path, below):
    waterbirds(tmp_path / below)
    splits = unskew.load_splits("waterbirds", tmp_path)
    assert [len(part) for part in (splits.train, splits.val, splits.test)] == [8, 8, 8]
    assert groups_of(splits.test) == [(y, place) for y, place, split in GROUPS if split == 2]
    assert splits.train.class_names == ("landbird", "waterbird")
    assert splits.train.ids[0] == "001.Black_footed_Albatross/Bird_0001.jpg"
    assert (splits.train.size, splits.train.images.shape[-1]) == (224, 256)


def test_three_levels_down_is_too_far(tmp_path):
    waterbirds(tmp_path / "a/b/c")
    with pytest.raises(UnskewError, match=r"Waterbirds was not found in .* no metadata.csv .*nlp.stanford.edu"):
        unskew.load("waterbirds", tmp_path)


def test_waterbirds_photos_are_squashed_whole(tmp_path):
    root = waterbirds(tmp_path)
    data = unskew.load("waterbirds", root)
    whole = Image.open(root / data.ids[0]).resize((256, 256), Image.Resampling.BICUBIC)
    assert np.array_equal(data.pixels[0].numpy(), np.asarray(whole))


def test_groups_are_weighted_by_training_and_the_shortcut_follows_from_them(tmp_path):
    counts = {(0, 0): 6, (0, 1): 2, (1, 0): 1, (1, 1): 3}
    train = [(*group, 0) for group, count in counts.items() for _ in range(count)]
    waterbirds(tmp_path, [*train, *[g for g in GROUPS if g[2] == 2]])
    splits = unskew.load_splits("waterbirds", tmp_path)
    assert splits.train.group_weights.tolist() == [[0.5, 2 / 12], [1 / 12, 0.25]]
    assert splits.test.aligned.tolist() == [y == place for y, place, split in GROUPS if split == 2]
    assert torch.equal(splits.test.group_weights, splits.train.group_weights)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("below", ["", "faces"])
def test_every_layout_of_celeba_reads_alike(tmp_path, layout, below):
    celeba(tmp_path / below, layout)
    splits = unskew.load_splits("celeba", tmp_path)
    for number, part in enumerate((splits.train, splits.val, splits.test)):
        assert groups_of(part) == [(y, male) for y, male, split in GROUPS if split == number]
    assert splits.train.class_names == ("not blond", "blond")
    assert splits.train.ids[0] == "000001.jpg"
    assert (splits.train.size, splits.train.images.shape[-1]) == (224, 178), "kept as they are, never enlarged on disk"


def test_celeba_keeps_the_middle_untouched(tmp_path):
    root = celeba(tmp_path, "torchvision")
    data = unskew.load("celeba", root)
    photo = np.array(Image.open(root / "img_align_celeba/000001.jpg"))
    assert np.array_equal(data.pixels[0].numpy(), photo[20:198])


def test_celeba_is_mapped_where_it_is_too_large(tmp_path, monkeypatch):
    from test_cache import is_mapped

    from unskew.data import cache

    celeba(tmp_path, "kaggle")
    monkeypatch.setattr(cache, "LARGEST_IN_MEMORY", 8 * 178 * 178 * 3)
    splits = unskew.load_splits("celeba", tmp_path)
    assert is_mapped(splits.train.images, cache.folder())


def test_bar(tmp_path):
    bar(tmp_path / "BAR-master")
    splits = unskew.load_splits("bar", tmp_path)
    assert splits.train.class_names == tuple(PUBLISHED["train"])
    assert [len(splits.train), splits.val, len(splits.test)] == [12, None, 12]
    assert splits.train.labels.bincount().tolist() == [2] * 6
    vaulting = list(splits.test.ids).index("test/pole vaulting_1.jpg")
    assert splits.test.class_names[int(splits.test.labels[vaulting])] == "pole vaulting"
    assert splits.train.bias is None
    assert splits.train.aligned is None
    assert (splits.train.size, splits.train.images.shape[-1]) == (224, 256)


def test_pngs_called_jpg_and_palettes_decode(tmp_path):
    root = bar(tmp_path)
    data = unskew.load("bar", root, "test")
    palette = np.asarray(Image.open(root / "test/diving_0.jpg").convert("RGB"), dtype=np.int64)
    kept = data.pixels[list(data.ids).index("test/diving_0.jpg")].numpy()
    assert abs(kept[128, 128] - palette[140, 150]).max() < 40


@pytest.mark.parametrize("mode", ["L", "CMYK", "LA"])
def test_grey_and_cmyk_photos_are_photos(tmp_path, mode):
    root = bar(tmp_path)
    name = root / "train/climbing_0.jpg"
    colour = Image.new("RGB", (300, 280), (120, 120, 120)).convert(mode)
    colour.save(name, format="PNG" if mode == "LA" else "JPEG")
    data = unskew.load("bar", root)
    pixel = data.pixels[list(data.ids).index("train/climbing_0.jpg"), 128, 128].int()
    assert (pixel - 120).abs().max() <= 3


def test_counts_that_differ_from_the_published_ones_are_told(tmp_path):
    bar(tmp_path / "bar")
    waterbirds(tmp_path / "birds")
    celeba(tmp_path / "faces", "jtt")
    wanted = {
        "bar": "train climbing 2 (published: 326)",
        "waterbirds": "train waterbird/land 2 (published: 56)",
        "celeba": "train blond/male 2 (published: 1387)",
    }
    for name, words in wanted.items():
        (note,) = unskew.load_splits(name, tmp_path).notes
        assert words in note


def test_sets_side_by_side_are_not_mistaken_for_each_other(tmp_path):
    celeba(tmp_path / "a", "jtt")
    waterbirds(tmp_path / "b")
    assert unskew.load("waterbirds", tmp_path).class_names == ("landbird", "waterbird")
    assert unskew.load("celeba", tmp_path).class_names == ("not blond", "blond")


def test_a_row_without_its_photo_is_named(tmp_path):
    root = waterbirds(tmp_path)
    (root / "016.Painted_Bunting/Bird_0005.jpg").unlink()
    with pytest.raises(UnskewError, match=r"1 of 24 files .*Bird_0005.jpg \(row 6\); get the set again from https"):
        unskew.load("waterbirds", root)
    faces = celeba(tmp_path / "faces", "torchvision")
    for name in ("000003.jpg", "000004.jpg"):
        (faces / "img_align_celeba" / name).unlink()
    with pytest.raises(UnskewError, match=r"2 of 24 files .*000003.jpg \(row 5\)"):
        unskew.load("celeba", faces)


def test_an_unreadable_photo_among_many_is_named_and_can_be_left_out(tmp_path):
    root = celeba(tmp_path, "kaggle")
    bad = root / "img_align_celeba/img_align_celeba/000002.jpg"
    bad.write_bytes(bad.read_bytes()[:300])
    with pytest.raises(UnskewError, match=r"1 of 24 images cannot be read, first .*000002.jpg"):
        unskew.load_splits("celeba", root)
    splits = unskew.load_splits("celeba", root, skip_bad=True)
    assert len(splits.train) == 7
    assert "000002.jpg" not in splits.train.ids
    assert "they were skipped" in splits.notes[-1]


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ("list_eval_partition.csv", r"list_eval_partition.csv \(or .txt\) of CelebA is missing: get it from https"),
        ("img_align_celeba", r"img_align_celeba/ of CelebA is missing: get the photos from https"),
        ("list_attr_celeba.csv", r"CelebA was not found in .*: there is no list_attr_celeba.csv"),
    ],
)
def test_a_missing_part_of_celeba_is_named(tmp_path, gone, words):
    root = celeba(tmp_path / "faces", "kaggle")
    os.rename(root / gone, tmp_path / f"away-{gone}")
    with pytest.raises(UnskewError, match=words):
        unskew.load("celeba", root)


def test_bad_rows_are_named(tmp_path):
    root = waterbirds(tmp_path)
    text = (root / "metadata.csv").read_text()
    (root / "metadata.csv").write_text(text.replace("Bird_0003.jpg,0", "Bird_0003.jpg,7"))
    with pytest.raises(UnskewError, match=r"metadata.csv: y in row 4 is '7'; it must be one of 0, 1"):
        unskew.load("waterbirds", root)
    faces = celeba(tmp_path / "faces", "kaggle")
    write_csv(faces / "list_eval_partition.csv", [["image_id", "partition"], ["000001.jpg", 0]])
    with pytest.raises(UnskewError, match=r"does not say the split of 23 photos, first 000002.jpg"):
        unskew.load("celeba", faces)


def test_bad_files_of_bar_are_named(tmp_path):
    root = bar(tmp_path)
    odd = photo(root / "train/juggling_1.jpg", (300, 280), 1)
    with pytest.raises(UnskewError, match=r"juggling_1.jpg is not named after an action of BAR"):
        unskew.load("bar", root)
    odd.unlink()
    os.rename(root / "test", root / "testing")
    with pytest.raises(UnskewError, match=r"test/ of BAR is missing; get the set again from https"):
        unskew.load("bar", root)
    with pytest.raises(UnskewError, match="bar takes nothing after its name"):
        unskew.load("bar:0.9", root)
    with pytest.raises(UnskewError, match="there is no folder .*gone"):
        unskew.load("bar", root / "gone")


def test_what_was_trained_on_crops_is_evaluated_on_the_same_centres(tmp_path, run):
    """Kept at 82, seen at 72: the command that evaluates a run must see what the run's own evaluation saw."""
    bar(tmp_path / "BAR")
    where = ("bar", "--data-dir", tmp_path)
    cnn = ("--model", "cnn", "--device", "cpu", "--epochs", 1)
    run("train", *where, "--size", 72, "--method", "erm", *cnn, "--out", tmp_path / "out")
    result = json.loads((tmp_path / "out" / "results.jsonl").read_text())
    assert result["model"]["size"] == 72
    told = json.loads(run("evaluate", tmp_path / "out", *where, "--json").out)
    assert told["classes"] == result["scores"]["classes"]
    first, again = (unskew.load("bar", tmp_path, "test", size=size) for size in (72, result["model"]["size"]))
    assert (first.images.shape[-1], first.size) == (82, 72)
    assert first.fingerprint == again.fingerprint


def test_small_images_are_kept_as_they_are_seen(tmp_path):
    bar(tmp_path)
    data = unskew.load("bar", tmp_path, size=64)
    assert (data.size, data.images.shape[-1]) == (64, 64)

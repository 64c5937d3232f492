import pytest

from unskew.data import load, load_splits
from unskew.errors import UnskewError


def test_classes_are_sorted_folder_names(photos):
    data = load(photos(dog=2, cat=3))
    assert data.class_names == ("cat", "dog")
    assert data.name == "photos"
    for name, label in zip(data.ids, data.labels):
        assert name.split("/")[0] == data.class_names[int(label)]
    assert sorted(data.ids) == ["cat/0.png", "cat/1.png", "cat/2.png", "dog/0.png", "dog/1.png"]


def test_pixels_belong_to_their_ids(photos):
    data = load(photos(cat=5, dog=5))
    for name, pixels, label in zip(data.ids, data.pixels, data.labels):
        number = int(name.split("/")[1].removesuffix(".png"))
        assert pixels[0, 0].tolist() == [40 * int(label) + 10, 2 * number, 0]


def test_suffixes_in_any_case_hidden_files_and_nesting(tmp_path, save):
    save(tmp_path / "set/a/deep/er/1.JPEG", size=(30, 50))
    save(tmp_path / "set/a/.hidden.png")
    save(tmp_path / "set/.git/2.png")
    save(tmp_path / "set/b/3.WebP", size=(64, 10))
    (tmp_path / "set/b/notes.txt").write_text("no image")
    data = load(tmp_path / "set")
    assert sorted(data.ids) == ["a/deep/er/1.JPEG", "b/3.WebP"]
    assert data.images.shape == (2, 3, 32, 32)


def test_split_folders(photos):
    root = photos("train", cat=4, dog=4)
    photos("Validation", cat=1, dog=2)
    photos("test", dog=3)
    splits = load_splits(root)
    assert splits.val is not None
    assert (len(splits.train), len(splits.val), len(splits.test)) == (8, 3, 3)
    assert splits.notes == []
    assert splits.test.class_names == ("cat", "dog")
    assert splits.test.labels.tolist() == [1, 1, 1]
    assert splits.train.ids[0] == "train/cat/0.png"
    assert load(root).ids == splits.train.ids
    assert load(root, split="valid").ids == splits.val.ids


def test_working_size_is_one_for_all_splits(photos, save):
    root = photos("train", cat=2, dog=2)
    save(root / "test/cat/0.png", size=(65, 65))
    assert load(root, split="train").size == 224


def test_a_class_may_be_called_train(photos):
    assert load(photos(bus=2, car=2, train=2)).class_names == ("bus", "car", "train")


def test_folders_beside_splits_are_told(photos):
    root = photos("train", cat=2, dog=2)
    photos("test", cat=1, dog=1)
    photos("extra", cat=1)
    (note,) = load_splits(root).notes
    assert "extra" in note


def test_links_round_in_a_circle_end(photos):
    root = photos(cat=2, dog=2)
    (root / "cat/again").symlink_to(root / "cat")
    assert len(load(root)) == 4


def test_stray_images_and_empty_folders_are_told(photos, save):
    root = photos(cat=2, dog=2)
    save(root / "stray.png")
    (root / "bird").mkdir()
    data = load(root)
    assert data.class_names == ("cat", "dog")
    assert any("1 images directly in" in note for note in data.notes)
    assert any("bird" in note for note in data.notes)


def test_bad_folders(tmp_path, photos, save):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnskewError, match="empty/ holds no images"):
        load(tmp_path / "empty")
    save(tmp_path / "flat/1.png")
    with pytest.raises(UnskewError, match="flat/ holds 1 images but no class folders"):
        load(tmp_path / "flat")
    photos("both/train", cat=2, dog=2)
    photos("both/val", cat=2)
    photos("both/valid", cat=2)
    with pytest.raises(UnskewError, match="both val/ and valid/"):
        load(tmp_path / "photos/both")


def test_bad_images_stop_or_are_skipped(photos):
    root = photos(cat=5, dog=5)
    (root / "cat/3.png").write_bytes(b"no image")
    (root / "dog/1.png").write_bytes(b"")
    with pytest.raises(UnskewError, match=r"2 of 10 images cannot be read, first \S+\.png \(.+\): .*--skip-bad"):
        load_splits(root)
    splits = load_splits(root, skip_bad=True)
    assert len(splits.train) + len(splits.test) == 8
    assert any("2 of 10" in note and "skipped" in note for note in splits.notes)
    assert any("2 of 10" in note for note in splits.train.notes)
    assert not {"cat/3.png", "dog/1.png"} & {*splits.train.ids, *splits.test.ids}


def test_nothing_readable(photos):
    root = photos(cat=2, dog=2)
    for path in root.rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(UnskewError, match="nothing to work with"):
        load(root, skip_bad=True)


def test_unlabelled_images_at_any_depth(tmp_path, save):
    for name in ("1.png", "below/2.png", "below/deeper/3.png", ".hidden/4.png"):
        save(tmp_path / "new" / name)
    data = load(tmp_path / "new", labelled=False)
    assert data.ids == ["1.png", "below/2.png", "below/deeper/3.png"]
    assert data.labels.tolist() == [-1, -1, -1]
    assert data.class_names == ()

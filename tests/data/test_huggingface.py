import sys

import pytest
from PIL import Image

from unskew.data import load, load_splits
from unskew.errors import UnskewError

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def quiet_and_offline(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def made(values, names=("cat", "dog"), **more):
    """One image per value, whose grey it is; its label is the value's parity."""
    features = {"pic": datasets.Image(), "label": datasets.ClassLabel(names=list(names))}
    columns = {"pic": [Image.new("L", (10, 10), v) for v in values], "label": [v % 2 for v in values], **more}
    features |= {name: datasets.Value("string") for name in more}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def test_one_dataset(decodes):
    source = made(range(20))
    data = load(source)
    assert data.class_names == ("cat", "dog")
    assert data.size == 32
    assert sorted(data.ids, key=int) == [str(i) for i in range(20)]
    assert data.images[:, 0, 5, 5].tolist() == [int(i) for i in data.ids]
    load(source)
    assert len(decodes) == 20, "the second load uses the cache"
    assert len(load_splits(source).test) == 4


def test_rows_picked_by_the_library_itself():
    data = load(made(range(20)).select([7, 3, 12, 8]))
    assert sorted(data.images[:, 0, 5, 5].tolist()) == [3, 7, 8, 12]


def test_splits_and_bias():
    source = datasets.DatasetDict(
        train=made(range(6), bias=list("xyxyxx")),
        validation=made(range(6, 8), bias=list("xy")),
        test=made(range(8, 12), bias=list("yxyx")),
        unlabeled=made(range(2), bias=list("xy")),
    )
    splits = load_splits(source)
    assert splits.val is not None
    assert (len(splits.train), len(splits.val), len(splits.test)) == (6, 2, 4)
    assert splits.test.aligned is not None
    assert splits.test.aligned.tolist() == [False] * 4
    assert splits.test.ids[0] == "test/0"
    assert "unlabeled" in splits.notes[0]


def test_saved_to_disk(tmp_path):
    made(range(6)).save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict(train=made(range(6)), test=made(range(2))).save_to_disk(str(tmp_path / "more"))
    assert load(tmp_path / "one").name == "one"
    assert len(load_splits(tmp_path / "more").test) == 2


def test_by_name(tmp_path, save):
    # A folder stands in for the hub, which tests do not reach; both go through load_dataset.
    for name in ("cat/1", "cat/2", "cat/3", "dog/1", "dog/2"):
        save(tmp_path / "pets" / "train" / f"{name}.png")
    data = load(f"hf:{tmp_path}/pets")
    assert data.name == "pets"
    assert data.class_names == ("cat", "dog")
    assert len(data) == 5


def test_name_that_cannot_be_loaded():
    with pytest.raises(UnskewError, match="hf:nobody/nothing cannot be loaded"):
        load("hf:nobody/nothing")
    with pytest.raises(UnskewError, match="as in hf:owner/name"):
        load("hf:")


def test_files_that_the_dataset_points_to(tmp_path, save, decodes):
    paths = [str(save(tmp_path / f"{i}.png", colour=(i, i, i))) for i in range(4)]
    features = datasets.Features({"image": datasets.Image(), "labels": datasets.Value("string")})
    source = datasets.Dataset.from_dict({"image": paths, "labels": list("abab")}, features=features)
    assert load(source).class_names == ("a", "b")
    save(tmp_path / "2.png", colour=(99, 99, 99))
    assert load(source).images[:, 0, 0, 0].max() == 99
    assert len(decodes) == 8


def test_broken_bytes():
    whole = made(range(6)).cast_column("pic", datasets.Image(decode=False))
    column = [row["pic"] for row in whole]
    column[4] = {"bytes": b"no image", "path": None}
    source = datasets.Dataset.from_dict({"pic": column, "label": list("ababab")}).cast_column("pic", datasets.Image())
    with pytest.raises(UnskewError, match=r"1 of 6 images cannot be read, first dataset 4"):
        load(source)
    assert len(load(source, skip_bad=True)) == 5


def test_bad_datasets():
    with pytest.raises(UnskewError, match="no image column; its columns are a"):
        load(datasets.Dataset.from_dict({"a": [1]}))
    with pytest.raises(UnskewError, match="no label column"):
        load(made(range(4)).remove_columns("label"))
    assert len(load(made(range(4)).remove_columns("label"), labelled=False)) == 4
    with pytest.raises(UnskewError, match="sample 2 has no bias"):
        load(made(range(4), bias=["x", "y", None, "x"]))
    with pytest.raises(UnskewError, match="without streaming"):
        load(made(range(4)).to_iterable_dataset())
    with pytest.raises(UnskewError, match="none of the splits"):
        load(datasets.DatasetDict(a=made(range(4)), b=made(range(4))))
    with pytest.raises(UnskewError, match="name their classes differently"):
        load(datasets.DatasetDict(train=made(range(4)), test=made(range(4), names=("dog", "cat"))))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UnskewError, match=r"pip install 'unskew\[hf\]'"):
        load("hf:owner/name")

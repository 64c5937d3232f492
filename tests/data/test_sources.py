import pytest

from unskew.data import load, sources
from unskew.errors import UnskewError


def test_unknown_name_says_what_is_near_and_that_there_is_no_such_file():
    with pytest.raises(UnskewError, match=r"no file or folder digit:0\.9, .*did you mean digits\?"):
        load("digit:0.9")


def test_missing_folder(tmp_path):
    with pytest.raises(UnskewError, match=r"no file or folder .*photos"):
        load(tmp_path / "photos")


def test_file_of_unknown_type(tmp_path):
    (tmp_path / "set.xlsx").touch()
    with pytest.raises(UnskewError, match=r"set\.xlsx is of an unknown type; .*\.csv, \.parquet, \.npz"):
        load(tmp_path / "set.xlsx")


def test_something_else():
    with pytest.raises(UnskewError, match="cannot load images from a int"):
        load(5)


def test_a_name_wins_over_a_folder_unless_it_is_spelled_as_a_path(tmp_path, photos, monkeypatch):
    photos(cat=2, dog=2).rename(tmp_path / "digits")
    monkeypatch.chdir(tmp_path)
    assert load("digits").num_classes == 10
    assert load("./digits").class_names == ("cat", "dog")
    assert load(tmp_path / "digits").class_names == ("cat", "dog")


def test_relative_paths_name_the_source(photos, monkeypatch):
    monkeypatch.chdir(photos(cat=2, dog=2))
    assert load(".").name == "photos"


def test_names_get_what_follows_the_colon_and_data_dir(tmp_path, arrays, monkeypatch):
    seen = []

    def reader(argument, data_dir, labelled):
        seen.append((argument, data_dir, labelled))
        return sources.arrays.read(arrays, labelled)

    monkeypatch.setitem(sources.NAMES, "birds", reader)
    load("birds:a:b", str(tmp_path))
    assert seen == [("a:b", tmp_path, True)]

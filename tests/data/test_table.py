import csv

import pytest

from unskew.data import load, load_splits
from unskew.errors import UnskewError


@pytest.fixture(params=["csv", "parquet"])
def table(request, tmp_path, save):
    """Write a table of rows (with their files, unless told not to) and give its path."""

    def write(header: str, *rows: tuple, files: bool = True):
        columns = header.split(",")
        if files and "path" in columns:
            for row in rows:
                save(tmp_path / row[columns.index("path")])
        path = tmp_path / f"table.{request.param}"
        if request.param == "csv":
            with open(path, "w", newline="") as file:
                csv.writer(file).writerows([columns, *rows])
        else:
            import pyarrow
            from pyarrow import parquet

            columned = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
            parquet.write_table(pyarrow.table(columned), path)
        return path

    return write


def by_id(data, values) -> dict:
    return dict(zip(data.ids, values.tolist()))


def test_words(table):
    path = table("path,label,bias", ("x/a.png", "dog", "sea"), ("b.png", "cat", "land"), ("c.png", "dog", "land"))
    data = load(path)
    assert data.name == "table"
    assert data.class_names == ("cat", "dog")
    assert by_id(data, data.labels) == {"x/a.png": 1, "b.png": 0, "c.png": 1}
    assert by_id(data, data.bias) == {"x/a.png": 1, "b.png": 0, "c.png": 0}


def test_numbers_sort_as_numbers(table):
    data = load(table("path,label,bias", ("a.png", 10, -1), ("b.png", 9, 1), ("c.png", 2, 1)))
    assert data.class_names == ("2", "9", "10")
    assert by_id(data, data.labels) == {"a.png": 2, "b.png": 1, "c.png": 0}
    assert by_id(data, data.bias) == {"a.png": 0, "b.png": 1, "c.png": 1}


def test_splits_and_the_shortcut_of_train(table):
    rows = [(f"{label}{bias}{i}.png", label, bias, "train") for label, bias in ("ax", "by") for i in range(4)]
    rows += [("ay.png", "a", "y", "train"), ("v.png", "a", "z", "valid"), ("t.png", "b", "x", "test")]
    rows += [("u.png", "b", "y", "test")]
    splits = load_splits(table("path,label,bias,split", *rows))
    assert splits.val is not None
    assert (len(splits.train), len(splits.val), len(splits.test)) == (9, 1, 2)
    expected = {name: name != "ay.png" for name, *_ in rows[:9]}
    assert by_id(splits.train, splits.train.aligned) == expected
    assert splits.val.aligned is not None
    assert splits.val.aligned.tolist() == [False], "a bias that train never shows"
    assert by_id(splits.test, splits.test.aligned) == {"t.png": False, "u.png": True}
    for part in (splits.train, splits.val, splits.test):
        assert part.group_weights is not None
        assert part.group_weights.shape == (2, 3), "room for every bias of every split"
        assert part.group_weights[0].tolist() == pytest.approx([4 / 9, 1 / 9, 0])


def test_unlabelled(table):
    data = load(table("path", ("a.png",), ("b.png",)), labelled=False)
    assert data.labels.tolist() == [-1, -1]


def test_missing_column(table):
    with pytest.raises(UnskewError, match=r"no column 'label'; its columns are path, y\."):
        load(table("path,y", ("a.png", 1)))


def test_missing_files(table, save, tmp_path):
    save(tmp_path / "b.png")
    path = table("path,label", ("a.png", "x"), ("b.png", "y"), ("c.png", "y"), files=False)
    row = 2 if path.suffix == ".csv" else 1
    with pytest.raises(UnskewError, match=rf"2 of 3 files listed in .* are missing, first \S+a\.png \(row {row}\)"):
        load(path)


def test_duplicate_paths(table):
    with pytest.raises(UnskewError, match="twice"):
        load(table("path,label", ("a.png", "x"), ("b.png", "y"), ("./a.png", "y")))


def test_gaps(table):
    with pytest.raises(UnskewError, match=r"row \d has no label"):
        load(table("path,label", ("a.png", "x"), ("b.png", None), ("c.png", "y")))


def test_fractions(table):
    with pytest.raises(UnskewError, match="not a whole number"):
        load(table("path,label", ("a.png", 0.5), ("b.png", 1.0)))


def test_unknown_split(table):
    with pytest.raises(UnskewError, match=r"unknown split 'dev' in row \d"):
        load(table("path,label,split", ("a.png", "x", "train"), ("b.png", "y", "dev")))


def test_no_rows(tmp_path):
    (tmp_path / "t.csv").write_text("path,label\n")
    with pytest.raises(UnskewError, match="lists no images"):
        load(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("")
    with pytest.raises(UnskewError, match="no column 'path'"):
        load(tmp_path / "t.csv")


def test_mixed_types_in_csv(tmp_path, save):
    for name in "abc":
        save(tmp_path / f"{name}.png")
    (tmp_path / "t.csv").write_text("path,label\na.png,cat\nb.png,dog\nc.png,3\n")
    with pytest.raises(UnskewError, match=r"mixed label types, a number in row 4 \(3\) and a word in row 2 \('cat'\)"):
        load(tmp_path / "t.csv")


def test_csv_as_spreadsheets_write_it(tmp_path, save):
    save(tmp_path / "a, b.png")
    save(tmp_path / "c.png")
    (tmp_path / "t.csv").write_bytes('\ufeffpath,label\r\n"a, b.png", nan\r\nc.png,dog\r\n\r\n'.encode())
    data = load(tmp_path / "t.csv")
    assert data.class_names == ("dog", "nan")
    assert sorted(data.ids) == ["a, b.png", "c.png"]


def test_broken_tables(tmp_path):
    (tmp_path / "t.csv").write_text("path,label\na.png\n")
    with pytest.raises(UnskewError, match="row 2 has 1 fields where the header has 2"):
        load(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes(b"path,label\n\xff\xfe,1\n")
    with pytest.raises(UnskewError, match="UTF-8"):
        load(tmp_path / "t.csv")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 or so")
    with pytest.raises(UnskewError, match="cannot be read as Parquet"):
        load(tmp_path / "t.parquet")


def test_parquet_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "t.parquet").touch()
    with pytest.raises(UnskewError, match=r"pip install 'unskew\[parquet\]'"):
        load(tmp_path / "t.parquet")

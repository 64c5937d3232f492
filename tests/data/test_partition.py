import csv

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition, at_least, quality
from unskew.data.partition_file import load_partition, sidecar
from unskew.errors import UnskewError

NAMES = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r"), min_size=1, max_size=8)


@st.composite
def partitions(draw) -> tuple[Dataset, Partition]:
    ids = draw(st.lists(NAMES, min_size=1, max_size=12, unique=True))
    classes = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    n, epochs = len(ids), draw(st.integers(1, 4))

    def integers(low, high, count=n):
        return torch.tensor(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    labels = integers(0, len(classes) - 1)
    bias = integers(0, 3) if draw(st.booleans()) else None
    images = torch.zeros(n, 4, 4, 3, dtype=torch.uint8).permute(0, 3, 1, 2)
    data = Dataset(images, labels, ids, classes, bias=bias)
    floats = st.floats(0, 1, width=32)
    score = torch.tensor(draw(st.lists(floats, min_size=n, max_size=n)), dtype=torch.float32)
    predictions = integers(0, len(classes) - 1, n * epochs).reshape(n, epochs).to(torch.int16)
    more: dict = {"predictions": predictions} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        more["weight"] = score * 2
        more["suspects"] = integers(0, 1, n * epochs).reshape(n, epochs).bool()
    return data, Partition.of(data, integers(0, 1).bool(), score, "ph", **more)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(partitions(), st.randoms())
def test_save_and_load_give_the_same_whatever_the_names_and_the_order_of_rows(tmp_path, both, random):
    data, partition = both
    path = tmp_path / "partition.csv"
    partition.save(path)
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    random.shuffle(rows)  # as a person sorting the table would
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    again = load_partition(path, data)
    assert list(again.ids) == list(data.ids)
    for name in ("conflicting", "score", "labels", "predictions", "suspects", "weight", "bias", "times_right"):
        one, two = getattr(partition, name), getattr(again, name)
        assert (one is None) == (two is None), name
        assert one is None or torch.equal(one, two), name
    assert again.fingerprint == data.fingerprint
    assert again.how == "ph"


def small(labels=(0, 0, 1, 1), ids="abcd", name="photos") -> Dataset:
    images = torch.zeros(len(labels), 4, 4, 3, dtype=torch.uint8).permute(0, 3, 1, 2)
    return Dataset(images, torch.tensor(labels), list(ids), ["cat", "dog"], name=name)


def of(data: Dataset, conflicting=(0, 1, 0, 1)) -> Partition:
    found = torch.tensor(conflicting).bool()
    return Partition.of(data, found, found.float(), "ph")


def test_the_columns_a_person_reads(tmp_path):
    data = small()
    predictions = torch.tensor([[0, 0], [1, 1], [1, 0], [0, 0]], dtype=torch.int16)
    partition = Partition.of(data, torch.tensor([0, 1, 0, 1]).bool(), torch.tensor([0, 1, 0.5, 1]), "ph",
                             predictions=predictions)  # fmt: skip
    partition.save(tmp_path / "partition.csv")
    assert (tmp_path / "partition.csv").read_text().splitlines() == [
        "id,label,score,times_right,usual_wrong_class,conflicting",
        "a,cat,0,2,,0",
        "b,cat,1,0,dog,1",
        "c,dog,0.5,1,cat,0",
        "d,dog,1,0,cat,1",
    ]


def test_id_and_conflicting_are_enough(tmp_path):
    (tmp_path / "mine.csv").write_text("id,conflicting\nd,yes\na,no\nb,TRUE\nc,0\n")
    partition = load_partition(tmp_path / "mine.csv", small())
    assert partition.conflicting.tolist() == [False, True, False, True]
    assert partition.how == "mine.csv"


def test_a_partition_of_the_whole_serves_a_part(tmp_path):
    of(small()).save(tmp_path / "p.csv")
    part = small(labels=(1, 0), ids="db")
    assert load_partition(tmp_path / "p.csv", part).conflicting.tolist() == [True, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,score\na,1\n", "no column 'conflicting'"),
        ("id,conflicting\na,maybe\n", "line 2: conflicting is 'maybe'"),
        ("id,conflicting,score\na,1,high\n", "score is 'high'"),
        ("id,conflicting\na,1\na,0\n", "twice"),
        ("id,conflicting\na,1\nb,0\nc,1\n", "does not match photos: it lacks 1 of 4 samples, the first is 'd'"),
        ("id,label,conflicting\na,cat,1\nb,dog,0\nc,dog,1\nd,dog,1\n", "'b' is 'dog' there and 'cat' in the data"),
        ("", "no column 'id'"),
    ],
)
def test_a_file_that_does_not_fit(tmp_path, text, words):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(UnskewError, match=words):
        load_partition(tmp_path / "p.csv", small())


def test_a_missing_file_and_a_damaged_history(tmp_path):
    with pytest.raises(UnskewError, match="cannot be read"):
        load_partition(tmp_path / "none.csv", small())
    of(small()).save(tmp_path / "p.csv")
    beside = sidecar(tmp_path / "p.csv")
    beside.write_bytes(beside.read_bytes()[:100])
    with pytest.raises(UnskewError, match="damaged"):
        load_partition(tmp_path / "p.csv", small())


def test_a_history_that_hides_code_is_not_opened(tmp_path):
    of(small()).save(tmp_path / "p.csv")
    with open(sidecar(tmp_path / "p.csv"), "wb") as file:
        np.savez(file, ids=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UnskewError, match="damaged"):
        load_partition(tmp_path / "p.csv", small())


def test_quality_against_counting_by_hand():
    found = torch.tensor([1, 1, 1, 0, 0, 0, 0, 0]).bool()
    true = torch.tensor([1, 1, 0, 1, 0, 0, 0, 0]).bool()
    q = quality(found, true)
    assert (q.precision, q.recall, q.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert q.macro_f1 == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert q.rho == pytest.approx(np.corrcoef(found.numpy(), true.numpy())[0, 1])


def test_quality_of_nothing_found_is_zero_not_an_error():
    q = quality(torch.zeros(4).bool(), torch.tensor([1, 0, 0, 0]).bool())
    assert (q.precision, q.recall, q.f1, q.rho) == (0, 0, 0, 0)


def test_widening_stops_at_samples_that_nothing_speaks_against():
    found, note = at_least(torch.tensor([True] * 3 + [False] * 17), torch.tensor([1.0] * 3 + [0.0] * 17), minimum=4)
    assert int(found.sum()) == 3
    assert note == "only 3 samples were found conflicting, few to train on"


def test_widening_takes_equal_scores_together():
    found, note = at_least(torch.zeros(6).bool(), torch.tensor([0.9, 0.5, 0.5, 0.5, 0.1, 0.0]), minimum=2)
    assert found.tolist() == [True, True, True, True, False, False]
    assert note is not None
    assert "widened to the 4" in note

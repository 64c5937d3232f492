"""The addresses of `unskew view`, asked as a program would: what they answer, and what they refuse."""

import errno
import os
from threading import Thread
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from nasty_run import BAD, CLASSES, COUNT, ask, get, ids, mark, near, write_run
from PIL import Image

from unskew.data.corrections import load_corrections, save_corrections
from unskew.view.neighbours import Neighbours
from unskew.view.samples import open_run

# What it shows


def test_about_and_pages(serve, folder):
    address = serve(folder)
    about = get(address, "about")
    assert [c["name"] for c in about["classes"]] == CLASSES
    assert (about["count"], about["conflicting"]) == (COUNT, 15)
    pages = [get(address, "samples", page=k) for k in range(3)]
    assert [len(p["samples"]) for p in pages] == [60, 60, 30]
    assert set().union(*map(ids, pages)) == set(open_run(folder).ids)
    first = pages[0]["samples"]
    assert [s["conflicting"] for s in first[:15]] == [True] * 15, "suspects first"
    assert first[14]["id"] == "000020", "the least certain of them"
    assert get(address, "samples", page=99)["page"] == 2, "there is no further one"


def test_filters_agree_with_a_plain_loop(serve, folder):
    address, partition = serve(folder), open_run(folder).partition
    save_corrections(folder / "corrections.csv", {"000030": "aligned", BAD[0]: "label wrong"})

    def expected(test) -> set[str]:
        return {partition.ids[i] for i in range(COUNT) if test(i)}

    label = partition.labels.tolist()
    for query, test in [
        ({"label": 1}, lambda i: label[i] == 1),
        ({"predicted": 0, "side": "conflicting"}, lambda i: i % 10 == 0 and (label[i] + 1) % 3 == 0),
        ({"low": 0.5, "high": 0.8}, lambda i: i == 20),
        ({"low": 0.75, "high": 0.75}, lambda i: i == 20),
        ({"text": "ETC/pass"}, lambda i: i == 0),
        ({"text": "日本"}, lambda i: i == 4),
        ({"mark": "any"}, lambda i: i in (0, 30)),
        ({"mark": "aligned"}, lambda i: i == 30),
        ({"mark": "none", "side": "conflicting"}, lambda i: i % 10 == 0 and i not in (0, 30)),
        ({"text": "nothing is called so"}, lambda i: False),
    ]:
        page = get(address, "samples", **query)
        assert ids(page) == expected(test), query
        assert page["total"] == len(ids(page))


@pytest.mark.parametrize(
    "query", ["label=9", "label=x", "label=%C2%B2", "low=much", "side=left", "order=up", "mark=good"]
)
def test_a_question_that_makes_no_sense_is_told_so(serve, folder, query):
    status, _, body = ask(serve(folder), f"samples?{query}")
    assert status == 400
    assert query.split("=")[0] in body["error"]


def test_one_sample_its_history_and_its_images(serve, folder):
    address = serve(folder)
    seen = get(address, "sample", id="000020")
    assert [epoch["right"] for epoch in seen["history"]] == [False, False, True, False]
    assert seen["history"][0]["said"] == seen["predicted"] == CLASSES[0]
    samples = open_run(folder)
    for name in ("000020", *BAD):
        for path in ("image", "thumbnail"):
            status, headers, body = ask(address, f"{path}?{urlencode({'id': name})}")
            assert (status, headers["Content-Type"]) == (200, "image/png")
            (folder / "got.png").write_bytes(body)
            shown = np.asarray(Image.open(folder / "got.png"))
            assert np.array_equal(shown, samples.pixels[samples.place[name]].numpy()), name


def test_thumbnails_of_photos_are_made_once(serve, tmp_path, monkeypatch):
    folder = write_run(tmp_path / "photos", count=30, size=160, bad=False, model=False)
    address = serve(folder)
    _, headers, first = ask(address, "thumbnail?id=000001")
    assert headers["Content-Type"] == "image/jpeg"
    monkeypatch.setattr(Image.Image, "save", None)  # nothing more can be encoded
    assert ask(address, "thumbnail?id=000001")[2] == first
    assert ask(serve(folder), "thumbnail?id=000001")[2] == first, "not by the next viewer either"


def test_the_nearest_are_aligned_and_those_that_an_exact_search_finds(serve, folder):
    found = near(serve(folder), "000020")
    samples = open_run(folder)
    neighbours = Neighbours(samples, folder, "cpu")
    neighbours._prepare()
    features = neighbours._of(np.arange(COUNT))
    like = features @ features[20]
    like[samples.partition.conflicting] = -2
    assert [one["id"] for one in found["near"]] == [samples.ids[i] for i in like.topk(8).indices.tolist()]
    assert not any(one["conflicting"] for one in found["near"])


def test_without_a_network_the_page_says_why_there_are_no_neighbours(serve, folder):
    (folder / "identify.safetensors").unlink()
    assert "no network" in near(serve(folder), "000020")["why"]
    (folder / "model.safetensors").write_bytes(b"broken")
    assert near(serve(folder), "000020")["state"] == "none"


# Corrections


def test_marks_are_saved_changed_and_taken_away(serve, folder):
    address = serve(folder)
    for name in BAD:
        assert mark(address, name, "label wrong")[0] == 200
    mark(address, "000020", "conflicting")
    mark(address, "000020", "aligned")
    mark(address, BAD[1], None)
    expected = {name: "label wrong" for name in BAD if name != BAD[1]} | {"000020": "aligned"}
    assert load_corrections(folder / "corrections.csv") == expected
    assert get(address, "sample", id="000020")["mark"] == "aligned"
    assert get(address, "samples", text="000020")["corrected"] == {"conflicting": 0, "aligned": 1, "label wrong": 9}


def test_two_viewers_at_once_lose_nothing(serve, folder):
    first, second = serve(folder), serve(folder)
    names = open_run(folder).ids

    def work(address: str, mine) -> None:
        for name in mine:
            assert mark(address, name, "aligned")[0] == 200

    threads = [Thread(target=work, args=(a, names[i::4])) for i, a in enumerate((first, second, first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load_corrections(folder / "corrections.csv") == dict.fromkeys(names, "aligned")
    for address in (first, second):
        assert get(address, "about")["corrected"]["aligned"] == COUNT, "each sees what the other did"


def test_a_full_disk_is_told_and_leaves_the_others(serve, folder, monkeypatch):
    address = serve(folder)
    mark(address, "000020", "aligned")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        status, _, body = mark(address, "000030", "aligned")
    assert status == 507
    assert "No space left on device" in body["error"]
    assert load_corrections(folder / "corrections.csv") == {"000020": "aligned"}
    assert mark(address, "000030", "aligned")[0] == 200
    (folder / "corrections.csv").write_text("edited into something else")
    status, _, body = mark(address, "000040", "aligned")
    assert (status, "no column 'id'" in body["error"]) == (507, True)
    assert (folder / "corrections.csv").read_text() == "edited into something else"


def test_looking_for_neighbours_leaves_the_random_numbers_of_the_process_alone(folder):
    """Building a network draws from torch's one generator, which a thread of ours must not touch."""

    def draws() -> torch.Tensor:
        torch.manual_seed(0)
        return torch.stack([torch.rand(64).sum() for _ in range(3000)])

    samples, alone = open_run(folder), draws()
    for _ in range(10):
        neighbours = Neighbours(samples, folder, "cpu")
        neighbours.find(20)
        assert torch.equal(draws(), alone)

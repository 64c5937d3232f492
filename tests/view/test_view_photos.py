"""`unskew view` of photos: a network sees the centre of what was kept, a person the whole file."""

import io
import shlex
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from nasty_run import ask, get, near
from PIL import Image

from command_line import MODEL
from unskew.data.corrections import save_corrections
from unskew.engine.augment import batch_of
from unskew.engine.inference import NO_DRAWS
from unskew.models.saved import load_model
from unskew.view.samples import open_run

SEEN = 72  # so that 82 are kept
WIDE, HIGH = 150, 100
UPRIGHT = 6  # in EXIF: to be turned by a quarter


@pytest.fixture
def audit(run, tmp_path, monkeypatch) -> Path:
    """Photos of two classes, one of them taken upright, and stage 1 of them."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for name in ("cat", "dog's <b>"):
        Path("photos", name).mkdir(parents=True)
        for i in range(16):
            exif = Image.Exif()
            exif[274] = UPRIGHT if i == 3 else 1
            photo = Image.fromarray(random.integers(0, 256, (HIGH, WIDE, 3), np.uint8))
            photo.save(f"photos/{name}/{i:02d} ☃.jpg", exif=exif)
    Path("photos/cat/broken.jpg").write_bytes(b"no image")
    quick = ("--epochs", 2, "--lr", 1e-6)
    run("identify", "photos", "--size", SEEN, "--skip-bad", *quick, *MODEL, "--out", "audit")
    return Path("audit")


def test_neighbours_are_near_in_what_the_network_sees(serve, audit):
    found = near(serve(audit), "cat/00 ☃.jpg")
    assert found["state"] == "ready", found
    samples = open_run(audit)
    assert samples.pixels.shape[1] > SEEN
    network, _ = load_model(audit / "identify.safetensors")
    rows = torch.from_numpy(samples.rows)
    with torch.inference_mode():
        seen = batch_of(samples.pixels, rows, "none", NO_DRAWS, SEEN)
        features = torch.nn.functional.normalize(network.features(seen).float(), dim=1)
    like = features @ features[samples.place["cat/00 ☃.jpg"]]
    like[samples.partition.conflicting] = -2
    like[samples.place["cat/00 ☃.jpg"]] = -2
    expected = [samples.ids[i] for i in like.topk(len(found["near"])).indices.tolist()]
    assert [one["id"] for one in found["near"]] == expected


def image(address: str, name: str) -> tuple[str, Image.Image]:
    status, headers, body = ask(address, f"image?{urlencode({'id': name})}")
    assert status == 200
    return headers["Content-Type"], Image.open(io.BytesIO(body))


def test_the_whole_photo_is_shown_and_the_kept_pixels_once_it_is_gone(serve, audit):
    address = serve(audit)
    kind, photo = image(address, "dog's <b>/05 ☃.jpg")
    assert (kind, photo.size) == ("image/jpeg", (WIDE, HIGH))
    assert image(address, "cat/03 ☃.jpg")[1].size == (HIGH, WIDE), "as it was taken"
    with Image.open("photos/dog's <b>/05 ☃.jpg") as kept:
        difference = np.asarray(photo, np.float32) - np.asarray(kept.convert("RGB"), np.float32)
    assert np.abs(difference).mean() < 20
    side = open_run(audit).pixels.shape[1]
    Path("photos/dog's <b>/05 ☃.jpg").unlink()
    kind, pixels = image(address, "dog's <b>/05 ☃.jpg")
    assert (kind, pixels.size) == ("image/png", (side, side))


def test_a_very_large_photo_is_sent_no_larger_than_a_screen(serve, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path("large", name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (4000, 1000), (i * 40, 0, 0)).save(f"large/{name}/{i}.png")
    run("identify", "large", "--size", 64, "--identify", "random", "--device", "cpu", "--out", "audit")
    assert image(serve(Path("audit")), "a/1.png")[1].size == (1600, 400)


def test_the_command_that_the_page_gives_runs_as_it_is(serve, run, audit):
    """It says all that loading the images took, though one of them cannot be read."""
    address = serve(audit)
    command = shlex.split(get(address, "about")["command"])
    assert command[:2] == ["unskew", "train"]
    save_corrections(audit / "corrections.csv", {"cat/00 ☃.jpg": "label wrong"})
    run(*command[1:], *MODEL, "--epochs", 1, "--out", "next")

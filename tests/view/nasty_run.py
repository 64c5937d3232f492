"""A run folder whose names are as bad as names can be, a server of it, and how a test asks it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import torch
import uvicorn
import yaml

import unskew
from unskew.data.partition import Partition
from unskew.models.factory import model_factory
from unskew.models.saved import save_model
from unskew.view.app import Viewer
from unskew.view.samples import open_run
from unskew.view.serve import listen

CLASSES = ["<script>alert('class')</script>", 'quote" onerror="alert(1)', "ünï/cøde ☃ </option>"]
BAD = [
    "../../../etc/passwd", "<script>alert('id')</script>", '"><img src=x onerror=alert(2)>', "a&b=c#d?e+f%2e%2e%2f",
    "日本/ファイル.png", "line\nbreak\ttab", "back\\slash", "  spaces  ", "'; drop table", "</ul></main>{{ 7*7 }}",
]  # fmt: skip
COUNT, EPOCHS, SIZE = 150, 4, 16


def write_run(folder: Path, count: int = COUNT, size: int = SIZE, bad: bool = True, model: bool = True) -> Path:
    """Every tenth sample conflicts, and was always taken for the next class; sample 20 was right once."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    labels = np.arange(count) % 3
    ids = [f"{i:06d}" for i in range(count)]
    if bad:
        ids[: len(BAD)] = BAD
    images = random.integers(0, 256, (count, size, size, 3), np.uint8)
    np.savez(folder / "data.npz", images=images, labels=labels, ids=np.array(ids), class_names=np.array(CLASSES))
    data = unskew.load(str(folder / "data.npz"))
    conflicting = torch.arange(count) % 10 == 0
    wrong = (data.labels + 1) % 3
    predictions = torch.where(conflicting, wrong, data.labels)[:, None].repeat(1, EPOCHS)
    predictions[20, 2] = data.labels[20]
    score = (predictions != data.labels[:, None]).float().mean(1)
    partition = Partition.of(data, conflicting, score, "ph", predictions=predictions.to(torch.int16))
    partition.save(folder / "partition.csv")
    config = {"data": str(folder / "data.npz"), "identify": {"name": "ph"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    if model:
        make = model_factory("cnn", 3, size)
        save_model(make(), make.describe(), folder / "identify.safetensors", CLASSES)
    return folder


@contextmanager
def serving(folder: Path, token: str = "token") -> Iterator[str]:
    with listen(0) as listening:
        port = listening.getsockname()[1]
        viewer = Viewer(open_run(folder), folder, device="cpu")
        config = uvicorn.Config(viewer.app(token, port), log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/{token}/"
        finally:
            server.should_exit = True
            thread.join(10)


def ask(address: str, path: str, method: str = "GET", body: object = None, **headers: str) -> Any:
    """Status, headers and body; JSON where it is."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    sending = json.dumps(body) if body is not None and not isinstance(body, bytes) else body
    connection.request(method, parts.path + path, sending, sent)
    answer = connection.getresponse()
    read = answer.read()
    connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return answer.status, answer.headers, json.loads(read) if is_json else read


def get(address: str, path: str, **query: object) -> Any:
    status, _, body = ask(address, f"{path}?{urlencode(query)}")
    assert status == 200, body
    return body


def near(address: str, name: str) -> dict:
    """The neighbours, once they are ready."""
    for _ in range(100):
        found = get(address, "near", id=name)
        if found["state"] != "working":
            return found
        time.sleep(0.1)
    raise AssertionError("it never ended")


def mark(address: str, name: object, value: object, **headers: str) -> Any:
    return ask(address, "mark", "POST", {"id": name, "mark": value}, Content_Type="application/json", **headers)


def ids(page) -> set[str]:
    return {sample["id"] for sample in page["samples"]}

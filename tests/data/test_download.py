"""Against a real server on this machine, with a small archive in the true layout."""

import hashlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from unskew.data import download as module
from unskew.data.download import ARCHIVES, Archive, download
from unskew.errors import UnskewError


def packed(*names: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"data"))
    return file.getvalue()


GOOD = packed("cifar-10-batches-py/data_batch_1", "cifar-10-batches-py/test_batch")


@pytest.fixture
def server(monkeypatch):
    """Serves ``server.body``; ``server.asked`` counts."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            http.asked += 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(http.body)))
            self.end_headers()
            self.wfile.write(http.body)

        def log_message(self, format, *args): ...

    http = HTTPServer(("127.0.0.1", 0), Answer)
    http.body, http.asked = GOOD, 0
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{http.server_port}/cifar-10-python.tar.gz"
    known = Archive(address, hashlib.md5(GOOD).hexdigest(), "cifar-10-batches-py")
    monkeypatch.setitem(ARCHIVES, "cifar10", known)
    yield http
    http.shutdown()
    http.server_close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_fetched_checked_unpacked_and_not_fetched_again(server, tmp_path):
    folder = download("cifar10", tmp_path / "data")
    assert names(folder) == ["data_batch_1", "test_batch"]
    assert names(tmp_path / "data") == ["cifar-10-batches-py"]
    assert download("cifar10", tmp_path / "data") == folder
    assert server.asked == 1


def test_a_damaged_answer_leaves_nothing(server, tmp_path):
    server.body = GOOD[:-10]
    with pytest.raises(UnskewError, match="damaged or not the file we know"):
        download("cifar10", tmp_path)
    assert names(tmp_path) == []


def test_an_archive_that_reaches_outside_is_refused(server, tmp_path, monkeypatch):
    server.body = packed("../outside")
    monkeypatch.setitem(
        ARCHIVES, "cifar10", Archive(ARCHIVES["cifar10"].address, hashlib.md5(server.body).hexdigest(), "x")
    )
    with pytest.raises(UnskewError, match="cannot be unpacked"):
        download("cifar10", tmp_path / "data")
    assert not (tmp_path / "outside").exists()


def test_no_network_says_what_to_do(server, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(UnskewError, match="cannot be reached .*--data-dir"):
        download("cifar10", tmp_path)


def test_an_unknown_name(tmp_path):
    with pytest.raises(UnskewError, match="did you mean cifar10"):
        download("cifar", tmp_path)


def test_the_real_address_is_the_official_one():
    assert module.ARCHIVES["cifar10"].address.startswith("https://www.cs.toronto.edu/~kriz/")

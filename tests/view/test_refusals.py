"""What `unskew view` refuses, and how its command begins and ends."""

import json
import os
import socket
import subprocess
import sys
import time
from urllib.parse import quote, urlencode, urlsplit

import pytest
from nasty_run import COUNT, ask, get, mark, write_run

from command_line import MODEL, rows
from unskew.data.corrections import save_corrections
from unskew.view.samples import open_run

# Refusals


def test_only_what_the_data_calls_a_sample_is_one(serve, folder):
    address = serve(folder)
    (folder / "secret.png").write_bytes(b"secret")
    for name in ("../secret.png", "secret.png", str(folder / "secret.png"), "../../../etc/shadow", "", "\0"):
        for path in ("image", "thumbnail", "sample", "near"):
            assert ask(address, f"{path}?{urlencode({'id': name})}")[0] == 404
        assert mark(address, name, "aligned")[0] == 404
    for path in (
        "../config.yaml",
        "%2e%2e/config.yaml",
        "..%2fconfig.yaml",
        "config.yaml",
        "view.py",
        quote("../../etc/passwd"),
    ):
        assert ask(address, path)[0] in (403, 404)
    assert not (folder / "corrections.csv").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:PORT"}, 200),
        ({"Origin": "http://127.0.0.1:PORT"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:PORT"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1:PORT"}, 403),
    ],
)
def test_other_hosts_and_origins_are_refused(serve, folder, headers, status):
    address = serve(folder)
    port = str(urlsplit(address).port)
    headers = {name: value.replace("PORT", port) for name, value in headers.items()}
    assert ask(address, "about", **headers)[0] == status
    assert mark(address, "000020", "aligned", **headers)[0] == status
    assert (folder / "corrections.csv").exists() == (status == 200)


def test_without_the_token_nothing_is_answered(serve, folder):
    address = serve(folder)
    root = address.removesuffix("token/")
    for path in ("", "about", "tokem/about", "token2/about", "TOKEN/about", "/token/about", "favicon.ico"):
        assert ask(root, path)[0] == 403
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as raw:  # HTTP/1.0 without a host
        raw.sendall(b"GET /token/about HTTP/1.0\r\n\r\n")
        assert b" 403 " in raw.recv(200)


def test_a_correction_must_be_json_and_short(serve, folder):
    address = serve(folder)
    body = json.dumps({"id": "000020", "mark": "aligned"}).encode()
    assert ask(address, "mark", "POST", body, Content_Type="text/plain")[0] == 415, "what a foreign form could send"
    for wrong in (b"", b"[]", b'{"id": "000020"}', b"\xff"):
        assert ask(address, "mark", "POST", wrong, Content_Type="application/json")[0] == 400
    assert mark(address, "000020", "delete")[0] == 400
    assert mark(address, ["000020"], "aligned")[0] == 404
    assert ask(address, "mark", "POST", b"x" * 100_000, Content_Type="application/json")[0] == 413
    assert ask(address, "mark")[0] == 405
    assert not (folder / "corrections.csv").exists()


def test_every_answer_says_what_the_browser_may_do(serve, folder):
    address = serve(folder)
    for path in ("", "view.js", "about", "nothing", "thumbnail?id=000020"):
        headers = ask(address, path)[1]
        assert "script-src 'self'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in headers


# The command


def test_the_command_serves_this_machine_only_and_closes(folder, environment):
    command = [sys.executable, "-m", "unskew", "view", str(folder), "--device", "cpu"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        line = process.stdout.readline()
        address = line.split()[1]
        parts = urlsplit(address)
        assert parts.hostname == "127.0.0.1"
        assert len(parts.path) > 30, "a token that cannot be guessed"
        assert get(address, "about")["count"] == COUNT
        listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True).stdout
        if listening:
            rows_of = [row.split() for row in listening.splitlines()[1:]]
            (bound,) = [row[1] for row in rows_of if row[1].endswith(f":{parts.port:04X}") and row[3] == "0A"]
            assert bound.startswith("0100007F"), "bound to 127.0.0.1"
        process.send_signal(2)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Closed." in out
    assert err == ""


def test_a_run_folder_that_is_incomplete_is_told(cli, run, folder, tmp_path, pictures, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for where, told in [("nowhere", "no run folder nowhere"), (tmp_path, "has no partition.csv")]:
        outcome = cli("view", where)
        assert (outcome.status, told in outcome.err) == (2, True), outcome.err
    pictures(tmp_path / "photos")
    run("train", "photos", "--epochs", 1, *MODEL, "--method", "erm", "--out", "erm")
    assert "its method needed none" in cli("view", "erm").err
    (folder / "data.npz").rename(tmp_path / "moved.npz")
    outcome = cli("view", folder)
    assert (outcome.status, "--data SOURCE" in outcome.err) == (2, True)
    (folder / "config.yaml").unlink()
    assert "say it with --data SOURCE" in cli("view", folder).err
    assert "no sample in common" in cli("view", folder, "--data", "photos").err
    (folder / "corrections.csv").write_text("nonsense")
    assert "no column 'id'" in cli("view", folder, "--data", "moved.npz").err
    assert "port 1 cannot" in cli("view", folder, "--data", "moved.npz", "--port", 1).err or os.geteuid() == 0
    (folder / "partition.history.npz").unlink()
    plain = open_run(folder, str(tmp_path / "moved.npz"))
    assert plain.predicted is None


def test_a_run_that_left_samples_out_can_be_viewed(serve, run, folder, tmp_path):
    save_corrections(
        folder / "corrections.csv", {"000030": "label wrong", "000040": "label wrong", "000050": "label wrong"}
    )
    given = ("--partition", folder, "--corrections", folder, "--epochs", 1, *MODEL)
    run("train", folder / "data.npz", *given, "--out", tmp_path / "next")
    address = serve(tmp_path / "next")
    assert get(address, "about")["count"] == len(rows(tmp_path / "next/partition.csv"))
    assert get(address, "samples", text="000020")["total"] in (0, 1)


def test_two_hundred_thousand_samples_are_quick(serve, tmp_path):
    folder = write_run(tmp_path / "many", count=200_000, size=4, model=False)
    address = serve(folder)
    for query in ({}, {"label": 1, "low": 0.5}, {"text": "19999"}, {"page": 3000}, {"mark": "none", "order": "data"}):
        started = time.perf_counter()
        page = get(address, "samples", **query)
        assert time.perf_counter() - started < 1, query
        assert page["samples"]

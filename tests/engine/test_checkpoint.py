import errno
import os
import pickle

import pytest
import torch

from unskew.engine.checkpoint import load_checkpoint, load_into, save_checkpoint
from unskew.errors import UnskewError
from unskew.files import replacing, write_text

IDENTITY = {"method": "erm", "lr": 0.1}


def test_there_and_back(tmp_path):
    path = tmp_path / "c.pt"
    save_checkpoint(path, IDENTITY, {"epoch": 3, "method": {"w": torch.arange(4.0)}, "rows": [{"loss": 0.5}]})
    state = load_checkpoint(path, IDENTITY)
    assert state["epoch"] == 3
    assert state["rows"] == [{"loss": 0.5}]
    assert torch.equal(state["method"]["w"], torch.arange(4.0))


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.95])
def test_a_truncated_checkpoint(tmp_path, keep):
    path = tmp_path / "c.pt"
    save_checkpoint(path, IDENTITY, {"w": torch.rand(1000)})
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(len(whole) * keep)])
    with pytest.raises(UnskewError, match="remove it"):
        load_checkpoint(path, IDENTITY)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("write", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
def test_a_pickle_that_tries_to_run_code_does_not(tmp_path, write):
    write({"format": 1, "identity": Evil(tmp_path / "ran")}, tmp_path / "c.pt")
    with pytest.raises(UnskewError, match="was not opened"):
        load_checkpoint(tmp_path / "c.pt", IDENTITY)
    assert not (tmp_path / "ran").exists()


def test_something_else_entirely(tmp_path):
    for other in ([1, 2, 3], {"format": 1}, {"weights": torch.ones(2)}):
        torch.save(other, tmp_path / "c.pt")
        with pytest.raises(UnskewError, match="not a checkpoint of this version"):
            load_checkpoint(tmp_path / "c.pt", IDENTITY)


def test_weights_of_another_model(tmp_path):
    with pytest.raises(UnskewError, match="of another model .*size mismatch"):
        load_into(torch.nn.Linear(2, 2), torch.nn.Linear(3, 2).state_dict(), tmp_path / "c.pt")


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "c.pt"
    save_checkpoint(path, IDENTITY, {"epoch": 1})
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(UnskewError, match="No space left on device.*untouched"):
        save_checkpoint(path, IDENTITY, {"epoch": 2})
    assert load_checkpoint(path, IDENTITY)["epoch"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["c.pt"], "nothing half-written is left"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's /dev/full")
def test_a_truly_full_device_is_told_in_one_sentence():
    """torch reports it as a RuntimeError of its own; /dev/full is as full as a disk can be."""
    import pathlib

    from unskew.engine import checkpoint

    class ToFull:
        def __enter__(self):
            return pathlib.Path("/dev/full")

        def __exit__(self, kind, error, trace):
            if isinstance(error, OSError):
                raise UnskewError(f"could not be written ({error.strerror or error})") from error

    original, checkpoint.replacing = checkpoint.replacing, lambda path: ToFull()  # type: ignore[assignment]
    try:
        with pytest.raises(UnskewError, match="could not be written"):
            checkpoint.save_checkpoint(pathlib.Path("c.pt"), IDENTITY, {"w": torch.rand(100_000)})
    finally:
        checkpoint.replacing = original


def test_a_file_is_whole_or_not_there(tmp_path):
    def interrupted() -> None:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    write_text(tmp_path / "deep" / "a.txt", "whole")
    assert (tmp_path / "deep" / "a.txt").read_text() == "whole"


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnskewError, match="could not be written"):
        write_text(tmp_path / "file" / "a.txt", "x")

"""Serve a run to this machine, until Ctrl-C."""

import secrets
import socket
import webbrowser
from pathlib import Path

from unskew.commands import say, tell
from unskew.errors import UnskewError
from unskew.run_folder import CORRECTIONS
from unskew.view.samples import open_run

ADDRESS = "127.0.0.1"


def view(folder: Path, data: str | None, data_dir: Path | None, port: int, device: str, browse: bool) -> None:
    try:
        import uvicorn

        from unskew.view.app import Viewer
    except ImportError as error:
        raise UnskewError(f"unskew view needs packages ({error}): pip install 'unskew[view]'.") from error
    samples = open_run(folder, data, data_dir)
    samples.ready()
    viewer = Viewer(samples, folder, device)
    viewer.marks.current()  # corrections that cannot be read are told now
    if samples.missing:
        tell([f"{samples.missing} samples of the partition are not in {samples.name} any longer, and not shown"])
    with listen(port) as listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        address = f"http://{ADDRESS}:{port}/{token}/"
        say(f"{samples.name}: {len(samples)} samples, {int(samples.conflicting.sum())} of them suspected.")
        say(f"Open {address} (this machine only; Ctrl-C ends). Corrections go to {folder / CORRECTIONS}.")
        options = uvicorn.Config(
            viewer.app(token, port), log_level="warning", access_log=False, lifespan="off", server_header=False
        )
        if browse:
            webbrowser.open(address)
        try:
            uvicorn.Server(options).run(sockets=[listening])
        except KeyboardInterrupt:
            say("Closed.")


def listen(port: int) -> socket.socket:
    try:
        return socket.create_server((ADDRESS, port))
    except (OSError, OverflowError) as error:
        raise UnskewError(f"port {port} cannot be used ({error}): choose another, or leave out --port.") from error

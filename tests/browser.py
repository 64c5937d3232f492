"""A real Chromium for the tests of pages, and axe-core for their accessibility; a test skips where there is none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parent.parent
AXE = ROOT / "node_modules/axe-core/axe.min.js"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@contextmanager
def watched(browser: Any, expected: str = "", **options: Any) -> Iterator[Any]:
    """A page that must not ask any other machine, nor have an error (but one that says ``expected``), nor open a dialog
    as an injected script would."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(10_000)
    wrong: list[str] = []
    page.on("request", lambda request: wrong.append(f"asked {request.url}") if _elsewhere(request.url) else None)
    page.on("pageerror", lambda error: wrong.append(f"error {error}"))
    page.on("console", lambda said: wrong.append(f"console {said.text}") if _bad(said) else None)
    page.on("dialog", lambda dialog: dialog.accept() if dialog.type == "beforeunload" else unwanted(dialog))

    def unwanted(dialog: Any) -> None:
        wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    yield page
    context.close()
    assert [one for one in wrong if not expected or expected not in one] == []


def _bad(said: Any) -> bool:
    return said.type == "error" and "the server responded with a status of" not in said.text


def _elsewhere(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in ("file", "data", "blob", "about") and parts.hostname != "127.0.0.1"


def serious(page: Any) -> list[str]:
    """What axe-core finds on the page that is serious or critical."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm install --no-save axe-core")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['target']} {one['nodes'][0].get('failureSummary', '')}" for one in bad]

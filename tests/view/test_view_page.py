"""`unskew view` in a real browser: by mouse, by keyboard alone, with bad names, two viewers and a full disk."""

import errno
import os
import time

import pytest
from nasty_run import BAD, CLASSES, COUNT, write_run

from browser import serious, watched
from command_line import MODEL, rows
from unskew.data.corrections import load_corrections


def opened(page, address: str):
    page.goto(address)
    page.wait_for_selector(".card")
    return page


def says(page, where: str, text: str) -> None:
    """Sooner or later."""
    from playwright.sync_api import expect

    expect(page.locator(where)).to_have_text(text)


def shown(page) -> list[str]:
    return page.locator(".card .id").evaluate_all("nodes => nodes.map(node => node.title)")


def until(check, seconds: float = 8) -> None:
    """Wait for what the page causes elsewhere."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_filters_search_and_pages(browser, serve, folder):
    with watched(browser) as page:
        opened(page, serve(folder))
        assert page.locator("#count").inner_text() == f"{COUNT} samples"
        page.select_option("#f-side", "conflicting")
        says(page, "#count", "15 samples")
        page.select_option("#f-label", "1")
        says(page, "#count", "5 samples")
        page.fill("#f-low", "0.7")
        page.fill("#f-high", "0.8")
        says(page, "#count", "0 samples")
        page.get_by_role("button", name="Reset").click()
        says(page, "#count", f"{COUNT} samples")
        page.fill("#f-text", "00002")
        says(page, "#count", "10 samples")
        page.reload()
        page.wait_for_selector(".card")
        assert page.locator("#count").inner_text() == "10 samples", "a reload keeps what was asked for"
        page.get_by_role("button", name="Reset").click()
        page.get_by_role("button", name="Next").click()
        says(page, "#page", "page 2 of 3")
        page.select_option("#f-predicted", "2")
        says(page, "#page", "page 1 of 1")


def test_bad_names_are_text_in_the_page(browser, serve, folder):
    with watched(browser) as page:
        opened(page, serve(folder))
        page.select_option("#f-order", "data")
        page.wait_for_selector("li:first-child > .card .id[title^='../']")
        assert shown(page)[: len(BAD)] == BAD
        for i, name in enumerate(BAD):
            page.locator(".card").nth(i).click()
            page.wait_for_selector("#d-facts dd")
            assert page.locator("#d-id").text_content() == name
            assert page.locator("#d-facts dd").first.text_content() == CLASSES[i % 3]
            until(lambda: page.evaluate("document.getElementById('d-image').naturalWidth") == 16)
            page.keyboard.press("c")
            says(page, "#d-saved", "Saved: conflicting")
            page.keyboard.press("Escape")
        options = page.locator("#f-predicted option").all_text_contents()
        assert options[1:] == CLASSES
        assert page.locator("script").count() == 1
    assert load_corrections(folder / "corrections.csv") == dict.fromkeys(BAD, "conflicting")


def test_by_keyboard_alone_and_into_training(browser, serve, run, folder, tmp_path):
    """From the address to a trained model, without a mouse."""
    with watched(browser) as page:
        opened(page, serve(folder))
        page.keyboard.press("/")
        page.keyboard.type("0000")
        says(page, "#count", "90 samples")
        page.keyboard.press("Enter")  # to the first sample
        page.wait_for_selector("li:first-child > .card:focus")
        ids = shown(page)
        page.keyboard.press("w")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("a")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_selector("#detail[open]")
        page.wait_for_selector("#d-near li")
        assert page.locator("#d-near li").count() == 8
        assert page.locator("#d-history li").count() == 4
        page.keyboard.press("c")
        page.keyboard.press("ArrowRight")
        says(page, "#d-id", f"{ids[3]}")
        page.keyboard.press("w")
        page.keyboard.press("u")
        says(page, "#d-saved", "Saved: no mark")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.querySelector('.id').title") == ids[3], "focus comes back"
        page.keyboard.press("]")
        says(page, "#page", "page 2 of 2")
        assert page.evaluate("document.activeElement.className").startswith("card")
        page.keyboard.press("ArrowLeft")
        says(page, "#page", "page 1 of 2")
        page.wait_for_selector("li:last-child > .card:focus")
        page.keyboard.press("Home")
        page.keyboard.press("Shift+Tab")
        assert page.evaluate("document.activeElement.id") == "after"
        page.keyboard.press("c")  # letters do nothing outside a sample
    corrections = folder / "corrections.csv"
    assert load_corrections(corrections) == {ids[0]: "label wrong", ids[1]: "aligned", ids[2]: "conflicting"}
    run("train", folder / "data.npz", "--partition", folder, "--corrections", corrections, "--epochs", 1, *MODEL,
        "--out", tmp_path / "next")  # fmt: skip
    sides = {row["id"]: row["conflicting"] for row in rows(tmp_path / "next/partition.csv")}
    assert ids[0] not in sides
    assert sides.get(ids[1], "0") == "0", "unless it is held out"
    assert sides.get(ids[2], "1") == "1"


def test_a_key_right_after_closing_marks_the_sample_last_seen(browser, serve, folder):
    with watched(browser) as page:
        opened(page, serve(folder))
        ids = shown(page)
        for close in ("Escape", "button"):
            page.locator(".card").nth(0).focus()
            page.keyboard.press("Enter")
            page.wait_for_selector("#detail[open]")
            page.keyboard.press("ArrowRight")
            says(page, "#d-id", ids[1])
            if close == "button":
                page.locator("#d-close").click()
            else:
                page.keyboard.press("Escape")
            page.keyboard.press("a" if close == "button" else "w")
            wanted = "aligned" if close == "button" else "label wrong"
            says(page, "li:nth-child(2) > .card .badge", wanted)
            assert page.locator(".badge").count() == 1


def test_two_viewers_see_each_other(browser, serve, folder):
    address = serve(folder)
    with watched(browser) as one, watched(browser) as two:
        for page in (one, two):
            opened(page, address)
        one.locator(".card").nth(0).focus()
        one.keyboard.press("a")
        two.locator(".card").nth(1).focus()
        two.keyboard.press("w")
        until(lambda: (folder / "corrections.csv").exists() and len(load_corrections(folder / "corrections.csv")) == 2)
        one.reload()
        one.wait_for_selector(".card")
        assert one.locator(".badge").all_text_contents() == ["aligned", "label wrong"]


def test_a_full_disk_is_said_and_the_correction_kept_until_it_is_saved(browser, serve, folder, monkeypatch):
    with watched(browser) as page:
        opened(page, serve(folder))
        name = shown(page)[0]

        def full(descriptor):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            page.locator(".card").nth(0).focus()
            page.keyboard.press("w")
            page.wait_for_selector("#trouble:not([hidden])")
            said = page.locator("#trouble").inner_text()
            assert "No space left on device" in said
            assert "1 correction is kept on this page" in said
            assert page.locator(".badge").inner_text() == "label wrong, not saved"
            assert not (folder / "corrections.csv").exists()
            page.reload()
            page.wait_for_selector(".badge")
            assert page.locator(".badge").inner_text() == "label wrong, not saved", "a reload keeps it"
        page.get_by_role("button", name="Try again").click()
        says(page, ".badge", "label wrong")
        assert page.locator("#trouble").is_hidden()
    assert load_corrections(folder / "corrections.csv") == {name: "label wrong"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(browser, serve, folder, scheme):
    with watched(browser, color_scheme=scheme) as page:
        opened(page, serve(folder))
        page.locator(".card").nth(0).focus()
        page.keyboard.press("w")
        page.wait_for_selector(".badge:not(.pending)")
        assert serious(page) == []
        for button, dialog in (("#how", "#command"), ("#help", "#keys")):
            page.locator(button).click()
            page.wait_for_selector(f"{dialog}[open]")
            assert serious(page) == []
            page.keyboard.press("Escape")
        page.locator(".card").nth(1).click()
        page.wait_for_selector("#d-near li")
        assert serious(page) == []


def test_a_phone_needs_no_sideways_scrolling(browser, serve, folder):
    with watched(browser, viewport={"width": 360, "height": 700}) as page:
        opened(page, serve(folder))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator(".card").nth(0).click()
        page.wait_for_selector("#d-near li")
        assert page.evaluate("document.getElementById('detail').scrollWidth <= innerWidth")


def test_the_first_page_of_two_hundred_thousand_is_there_within_a_second(browser, serve, tmp_path):
    folder = write_run(tmp_path / "many", count=200_000, size=4, model=False)
    address = serve(folder)
    with watched(browser) as page:
        took = []
        for _ in range(3):
            started = time.perf_counter()
            opened(page, address)
            took.append(time.perf_counter() - started)
        assert min(took) < 1

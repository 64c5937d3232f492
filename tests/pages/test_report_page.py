"""report.html in a real browser, opened from disk: sorting, filtering, bad names, accessibility, phone and print."""

from dataclasses import replace
from pathlib import Path

import pytest

import unskew
from browser import serious, watched
from unskew.testing import TinyBackbone, tiny_data

NASTY = ["<script>alert('class')</script>", 'quote" onerror="alert(1)', "ünï/cøde ☃"]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    data = tiny_data(96)
    ids = [f"<img src=x onerror=alert(3)>/{NASTY[i % 3]}/{i}" for i in range(len(data))]
    data = replace(data, ids=ids, class_names=NASTY, name="<b>bad</b> names")
    options = {"model": TinyBackbone(), "device": "cpu", "epochs": 3}
    partition = unskew.identify(data, **options)
    runs = [unskew.train(data, partition, method, test=data, **options) for method in ("erm", "smix", "lmix")]
    partition.save(folder / "partition.csv")
    unskew.report(data, partition, runs, folder / "report.html", test=data, command="unskew train x")
    return folder / "report.html"


def test_the_table_sorts_by_mouse_and_by_keyboard(browser, report):
    with watched(browser) as page:
        page.goto(report.as_uri())
        losses = page.locator("#suspect-table tbody td:nth-of-type(5)")
        head = page.locator("#suspect-table th", has_text="mean loss")

        def values() -> list[float]:
            return [float(text) for text in losses.all_text_contents()]

        assert len(values()) > 3
        head.locator("button").click()
        assert values() == sorted(values(), reverse=True)
        assert head.get_attribute("aria-sort") == "descending"
        page.keyboard.press("Enter")
        assert values() == sorted(values())
        assert head.get_attribute("aria-sort") == "ascending"
        page.locator("#suspect-table th", has_text="class").locator("button").click()
        assert head.get_attribute("aria-sort") is None


def test_the_table_filters_by_class_and_by_words(browser, report):
    with watched(browser) as page:
        page.goto(report.as_uri())
        every = page.locator("#suspect-table tbody tr")
        seen = page.locator("#suspect-table tbody tr:visible")
        names = page.locator("#filter-class option").all_text_contents()[1:]
        for name in names:
            page.select_option("#filter-class", label=name)
            assert seen.count() == every.evaluate_all(
                "(rows, name) => rows.filter(r => r.dataset.class === name).length", name
            )
        page.select_option("#filter-class", "")
        page.fill("#filter-text", "no sample is called so")
        assert seen.count() == 0
        assert page.locator("#filter-count").inner_text() == f"0 of {every.count()}"


def test_bad_names_are_text_and_no_script_of_theirs_runs(browser, report):
    with watched(browser, expected="violates the following Content Security Policy") as page:
        page.goto(report.as_uri())
        assert page.locator("h1").inner_text() == "<b>bad</b> names"
        text = page.locator("#suspect-table tbody th").first.text_content()
        assert text is not None
        assert text.startswith("<img src=x onerror=alert(3)>/")
        assert page.locator("img:not([src^='data:'])").count() == 0
        ran = page.evaluate("() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
                            " document.body.append(s); return window.ran === undefined }")  # fmt: skip
        assert ran, "the policy of the page lets no other script run"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(browser, report, scheme):
    with watched(browser, color_scheme=scheme) as page:
        page.goto(report.as_uri())
        for each in page.locator("details").all():
            each.evaluate("node => node.open = true")
        assert serious(page) == []


def test_light_or_dark_can_be_chosen(browser, report):
    with watched(browser, color_scheme="light") as page:
        page.goto(report.as_uri())

        def paper() -> str:
            return page.evaluate("getComputedStyle(document.body).backgroundColor")

        light = paper()
        page.get_by_role("button", name="Switch to dark colours").click()
        assert paper() != light
        page.get_by_role("button", name="Switch to light colours").click()
        assert paper() == light


def test_a_phone_needs_no_sideways_scrolling(browser, report):
    with watched(browser, viewport={"width": 360, "height": 700}) as page:
        page.goto(report.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_print_is_light_whole_and_without_controls(browser, report):
    with watched(browser, color_scheme="dark") as page:
        page.goto(report.as_uri())
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for control in ("nav", "#theme", "#filter"):
            assert page.locator(control).is_hidden()
        assert page.evaluate("getComputedStyle(document.querySelector('.tall')).maxHeight") == "none"
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), (
            "those further down as well"
        )


def test_print_fits_the_paper_and_repeats_the_heads_of_tables(browser, report):
    with watched(browser, viewport={"width": 690, "height": 1000}) as page:  # A4 within its margins
        page.goto(report.as_uri())
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for table in page.locator("table").all():
            box = table.bounding_box()
            assert box is None or box["x"] + box["width"] <= 690, table.text_content()
        heads = page.locator("#suspect-table thead button")
        assert heads.evaluate_all("all => all.every(one => getComputedStyle(one).display === 'contents')"), (
            "Chromium leaves out the text of a box within a head that it repeats"
        )


def test_without_script_everything_can_be_read(browser, report):
    with watched(browser, java_script_enabled=False) as page:
        page.goto(report.as_uri())
        assert page.locator("#suspect-table tbody tr").count() > 3
        assert page.locator("#theme").is_hidden()
        assert page.locator("#filter").is_hidden()

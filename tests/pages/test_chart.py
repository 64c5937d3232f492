import re

import pytest

from unskew.pages.chart import bar_chart, line_chart, nice, strip


def points(chart) -> list[list[tuple[float, ...]]]:
    found = re.findall(r'<polyline points="([^"]*)"', str(chart))
    return [[tuple(map(float, p.split(","))) for p in line.split()] for line in found]


def test_a_chart_spans_its_values_and_names_its_lines():
    chart = str(line_chart("Loss <of> it", {"a": [0.0, 1.0, 0.5], "b&b": [1.0, 1.0, 1.0]}))
    one, two = points(chart)
    (x0, y0), (x1, y1), (x2, y2) = one
    assert x0 < x1 < x2
    assert y1 < y2 < y0, "larger is higher up"
    assert two[0][1] == y1
    assert "b&amp;b" in chart
    assert "Loss &lt;of&gt; it" in chart


def test_what_is_not_a_number_leaves_a_gap_and_what_is_too_high_is_cut():
    (line,) = points(line_chart("x", {"a": [1.0, float("nan"), 2.0, 100.0]}, top=4))
    assert len(line) == 3
    assert min(y for _, y in line) >= 0


def test_a_logarithmic_height_spaces_decades_evenly():
    (line,) = points(line_chart("x", {"a": [1.0, 10.0, 100.0]}, log=True))
    assert line[0][1] - line[1][1] == pytest.approx(line[1][1] - line[2][1], abs=0.11)


def test_one_epoch_and_equal_values_do_not_break_it():
    assert points(line_chart("x", {"a": [3.0]}))
    assert points(line_chart("x", {"a": [0.0, 0.0]}))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.003), (0, 874), (-3, 12), (0, 100), (0.2, 0.9)])
def test_marks_are_round_few_and_enclose(low, high):
    marks = nice(low, high)
    assert marks[0] <= low
    assert marks[-1] >= high
    assert 2 <= len(marks) <= 8


def test_bars_stack_and_say_their_numbers():
    chart = str(bar_chart("Bars", {"0": {"c": 4, "a": 0}, "1": {"c": 0, "a": 100}}, x_label="ŝ", colours=("x", "y")))
    heights = [float(h) for h in re.findall(r'y="[\d.]+" height="([\d.]+)" class="bar', chart)]
    assert heights[0] == pytest.approx(heights[1] / 5, rel=0.01), "as the root of the count"
    assert "0: 4; 1: 100" in chart


def test_a_history_is_said_in_words():
    assert "right wrong" in str(strip([True, False]))
    low, tall = re.findall(r'<path d="([^"]*)"', str(strip([True, False, True], [True, True, False])))
    assert (low.count("M"), tall.count("M")) == (1, 1), "a cell an epoch, none where it was not looked at"

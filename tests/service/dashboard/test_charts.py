"""Charts of the dashboard: colours, shares and intervals, and names that are HTML."""

import json
import math
import re
from html import unescape

import hypothesis.strategies as st
from hypothesis import given

from robandit.service.dashboard import charts
from robandit.service.dashboard.timeline import Column
from robandit.wording import visible

NAMES = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=40, unique=True)


@given(NAMES, st.randoms())
def test_colours_are_unique_and_the_most_used_arms_have_them(arms, rng):
    used = {arm: rng.randint(0, 50) for arm in arms if rng.random() < 0.8}
    colours = charts.coloured(arms, used)
    assert list(colours) == arms
    own = [colour for colour in colours.values() if colour != charts.REST]
    assert len(own) == len(set(own)) == (len(arms) if len(arms) <= charts.COLOURS else charts.COLOURS - 1)
    least = min(used.get(arm, 0) for arm in arms if colours[arm] != charts.REST)
    assert all(used.get(arm, 0) <= least for arm in arms if colours[arm] == charts.REST)


def test_few_arms_have_the_colours_of_their_places():
    arms = list("abcdefgh")
    assert charts.coloured(arms, {"h": 9}) == {arm: f"a{place}" for place, arm in enumerate(arms)}


def chart(columns, arms):
    colours = charts.coloured(arms, {})
    return charts.share_chart(columns, colours, window="1 hour", now=10.0, sampled=False)


def test_bars_fill_their_columns():
    columns = [Column(0.0, {"a": 3, "b": 1}, 4), Column(5.0, {}, 0), Column(10.0, {"b": 2}, 1)]
    text = chart(columns, ["a", "b"])
    heights = {}
    for colour, path in re.findall(r'<path class="(a\d)" d="([^"]+)"', text.split("</svg>")[0]):
        for column, top, high in re.findall(r"M(\d+)\.06,([\d.]+)h\.88v([\d.]+)h", path):
            heights[colour, int(column)] = float(top), float(high)
    assert heights == {("a0", 0): (25.0, 75.0), ("a1", 0): (0.0, 25.0), ("a1", 2): (0.0, 100.0)}
    data = json.loads(unescape(re.search(r'data-columns="([^"]+)"', text)[1]))
    assert data == {
        "times": [0.0, 5.0, 10.0],
        "width": 5.0,
        "arms": [["a", "a0", [3, 0, 0]], ["b", "a1", [1, 0, 2]]],
        "rewards": [4, 0, 1],
    }
    assert 'aria-label="Share of 6 decisions by arm, 1 hour: a 50 %, b 50 %"' in text
    assert "<span>0.8 /s</span>" in text


def test_many_arms_share_a_grey():
    arms = [f"arm{i}" for i in range(50)]
    columns = [Column(0.0, dict.fromkeys(arms, 1), 0), Column(1.0, {}, 0)]
    text = chart(columns, arms)
    data = json.loads(unescape(re.search(r'data-columns="([^"]+)"', text)[1]))
    assert [row[2] for row in data["arms"]] == [[1, 0]] * 7 + [[43, 0]]
    assert data["arms"][-1][:2] == ["other arms", "rest"]


def test_without_decisions_there_is_a_sentence():
    assert "No decisions in this window (1 hour)" in chart([Column(0.0, {}, 0), Column(1.0, {}, 0)], ["a"])


@given(st.text(min_size=1, max_size=30))
def test_names_are_inert(name):
    hostile = f"<script>{name}</script>\"'&"
    text = chart([Column(0.0, {hostile: 1}, 1), Column(1.0, {}, 0)], [hostile])
    assert "<script" not in text
    assert not re.search(r"\son\w+=", text)
    data = json.loads(unescape(re.search(r'data-columns="([^"]+)"', text)[1]))
    assert data["arms"][0][0] == visible(hostile)


def test_an_interval_without_a_limit_fades_to_the_edge():
    axis = charts.limits([(5.0, 2.0, math.inf), (8.0, 6.0, 10.0)])
    assert axis[0] < 2.0
    assert axis[1] > 10.0
    open_ended = charts.interval(5.0, 2.0, math.inf, axis)
    assert open_ended.count('class="fade"') == 1
    assert "H100" in open_ended
    closed = charts.interval(8.0, 6.0, 10.0, axis)
    assert "fade" not in closed
    places = [float(x) for x in re.findall(r"M([\d.]+),", closed)]
    assert all(0.0 <= x <= 100.0 for x in places)
    both = charts.interval(5.0, -math.inf, math.inf, axis)
    assert both.count('class="fade"') == 2


def test_an_axis_for_nothing_and_for_equal_values():
    assert charts.limits([]) == (-0.06, 1.06)
    low, high = charts.limits([(3.0, 3.0, 3.0)])
    assert low < 3.0 < high
    low, high = charts.limits([(0.0, 0.0, 0.0)])
    assert low < 0.0 < high
    assert charts.limits([(1e150, -1e150, math.inf)])[0] < 0.0

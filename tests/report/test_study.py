"""The diagnosis of recorded rewards: tables at 80 columns, and the page's text."""

import io
import json
import math
import re

import numpy as np
import pytest
from rich.console import Console

from helpers import studies
from robandit.diagnostics.study import study
from robandit.recorded.summary import Recorded
from robandit.report.study import study_table, write_study

ALL = ("plain", "hostile", "many", "extreme", "sampled")


def printed(found, width=80):
    console = Console(width=width, file=io.StringIO())
    console.print(study_table(found))
    return console.file.getvalue()


def page(found, tmp_path):
    write_study(found, tmp_path / "page.html", command="robandit diagnose 'a b.csv'")
    return (tmp_path / "page.html").read_text()


def content(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1))


@pytest.mark.parametrize("name", ALL)
def test_tables_fit_80_columns_and_no_number_is_nan(name):
    text = printed(getattr(studies, name)())
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "nan" not in text
    assert "inf" not in text.replace("infinite", "")
    assert "\x1b" not in text
    grids = text.split("Take ")[0]
    assert "…" not in grids.replace("xxx…", "").replace("=…", ""), "cells are not cut off"


def test_the_terminal_says_what_was_read_and_what_follows():
    text = printed(studies.plain())
    assert "latency.csv: 5,502 rewards of 3 arms, negated" in text
    assert "3 bad rows: line 17: the reward is 'n/a'" in text
    assert re.search(r"heavy +4,000 +0 +-4\.\d+ +-\d+.* to -\d", text)
    assert "Heavy tails: the variance of 1 of 3 arms is infinite." in text
    assert "Take " in text
    assert "NOT significant: 'few' has the highest mean" in text
    rows = [line for line in text.splitlines() if line.startswith("few ")]
    assert "unknown" in rows[2]
    assert "too few values" in rows[3]


def test_many_arms_are_cut_short_aloud():
    text = printed(studies.many())
    assert "Shown: the 30 arms with the most rewards, of 40. The page has all." in text
    assert "arm 039" in text
    assert "arm 000  " not in text


def test_names_are_text_in_the_terminal():
    text = printed(studies.hostile())
    assert "[bold]b[/bold]" in text
    assert r"'\x1b[31mred\nline'" in "".join(text.split()), "quoted, since it has what is not seen"
    assert "\u202e" not in text
    assert "(empty)" in text


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_small_whole_and_without_nan(name, tmp_path):
    found = getattr(studies, name)()
    text = page(found, tmp_path)
    assert len(text) < 900_000
    shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", shown)
    assert not re.search(r"\binf\b", shown)
    assert not re.search(r"(src|href)=[\"'](?!#)", text)
    data = content(text)
    assert len(data["arms"]) == min(24, len(found.arms))
    for arm in data["arms"]:
        for side in ("left", "right"):
            assert len(arm[side]["survival"]["x"]) <= 240
            assert arm[side]["survival"]["x"] == sorted(arm[side]["survival"]["x"])
    assert page(found, tmp_path) == text, "the same again"


def test_numbers_of_the_page_are_those_of_the_study(tmp_path):
    found = studies.plain()
    text = page(found, tmp_path)
    heavy = found.arms[1]
    assert heavy.arm == "heavy"
    assert f"{heavy.left.hill.index:.2f}" in text
    assert f"{heavy.means[0].value:.4g}" in text
    assert "robandit diagnose &#x27;a b.csv&#x27;" in text
    assert "line 17" in text
    assert "3 rows left out" in text
    (arm,) = [each for each in content(text)["arms"] if each["label"] == "heavy"]
    curve = arm["left"]["survival"]
    # the farthest of 4,000 rewards, and about 35 % of them beyond the nearest drawn
    assert curve["y"][-1] == pytest.approx(1 / 4000)
    assert curve["y"][0] == pytest.approx(0.35, abs=0.01)
    fit = arm["left"]["fit"]
    slope = (math.log(fit["y"][1]) - math.log(fit["y"][0])) / (math.log(fit["x"][1]) - math.log(fit["x"][0]))
    assert slope == pytest.approx(-heavy.left.hill.index, rel=0.01)
    assert arm["right"]["fit"] is None, "a light tail has no power fitted"


def test_a_sample_is_called_one_and_its_extremes_are_drawn(tmp_path):
    found = studies.sampled()
    text = page(found, tmp_path)
    assert "sample of 4,000" in text
    assert "the rest comes from a random sample of 4,000 rewards" in " ".join(printed(found).split())
    assert "Is the best arm resolved?" not in text
    assert "one arm only" in text
    (arm,) = content(text)["arms"]
    farthest = found.arms[0].record.greatest - found.arms[0].median
    assert arm["right"]["survival"]["x"][-1] == pytest.approx(farthest, rel=1e-3)
    assert arm["right"]["survival"]["y"][-1] == pytest.approx(1 / 20_000)


def test_hostile_names_cannot_leave_their_place(tmp_path):
    text = page(studies.hostile(), tmp_path)
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert "x" * 400 not in text
    assert "\u202e" not in text


def test_names_that_differ_in_blanks_look_different(tmp_path):
    rng = np.random.default_rng(0)
    found = study(Recorded.of({name: rng.normal(size=60) for name in (" a", "a", "a ", "a\u00a0")}))
    names = ["' a'", "a", "'a '", r"'a\xa0'"]
    rows = [line.split("  ")[0] for line in printed(found).splitlines() if re.search(r"  60 +0  ", line)]
    assert sorted(rows) == sorted(names)
    assert sorted(arm["label"] for arm in content(page(found, tmp_path))["arms"]) == sorted(names)


def test_a_rival_with_another_advice_and_a_remark_have_a_line(tmp_path):
    rng = np.random.default_rng(7)
    up, down = rng.exponential(size=2000), 2.0 - rng.exponential(size=2000)
    found = study(Recorded.of({"up": up + 0.03, "down": down}))
    said = "For 'down', which may be the best, too: AdaKL-UCB (left-skewed or symmetric)."
    assert said in " ".join(printed(found).split())
    write_study(found, tmp_path / "page.html", command="x", remarks=["The column <p> is not used."])
    text = (tmp_path / "page.html").read_text()
    assert said.replace("'", "&#x27;") in text
    assert "The column &lt;p&gt; is not used." in text
    console = Console(width=80, file=io.StringIO())
    console.print(study_table(found, remarks=["The column 'p' is not used."]))
    assert "The column 'p' is not used." in console.file.getvalue()


def test_the_power_of_a_part_is_drawn_through_its_extremes(tmp_path):
    (arm,) = content(page(studies.sampled(), tmp_path))["arms"]
    fit, curve = arm["right"]["fit"], arm["right"]["survival"]
    # it begins on the curve, at the last of the 1,000 kept of 20,000 rewards
    assert fit["y"][0] == pytest.approx(studies.sampled().arms[0].right.hill.k / 20_000)
    assert np.interp(fit["x"][0], curve["x"], curve["y"]) == pytest.approx(fit["y"][0], rel=0.05)

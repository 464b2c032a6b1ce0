"""The text and data of the diagnosis page."""

import html
import json
import math
import re

import numpy as np
import pytest

from helpers import studies
from robandit.diagnostics.study import study
from robandit.recorded.summary import Recorded
from robandit.report.study import write_study

ALL = ("plain", "costs", "drifting", "hostile", "many", "extreme", "sampled")


def page(result, tmp_path):
    write_study(result, tmp_path / "page.html", command="robandit diagnose 'a b.csv'")
    return (tmp_path / "page.html").read_text()


def content(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1))


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_small_whole_and_without_nan(name, tmp_path):
    result = getattr(studies, name)()
    text = page(result, tmp_path)
    assert len(text) < 900_000
    shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", shown)
    assert not re.search(r"\binf\b", shown)
    assert not re.search(r"(src|href)=[\"'](?!#)", text)
    data = content(text)
    assert len(data["arms"]) == min(24, len(result.arms))
    for arm in data["arms"]:
        for side in ("left", "right"):
            assert len(arm[side]["survival"]["x"]) <= 240
            assert arm[side]["survival"]["x"] == sorted(arm[side]["survival"]["x"])
    assert page(result, tmp_path) == text, "the same again"


def test_numbers_of_the_page_are_those_of_the_study(tmp_path):
    result = studies.plain()
    text = page(result, tmp_path)
    heavy = result.arms[1]
    assert heavy.arm == "heavy"
    assert f"{heavy.left.hill.index:.2f}" in text
    assert f"{heavy.means[0].value:.4g}" in text
    assert "robandit diagnose &#x27;a b.csv&#x27;" in text
    assert "line 17" in text
    assert "3 rows skipped" in text
    (arm,) = [each for each in content(text)["arms"] if each["label"] == "heavy"]
    curve = arm["left"]["survival"]
    # the farthest of 4,000 rewards, and about 35 % of them beyond the nearest drawn
    assert curve["y"][-1] == pytest.approx(1 / 4000)
    assert curve["y"][0] == pytest.approx(0.35, abs=0.01)
    fit = arm["left"]["fit"]
    slope = (math.log(fit["y"][1]) - math.log(fit["y"][0])) / (math.log(fit["x"][1]) - math.log(fit["x"][0]))
    assert slope == pytest.approx(-heavy.left.hill.index, rel=0.01)
    assert arm["right"]["fit"] is None, "a light tail has no power fitted"


def test_the_page_of_costs_has_their_sign_and_words(tmp_path):
    result, text = studies.costs(), page(studies.costs(), tmp_path)
    shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\breward", shown)
    assert "Costs are minimised." in shown
    assert "has the lowest mean" in shown
    assert "higher by" in shown
    assert "Truncated non-negativity about 0" in shown
    assert content(text)["noun"] == "cost"
    heavy, mirrored = result.arms[1], studies.plain().arms[1]
    assert heavy.means[0].value == -mirrored.means[0].value
    assert f"{heavy.means[0].value:.4g}" in shown
    ours, theirs = (
        next(a for a in content(t)["arms"] if a["label"] == "heavy") for t in (text, page(studies.plain(), tmp_path))
    )
    assert ours["right"]["survival"] == theirs["left"]["survival"]
    assert ours["box"] == [-q for q in reversed(theirs["box"])]


def test_a_sample_is_called_one_and_its_extremes_are_drawn(tmp_path):
    result = studies.sampled()
    text = page(result, tmp_path)
    assert "sample of 4,000" in text
    assert "All other numbers come from a random sample of 4,000 rewards" in text
    assert "Is the best arm significantly better?" not in text
    assert "one arm only" in text
    (arm,) = content(text)["arms"]
    farthest = result.arms[0].record.greatest - result.arms[0].median
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
    result = study(Recorded.of({name: rng.normal(size=60) for name in (" a", "a", "a ", "a\u00a0")}))
    names = ["' a'", "a", "'a '", r"'a\xa0'"]
    assert sorted(arm["label"] for arm in content(page(result, tmp_path))["arms"]) == sorted(names)


def test_advice_for_a_rival_and_remarks_have_a_line(tmp_path):
    rng = np.random.default_rng(7)
    up, down = rng.exponential(size=2000), 2.0 - rng.exponential(size=2000)
    result = study(Recorded.of({"up": up + 0.03, "down": down}))
    line = "'down' may also be the best arm, and is another case: left-skewed or symmetric."
    write_study(result, tmp_path / "page.html", command="x", remarks=["The column <p> is not used."])
    text = (tmp_path / "page.html").read_text()
    assert line.replace("'", "&#x27;") in text
    assert "The column &lt;p&gt; is not used." in text


def test_the_power_of_a_part_is_drawn_through_its_extremes(tmp_path):
    (arm,) = content(page(studies.sampled(), tmp_path))["arms"]
    fit, curve = arm["right"]["fit"], arm["right"]["survival"]
    # it begins on the curve, at the last of the 1,000 kept of 20,000 rewards
    assert fit["y"][0] == pytest.approx(studies.sampled().arms[0].right.hill.k / 20_000)
    assert np.interp(fit["x"][0], curve["x"], curve["y"]) == pytest.approx(fit["y"][0], rel=0.05)


def test_the_chart_over_time_names_only_some_of_many_changed_arms(tmp_path):
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(400, 14)) + 9.0 * (np.arange(400) >= 200)[:, np.newaxis]
    names = [f"arm{i:02}" for i in range(14)]
    result = study(Recorded.of(dict(zip(names, rewards.T, strict=True))), table=rewards)
    assert len(result.drift.changes) == 14
    text = page(result, tmp_path)
    assert len(re.findall("Changed: arm00, .*?arm09 and 4 more\\.", text)) == 2, "in the description and the caption"
    assert "arm09, arm10" not in text


@pytest.mark.parametrize(
    ("mean", "answer"), [(9.0, "No: 'd' has a higher mean (9) but only 19 values. All"), (0.0, "Yes: all")]
)
def test_the_answer_is_only_about_the_arms_that_were_compared(mean, answer, tmp_path):
    rng = np.random.default_rng(0)
    arms = {arm: rng.normal(i, 0.1, 200) for i, arm in enumerate("abc")} | {"d": np.full(19, mean)}
    text = html.unescape(page(study(Recorded.of(arms)), tmp_path))
    assert f"<p>{answer} arms that were compared are excluded. Left out of the comparison" in text
    assert "all other arms" not in text

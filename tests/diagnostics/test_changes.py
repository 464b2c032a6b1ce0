"""What a diagnosis says about changes. The rest of it is tested with the live bandit."""

import numpy as np

import robandit as rb
from robandit.diagnostics.diagnosis import KeptRewards, diagnose, drift_warning_text
from robandit.drift import Alarm, Summary

KEPT = [KeptRewards("eu", 20_000, 20_000, 0, np.random.default_rng(0).normal(size=500))]
ALARM = Alarm("eu", 10_412, 10_430, "level up", Summary(80.0, 120.0, 200.0, 130.0), Summary(240.0, 310.0, 400.0, 315.0))


def test_changes_are_shown_with_their_guarantee():
    text = str(diagnose(rb.UCB1(), KEPT, changes=[ALARM]))
    assert f"  {ALARM}\n" in text
    assert "changes (the probability of any false alarm per arm is at most 1 % for any i.i.d. law):" in text


def test_the_warning_says_what_changed_and_how_sure_that_is():
    text = drift_warning_text(ALARM)
    assert text.startswith(f"{ALARM}.\n")
    assert "at most 1 % for any i.i.d. law" in text


def test_without_changes_the_text_says_nothing_about_them():
    found = diagnose(rb.UCB1(), KEPT)
    assert found.changes == ()
    assert "change" not in str(found)

"""Outcomes enter in the order of the decisions, and only when all earlier decisions of the arm are resolved."""

import json
import math

import numpy as np
import pytest

from robandit.anytime.bernoulli import log_e_value
from robandit.anytime.prefix import ResolvedPrefix


class Slow:
    """The obvious implementation: it keeps everything."""

    def __init__(self):
        self.rows = []
        self.returned = 0

    def decided(self, id):
        self.rows.append([id, False, None])
        return self.new()

    def resolved(self, id, outcome):
        for row in self.rows:
            if row[0] == id:
                row[1:] = [True, outcome]
        return self.new()

    def new(self):
        found = []
        while self.returned < len(self.rows) and self.rows[self.returned][1]:
            found.append(self.rows[self.returned][2])
            self.returned += 1
        return [value for value in found if value is not None]


@pytest.mark.parametrize("seed", range(20))
def test_it_returns_what_the_obvious_implementation_returns(seed):
    rng = np.random.default_rng(seed)
    fast, slow, waiting = ResolvedPrefix(arms=2), [Slow(), Slow()], []
    for step in range(300):
        kind = rng.integers(4)
        arm = int(rng.integers(2))
        if kind == 0:
            id = f"pull-{step}"
            assert fast.observed(arm, step) == slow[arm].decided(id) + slow[arm].resolved(id, step)
        elif kind == 1 or not waiting:
            assert fast.decided(arm, step) == slow[arm].decided(step) == []
            waiting.append((arm, step))
        else:
            arm, id = waiting.pop(int(rng.integers(len(waiting))))
            outcome = None if rng.random() < 0.3 else float(id)
            assert fast.resolved(arm, id, outcome) == slow[arm].resolved(id, outcome)
        if step % 50 == 0:
            fast = ResolvedPrefix.load(json.loads(json.dumps(fast.save())))


def test_what_is_saved_depends_only_on_what_waits():
    one, other = ResolvedPrefix(arms=1), ResolvedPrefix(arms=1)
    one.decided(0, "early")
    one.resolved(0, "early", 1.0)
    for prefix in (one, other):
        prefix.decided(0, "a")
        prefix.observed(0, 0.5)
    assert one.save() == other.save() == [[(True, "a"), (False, 0.5)]]


def test_the_oldest_is_given_up_when_too_many_wait():
    prefix = ResolvedPrefix(arms=1, most=3, lost=-1.0)
    assert [prefix.decided(0, id) for id in "abc"] == [[], [], []]
    assert prefix.resolved(0, "b", 2.0) == []
    assert prefix.decided(0, "d") == [-1.0, 2.0]
    assert prefix.resolved(0, "a", 9.0) == []  # too late
    assert prefix.observed(0, 5.0) == []
    assert prefix.observed(0, 6.0) == [-1.0]
    assert prefix.save() == [[(True, "d"), (False, 5.0), (False, 6.0)]]


def test_what_is_given_up_can_count_as_nothing():
    prefix = ResolvedPrefix(arms=1, most=1)
    prefix.decided(0, "a")
    assert prefix.decided(0, "b") == []
    assert prefix.resolved(0, "b", 1.0) == [1.0]


def test_a_restart_forgets_decisions_and_a_new_arm_has_none():
    prefix = ResolvedPrefix(arms=1)
    prefix.decided(0, "a")
    prefix.restart(0)
    assert prefix.resolved(0, "a", 1.0) == []
    prefix.add_arm()
    assert prefix.observed(1, 1.0) == [1.0]


DAMAGED = [[[(False, 1.0)]], [[(True, "a"), (True, "a")]], [[(True, "a"), (False, 1.0), (False, 1.0)]]]


@pytest.mark.parametrize("saved", DAMAGED)
def test_inconsistent_data_is_refused(saved):
    assert ResolvedPrefix.load(saved, most=2) is None


def false_claims(in_order, runs=100, decisions=300, rate=0.05):
    """Return the share of runs that reject a true limit. Errors are known after 1 decision, successes after 200."""
    claims = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        error = rng.random(decisions) < rate
        known = np.arange(decisions) + np.where(error, 1, 200)
        prefix, total, n, claimed = ResolvedPrefix(arms=1), 0.0, 0, False
        for now in range(decisions):
            prefix.decided(0, now)
            for id in np.flatnonzero(known == now).tolist():
                value = float(error[id])
                for each in prefix.resolved(0, id, value) if in_order else [value]:
                    total, n = total + each, n + 1
                    claimed |= log_e_value(total, n, rate) >= math.log(20)
        claims += claimed
    return claims / runs


def test_late_outcomes_make_no_false_claims_in_the_order_of_decisions():
    assert false_claims(in_order=True) <= 0.05


def test_late_outcomes_make_false_claims_in_the_order_of_arrival():  # the negative control
    assert false_claims(in_order=False) >= 0.95

"""KL-UCB against its formula, on coins and on other rewards in an interval."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.driving import Live
from helpers.duels import SlowIndexPolicy, duel
from helpers.invalid import assert_invalid, raises
from references.slow_quantile_ucb import largest_probability
from robandit.checks import check_policy
from robandit.errors import NotApplicable


class SlowKLUCB(SlowIndexPolicy):
    def __init__(self, arms, lower, upper):
        super().__init__(arms)
        self.lower, self.upper = lower, upper

    def value(self, arm, t):
        n, length = len(self.x[arm]), self.upper - self.lower
        share = math.fsum((x - self.lower) / length for x in self.x[arm]) / n
        return self.lower + length * largest_probability(min(max(share, 0.0), 1.0), n, math.log(t + 1))

    def size(self, arm):
        return 1.0


@pytest.mark.independent("KLUCB")
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-1.0, 0.0), (-3.0, 5.0)])
def test_decisions_are_those_of_the_formula(lower, upper):
    rng = np.random.default_rng(4)
    chances = [0.2, 0.25, 0.9, 0.85]
    live, slow = Live(rb.KLUCB(lower=lower, upper=upper), 4), SlowKLUCB(4, lower, upper)
    coins = duel(live, slow, lambda arm: lower + (upper - lower) * (rng.random() < chances[arm]), 300, tolerance=1e-9)
    assert coins < 10
    live, slow = Live(rb.KLUCB(lower=lower, upper=upper), 4), SlowKLUCB(4, lower, upper)
    assert duel(live, slow, lambda arm: rng.uniform(lower, upper) * 0.5, 300, tolerance=1e-9) < 3


def test_it_passes_the_checks_of_every_policy():
    assert check_policy(rb.KLUCB(lower=-1.0, upper=0.0)) == []


def test_an_interval_that_is_none_is_refused():
    assert_invalid(lambda: rb.KLUCB(lower=1.0, upper=1.0), "upper", "a finite number > lower")
    assert_invalid(lambda: rb.KLUCB(lower=math.nan), "lower", "finite")
    with raises(NotApplicable):
        rb.KLUCB().informed_by(rb.problems.gaussian(means=[0.0, 1.0]))

"""A guardrail pauses arms that keep their limit with a probability of at most alpha: looked at after each outcome, for arms chosen
by what was seen. A test for one look fails under the same conditions.
"""

import math

import numpy as np
from scipy.stats import binom

from helpers.amount import amount
from robandit.anytime.bernoulli import log_e_value

ARMS, RATE, ALPHA, PULLS = 3, 0.05, 0.05, 1_500
RUNS = amount(400, 4_000)


def limits(breaks):
    """Return the fewest errors that break a guardrail, by the number of outcomes."""
    found, errors = [1], 0
    for n in range(1, PULLS + 1):
        while errors <= n and not breaks(errors, n):
            errors += 1
        found.append(errors)
    return np.array(found)


def ever_paused(least):
    """Return the share of runs with a false pause. The next pull goes to the arm that is closest to its limit: the worst choice."""
    rng = np.random.default_rng(40)
    errors, pulls = np.zeros((RUNS, ARMS), dtype=np.int64), np.zeros((RUNS, ARMS), dtype=np.int64)
    paused, run = np.zeros(RUNS, dtype=bool), np.arange(RUNS)
    for _ in range(PULLS):
        arm = np.where(rng.random(RUNS) < 0.2, rng.integers(ARMS, size=RUNS), (least[pulls] - errors).argmin(axis=1))
        pulls[run, arm] += 1
        errors[run, arm] += rng.random(RUNS) < RATE
        paused |= errors[run, arm] >= least[pulls[run, arm]]
    return paused.mean()


def test_false_pauses_are_at_most_alpha():
    least = limits(lambda errors, n: log_e_value(errors, n, RATE) >= math.log(ARMS / ALPHA))
    assert 0.0 < ever_paused(least) <= ALPHA + 2.6 * math.sqrt(ALPHA * (1 - ALPHA) / RUNS)


def test_a_test_for_one_look_fails():
    """The negative control, although it divides alpha by the number of arms, too."""
    tests = binom.isf(ALPHA / ARMS, np.arange(PULLS + 1), RATE) + 1
    assert ever_paused(limits(lambda errors, n: errors >= tests[n])) > 3 * ALPHA

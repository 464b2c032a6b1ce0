"""The detector against a slow reference, and what its guarantee stands on: uniform ranks, fair bets, stakes that add up to 1."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from helpers.detecting import ranks, watch
from references.slow_drift_detector import BETS, SlowDetector
from robandit.drift import detector as module
from robandit.drift.detector import (
    AGE,
    CAPITAL,
    EDGE,
    EXCURSION,
    LENGTH,
    TAU,
    UP,
    WIDTH,
    Z,
    fresh,
    new_state,
    recent,
    restarted,
    weight,
    winner,
)

SALT = 0xDEADBEEFCAFEF00D


# --- the reference --------------------------------------------------------------------------------------------------


def streams_of_two_arms():
    """Rewards with ties, of two arms in turns: arm 0 changes at its 700th, arm 1 begins late and clusters."""
    rng = np.random.default_rng(5)
    for t in range(1100):
        yield 0, np.round(rng.standard_t(1.5) + (1.5 if t >= 700 else 0.0), 1)
        if t >= 300 and t % 2 == 0:
            yield 1, float(np.round(math.sin(t / 40.0) + rng.normal(), 1))


def test_the_state_is_that_of_the_slow_reference():
    d, slow = new_state(2), SlowDetector(2, SALT)
    noticed = []
    for arm, x in streams_of_two_arms():
        expected, raised = slow.watch(arm, x), watch(d, arm, x, SALT)
        its, row = slow.arms[arm], d[arm]
        assert raised == expected
        assert row[Z] == pytest.approx(its.z, rel=1e-12, abs=1e-13)
        assert row[UP] == pytest.approx(its.up, rel=1e-9, abs=1e-9)
        assert row[CAPITAL : CAPITAL + len(BETS)] == pytest.approx(its.capital, rel=1e-8)
        assert (row[AGE], row[LENGTH]) == (len(its.rewards), len(its.reference) + len(its.gaps))
        if len(its.rewards) % 50 == 0 or raised:
            lengths = [its.excursion(k) for k in range(len(BETS))]
            assert row[EXCURSION : EXCURSION + len(BETS)].tolist() == lengths
            assert fresh(d, arm) == lengths[int(np.argmax(its.capital))] == lengths[winner(d, arm)]
            assert [recent(d, arm, back) for back in range(min(256, len(its.rewards)))] == its.rewards[-256:][::-1]
            assert (row[TAU] or None) == (None if its.tau() is None else pytest.approx(its.tau(), rel=1e-9))
        if raised:
            noticed.append((arm, len(its.rewards), fresh(d, arm)))
            restarted(d, arm)
            its.restart()
    (first, length), *_ = [(at, length) for arm, at, length in noticed if arm == 0]
    assert 700 < first < 800
    assert abs(first - length - 700) < 20
    assert len(noticed) > 1, "segments of clustered rewards are compared as well"


def test_compiled_and_interpreted_states_are_the_same():
    """Up to the last digits, where compiled code may fuse a product and a sum."""
    fast, plain = new_state(1), new_state(1)
    values = np.round(np.random.default_rng(1).standard_t(2, size=700), 1)
    with np.errstate(over="ignore"):
        assert module.watch_all(plain, 0, values, 0, np.uint64(SALT)) == len(values)
    for x in values:
        watch(fast, 0, x, SALT)
    np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-12)


def test_a_restart_keeps_the_ring_and_tau_and_empties_the_rest():
    d = new_state(1)
    values = np.random.default_rng(2).normal(size=400)
    for x in values:
        watch(d, 0, x, SALT)
    kept = d[0, module.SEGMENT :].copy()
    restarted(d, 0)
    assert not d[0, : module.SEGMENT].any()
    assert np.array_equal(d[0, module.SEGMENT :], kept)
    assert recent(d, 0, 255) == values[-256]


def test_an_arm_takes_at_most_10_kilobytes():
    assert new_state(3).nbytes == 3 * 8 * WIDTH <= 3 * 10_000


# --- the guarantee --------------------------------------------------------------------------------------------------


def test_the_normal_quantile_is_accurate():
    with mpmath.workdps(30):
        for u in [EDGE, 1e-9, 1e-4, 0.02, 0.075, 0.0750001, 0.3, 0.4999, 0.5, 0.8, 0.925, 0.9999, 1.0 - 1e-9]:
            exact = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(u) - 1)
            assert abs(module.quantile(u) - exact) <= 1e-14 * max(1, abs(exact)), u
    assert module.quantile(0.0) == module.quantile(EDGE) == -module.quantile(1.0)


def factors(u, z, power):
    """The factor of each bet, as the library has it."""
    row = new_state(1)[0]
    row[LENGTH] = 1.0
    module.set_power(row, power)
    module.wager(row, u, z)
    return row[CAPITAL : CAPITAL + len(BETS)] / weight(1.0)


def mean_factors(power, fault=0.0):
    """The mean of every bet over a uniform rank, by pieces between the borders of the tails, in the scale of normal quantiles."""
    last = module.quantile(1.0)
    borders = [
        -last,
        *(module.quantile(a) for a in module.SHARES),
        *(-module.quantile(a) for a in module.SHARES[::-1]),
        last,
    ]
    nodes, weights = np.polynomial.legendre.leggauss(40)
    means = EDGE * (factors(EDGE, -last, power) + factors(1.0 - EDGE, last, power))
    for low, high in itertools.pairwise(borders):
        for node, mass in zip(nodes, weights, strict=True):
            z = (low + high) / 2 + (high - low) / 2 * node
            density = mass * (high - low) / 2 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
            means += density * factors(ndtr(z), z + fault, power)
    return means


def test_every_bet_is_fair():
    """The means are 1, except that ranks beyond EDGE are moved to it, which costs at most P(N(1.6, 1) > quantile) = 3e-7."""
    means = mean_factors(1.0)
    assert len(means) == 12
    assert (means <= 1.0 + 1e-12).all()
    assert (means >= 1.0 - 4e-7).all()
    assert means[6:] == pytest.approx(1.0, abs=1e-13), "a tail's mean does not depend on z"


def test_powers_of_bets_are_not_above_fair():
    for power in (0.9, 0.5, 0.1):
        assert (mean_factors(power) < 1.0).all()


def test_an_unfair_bet_is_noticed():
    """The negative control: a z that is too large by 0.001 gives bets on a rise a mean above 1."""
    assert (mean_factors(1.0, fault=1e-3)[3:6] > 1.0 + 3e-4).all()


def test_the_stakes_add_up_to_less_than_1():
    """A million stakes, and the integral of 1 / (m ln^2 m) for the rest, which is above its sum."""
    million = 10**6
    total = math.fsum(weight(float(n)) for n in range(1, million + 1))
    rest = 1.0 / (2.11 * math.log(million + 1.0))
    assert 0.999 < total + rest < 1.0


LAWS = {
    "continuous": lambda rng, size: rng.lognormal(size=size),
    "coin": lambda rng, size: (rng.random(size) < 0.3) * 1.0,
    "constant": lambda rng, size: np.ones(size),
    "zeros": lambda rng, size: np.where(rng.random(size) < 0.4, 0.0, rng.pareto(1.5, size)),
    "rounded": lambda rng, size: np.round(rng.standard_t(1.5, size)),
}


@pytest.mark.parametrize("law", LAWS)
def test_ranks_are_uniform_and_independent(law):
    """Kolmogorov-Smirnov and the correlation of neighbours at level 1e-3 each, for 60 segments of 600 rewards."""
    u = ranks(LAWS[law](np.random.default_rng(11), (60, 600)))
    for part in (u[:, :256], u[:, 256:]):  # while the reference grows, and after
        assert stats.kstest(part.ravel(), "uniform").pvalue > 1e-3
        assert stats.pearsonr(part[:, 1:].ravel(), part[:, :-1].ravel()).pvalue > 1e-3


@pytest.mark.parametrize("law", ["coin", "constant", "zeros", "rounded"])
def test_ranks_of_atoms_are_not_uniform_if_ties_are_not_broken(law):
    """The negative control."""
    u = ranks(LAWS[law](np.random.default_rng(11), (60, 600)), ties_broken=False)
    assert stats.kstest(u[:, :256].ravel(), "uniform").pvalue < 1e-12

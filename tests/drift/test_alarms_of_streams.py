"""How often the detector raises a false alarm, and how soon it notices a change."""

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

from helpers.amount import amount
from helpers.detecting import alarms
from robandit.drift.detector import DELTA

STREAMS, LENGTH = amount(200, 400), 4_000
MOST = int(stats.binom.isf(1e-4, STREAMS, DELTA))
"""False alarms of all streams: more have probability below 1e-4 if each has one with probability at most DELTA."""

LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "log-normal": lambda rng, size: rng.lognormal(sigma=2.0, size=size),
    "almost without a mean": lambda rng, size: -rng.pareto(1.001, size),
    "without a mean": lambda rng, size: rng.standard_t(0.5, size),
    "die": lambda rng, size: rng.integers(1, 7, size) * 1.0,
    "zeros": lambda rng, size: np.where(rng.random(size) < 0.4, 0.0, rng.pareto(1.5, size)),
    "rare coin": lambda rng, size: (rng.random(size) < 0.01) * 1.0,
    "rounded": lambda rng, size: np.round(rng.standard_t(1.5, size)),
}


@pytest.mark.parametrize("temper", [True, False], ids=["tempered", "untempered"])
@pytest.mark.parametrize("law", LAWS)
def test_false_alarms_are_rare_for_any_law(law, temper):
    streams = LAWS[law](np.random.default_rng(3), (STREAMS, LENGTH))
    assert (alarms(streams, temper) < LENGTH).sum() <= MOST


def clustered(correlation, streams=100):
    noise = np.random.default_rng(4).normal(size=(streams, LENGTH))
    return lfilter([1.0], [1.0, -correlation], noise)


def test_clustered_rewards_raise_false_alarms_and_tempering_prevents_most():
    """The negative control of the test above. Rates of 200 other streams were 1.00 and 0.27; 0.4 is 3 standard errors away."""
    streams = clustered(0.7)
    assert (alarms(streams, temper=False) < LENGTH).mean() > 0.9
    assert (alarms(streams) < LENGTH).mean() < 0.4


def test_strongly_clustered_rewards_are_out_of_reach():
    """A limit that the documentation states: neighbours with a correlation of 0.9 raise false alarms, tempered or not."""
    assert (alarms(clustered(0.9)) < LENGTH).mean() > 0.5


# Before the change, the level bet d needs log(1 / w) more than log(12 / DELTA); after it, it gains d s - d^2 / 2 per reward. With a
# shift of s standard deviations after 2,000 rewards that is (7.1 + 12.4) / best gain: 161, 41 and 10 rewards for s = 0.5, 1, 2.
@pytest.mark.parametrize(("shift", "expected"), [(0.5, 161.0), (1.0, 41.0), (2.0, 10.2), (-1.0, 41.0)])
def test_shifts_are_noticed_as_soon_as_theory_says(shift, expected):
    streams = np.random.default_rng(5).normal(size=(200, 4_000))
    streams[:, 2_000:] += shift
    delay = alarms(streams) - 2_000
    assert (delay < 0).sum() <= stats.binom.isf(1e-4, 200, DELTA)
    noticed = delay[delay >= 0]
    assert np.median(noticed) == pytest.approx(expected, rel=0.2)
    assert np.quantile(noticed, 0.95) < 2.2 * expected


def test_a_grown_tail_is_noticed_although_the_median_stays():
    """Every 20th reward becomes a loss of 1,000: the tail bet (0.02, 3.5) gains about 0.02 a reward more than it stakes."""
    rng = np.random.default_rng(6)
    streams = rng.normal(size=(100, 6_000))
    streams[:, 2_000:][rng.random((100, 4_000)) < 0.05] = -1_000.0
    delay = alarms(streams) - 2_000
    assert np.median(delay) < 600
    assert (delay < 4_000).all()

"""The test of a record for a change: its level, its power, and where it puts the change."""

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

from robandit.drift.record import LEAST, changed_arms, scan

LEVEL = 0.05


def rejected(records, permutations=199, block=None):
    return sum(scan(x, permutations, block).p_value <= LEVEL for x in records)


def test_the_level_is_kept_for_any_law():
    """At most as many of 300 records as Binomial(300, 0.05) exceeds with probability 1e-3."""
    rng = np.random.default_rng(1)
    laws = [
        rng.normal(size=(100, 400)),
        np.where(rng.random((100, 400)) < 0.4, 0.0, -rng.pareto(1.5, (100, 400))),
        (rng.random((100, 400)) < 0.02) * 1.0,
    ]
    count = sum(map(rejected, laws))
    assert stats.binom.ppf(1e-3, 300, LEVEL) / 2 <= count <= stats.binom.isf(1e-3, 300, LEVEL)


def test_clustered_rewards_keep_the_level_because_blocks_are_permuted():
    """The rate of AR(0.7) was 4.5 % of 200 records for another seed; the negative control permutes single rewards (88 %)."""
    records = lfilter([1.0], [1.0, -0.7], np.random.default_rng(2).normal(size=(60, 1_500)))
    assert rejected(records) <= stats.binom.isf(1e-3, 60, 0.06)
    assert rejected(records[:20], block=1) >= 10


def test_a_change_of_level_is_found_where_it_is():
    """A shift of 0.5 standard deviations at 60 % of 1,000 rewards: 7.7 standard errors, and the place is known up to 20 rewards."""
    rng = np.random.default_rng(3)
    found = []
    for sign in (1.0, -1.0):
        records = rng.normal(size=(30, 1_000))
        records[:, 600:] += 0.5 * sign
        found += [(sign, scan(x, 199)) for x in records]
    assert np.mean([each.p_value <= LEVEL for _, each in found]) > 0.95
    assert np.median([abs(each.position - 600) for _, each in found]) < 20
    right = [each.kind == ("level up" if sign > 0 else "level down") for sign, each in found]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("grew", [True, False])
def test_a_change_of_a_tail_is_found(sign, grew):
    rng = np.random.default_rng(4)
    x = rng.normal(size=2_000)
    after = np.arange(2_000) >= 1_200 if grew else np.arange(2_000) < 1_200
    x[after & (rng.random(2_000) < 0.06)] = 50.0
    result = scan(sign * x)
    assert result.p_value <= 0.01
    assert (result.kind, result.grew) == ("high tail" if sign > 0 else "low tail", grew)
    assert abs(result.position - 1_200) < 100
    text = str(changed_arms({"a": sign * x}, LEVEL)[0])
    assert f"its {result.kind} {'grew' if grew else 'shrank'}, " in text


def test_constant_rewards_do_not_change():
    assert scan(np.ones(200)).p_value == 1.0


def test_the_oldest_rewards_may_be_outside_all_blocks():
    """110 rewards are 10 blocks of 11; of 119 rewards 9 are left over."""
    x = np.repeat([0.0, 1.0], [60, 50])
    assert scan(x).position == 60
    assert scan(np.concatenate([np.zeros(9), x])).position == 69


def test_arms_are_tested_together():
    """With 40 arms, 0.05 is reached by arms with p <= 0.00125, so there are more permutations; short records are not tested."""
    rng = np.random.default_rng(5)
    records = {i: rng.normal(size=200) for i in range(40)}
    records[7] = np.concatenate([rng.normal(size=100), rng.normal(2.0, 1.0, size=100)])
    records["short"] = np.concatenate([np.zeros(40), np.ones(LEAST - 41)])
    assert [change.arm for change in changed_arms(records, LEVEL)] == [7]
    assert changed_arms({}, LEVEL) == ()
    assert changed_arms(records, LEVEL) == changed_arms(records, LEVEL)


def test_the_sentence():
    x = np.concatenate([np.full(300, 120.0), np.full(200, 310.0)])
    (change,) = changed_arms({"eu": x}, LEVEL)
    assert str(change) == "arm 'eu' changed around its reward 301 of 500: median 120 -> 310 (p = 0.001)"

"""AdaR-UCB in a live bandit: bounded memory, and what happens when data break what the bound rests on."""

import numpy as np
import pytest

from helpers.amount import amount
from helpers.driving import Live
from helpers.rewards import KINDS
from references.slow_adar_ucb import SlowAdaRUCB
from robandit.policies import AdaRUCB
from robandit.policies.adar import adar_ucb, layout

KIB = 1024


def bytes_per_arm(live):
    return sum(array.nbytes for array in live.s) / live.arms


@pytest.mark.parametrize("kind", ["losses, tail 1.1", "cauchy", "gains"])
def test_a_million_rewards_fit_into_128_kib_per_arm(kind):
    rng = np.random.default_rng(0)
    rewards = np.array([KINDS[kind](rng, arm, 500_000) for arm in range(3)])
    live = Live(AdaRUCB(bonus="tight"), 3, None)
    assert bytes_per_arm(live) < 4 * KIB  # many bandits are small
    pulls = np.bincount(live.replay(rewards, 1_000_000), minlength=3)
    assert pulls.sum() == 1_000_000
    assert bytes_per_arm(live) <= 128 * KIB
    assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert live.s.counts[:, layout.TOP].max() < live.s.limits[0] * 1.25 + 32
    assert live.grown >= 2


def adversarial(rng, n):
    """First rewards of rounds large, second ones small: the threshold never reaches what must be stored."""
    rewards = np.empty((2, 2 * n))
    rewards[:, 0::2] = 1e6 * (1.0 + rng.pareto(1.5, (2, n)))
    rewards[:, 1::2] = 1e-6 * rng.standard_normal((2, n))
    # Some first rewards are of the second ones' size, so that indices do depend on what is trimmed.
    small = rng.random((2, n)) < 0.3
    rewards[:, 0::2][small] = 1e-6 * rng.standard_normal(small.sum())
    return rewards


@pytest.mark.parametrize("horizon", [None, 12_000])
def test_the_adversary_changes_no_decision(horizon):
    """A live bandit thins what it cannot store. The threshold is never near the large rewards, so that is exact, too."""
    steps = 12_000
    rewards = adversarial(np.random.default_rng(1), steps // 2)
    live = Live(AdaRUCB(), 2, horizon)
    chosen = live.replay(rewards, steps)
    assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert live.grown > 0
    if horizon is None:
        assert live.s.cells.max() > 0.0
        assert bytes_per_arm(live) <= 128 * KIB
        assert live.s.counts[:, layout.BIG].max() <= adar_ucb.LIVE_VALUES
    else:
        assert live.s.counts[:, layout.BIG].max() > adar_ucb.LIVE_VALUES / 2
    reference = SlowAdaRUCB(2)
    used = [0, 0]
    for tau in range(1, steps // 2 + 1):
        arm = chosen[2 * tau - 2]
        assert chosen[2 * tau - 1] == arm
        if tau < 400 or tau % 7 == 0:
            assert reference.choose(tau)[0] == arm, tau
        reference.learn(arm, *rewards[arm, used[arm] : used[arm] + 2])
        used[arm] += 2
    found = live.describe()
    for arm in range(2):
        want = reference.precise(arm, steps // 2 + 1)
        assert found["index"][arm] == pytest.approx(float(want.index), rel=1e-11)
        if live.s.cells[arm] == 0.0:
            assert found["share_trimmed"][arm] == float(want.share_trimmed)
        else:
            assert np.isnan(found["share_trimmed"][arm])  # a stored reward stands for several


@pytest.mark.parametrize("pattern", [[1e6, 1e-6], [1.0, 1e6, 1.0, 1e-6], [-1e6, -1e-6, 1e3, 1e-3, 5.0, 1e-2]])
def test_alternating_scales_are_exact(pattern):
    """Whatever stream the large rewards are in: equal ones need one place in the buffer."""
    steps = 20_000
    rewards = np.outer([1.0, 1.01], np.resize(pattern, steps))
    live = Live(AdaRUCB(), 2, None)
    chosen = live.replay(rewards, steps)
    assert live.policy.counters(live.s) == {"fallbacks": 0}
    reference = SlowAdaRUCB(2)
    for arm in range(2):
        x = rewards[arm, : np.count_nonzero(chosen == arm)]
        reference.x[arm], reference.y[arm] = x[0::2], x[1::2]
        exact = reference.terms(arm, steps // 2 + 1)
        assert abs(live.describe()["index"][arm] - exact.index) <= 1e-11 * exact.size


def test_a_threshold_among_thinned_rewards_is_counted_and_off_by_at_most_a_cell():
    """X spread over 17 powers of ten, X' below most of them, and then a threshold that rises through them."""
    rng = np.random.default_rng(6)
    live, reference = Live(AdaRUCB(), 1, None), SlowAdaRUCB(1)
    x = np.exp(rng.uniform(-20.0, 20.0, 8000))
    y = 1e-9 * rng.standard_normal(8000)
    for first, second in zip(x.tolist(), y.tolist(), strict=True):
        live.tell(0, first)
        live.tell(0, second)
    reference.x[0], reference.y[0] = x, y
    cells, different = live.s.cells[0], 0
    assert 0.0 < cells < 1024.0
    for _ in range(amount(25, 200)):
        for pair in np.exp(rng.uniform(-20.0, 5.0, (4, 2))).tolist():
            live.tell(0, pair[0])
            live.tell(0, pair[1])
            reference.learn(0, *pair)
        before = live.policy.counters(live.s)["fallbacks"]
        live.ask()
        counted = live.policy.counters(live.s)["fallbacks"] > before
        exact = reference.terms(0, len(reference.x[0]) + 1)
        found = live.describe()
        assert found["threshold"][0] == pytest.approx(exact.threshold, rel=1e-11)
        sizes, n = np.abs(reference.x[0]), len(reference.x[0])
        near = sizes[(sizes <= exact.threshold) & (sizes >= exact.threshold * (1.0 - 1.0 / cells))]
        off = exact.mean - found["mean"][0]
        assert -1e-12 * exact.size <= off <= near.sum() / n + 1e-12 * exact.size  # only these may be trimmed, too
        different += off > 1e-9 * exact.size
        assert counted or abs(off) <= 1e-12 * exact.size
    assert different > 3  # the negative control: it does happen


def test_growth_keeps_everything():
    rng = np.random.default_rng(2)
    live = Live(AdaRUCB(), 2, None)
    rewards = rng.standard_t(1.5, (2, 4000))
    live.replay(rewards, 3000)
    before = live.describe()
    wide = live.s.buffer.shape[2]
    live.s.clock[layout.FULL] = 1
    live._grow(True)
    assert live.s.buffer.shape[2] > wide
    assert live.s.clock[layout.FULL] == 0
    after = live.describe()
    for name in live.policy.columns:
        assert (before[name] == after[name]).all()


@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 40])
def test_tiny_horizons(horizon):
    rng = np.random.default_rng(horizon)
    live = Live(AdaRUCB(c=0.01, delta_exp=0.5), 2, horizon)
    reference = SlowAdaRUCB(2, c=0.01, delta_exp=0.5)
    for tau in range(1, horizon // 2 + 1):
        arm = live.ask()
        assert arm == reference.choose(tau)[0]
        x, y = rng.standard_normal(2)
        live.tell(arm, x)
        live.tell(arm, y)
        reference.learn(arm, x, y)
    assert live.ask() == reference.choose(horizon // 2 + 1)[0]  # an odd horizon's last pull

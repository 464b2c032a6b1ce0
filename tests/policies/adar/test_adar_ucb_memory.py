"""AdaR-UCB in a live bandit: bounded memory, and what happens when data break what the bound rests on."""

import numpy as np
import pytest

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


def test_an_adversary_reaches_the_limit_and_is_counted():
    rewards = adversarial(np.random.default_rng(1), 8000)
    live = Live(AdaRUCB(), 2, None)
    live.replay(rewards, 16_000)
    assert bytes_per_arm(live) <= 128 * KIB
    assert live.policy.counters(live.s)["fallbacks"] > 0
    assert live.s.counts[:, layout.BIG].max() <= adar_ucb.LIVE_VALUES
    assert np.isfinite(live.describe()["index"]).all()  # it goes on


def test_the_adversary_changes_nothing_where_the_horizon_is_known():
    steps = 12_000
    rewards = adversarial(np.random.default_rng(1), steps // 2)
    live = Live(AdaRUCB(), 2, steps)
    chosen = live.replay(rewards, steps)
    assert live.policy.counters(live.s) == {"fallbacks": 0}
    assert live.s.counts[:, layout.BIG].max() > adar_ucb.LIVE_VALUES / 2
    assert live.grown > 0
    reference = SlowAdaRUCB(2)
    used = [0, 0]
    for tau in range(1, steps // 2 + 1):
        arm = chosen[2 * tau - 2]
        assert chosen[2 * tau - 1] == arm
        if tau < 400 or tau % 7 == 0:
            assert reference.choose(tau)[0] == arm, tau
        reference.learn(arm, *rewards[arm, used[arm] : used[arm] + 2])
        used[arm] += 2
    said = live.describe()
    for arm in range(2):
        want = reference.precise(arm, steps // 2 + 1)
        assert said["index"][arm] == pytest.approx(float(want.index), rel=1e-11)
        assert said["share_trimmed"][arm] == float(want.share_trimmed)


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

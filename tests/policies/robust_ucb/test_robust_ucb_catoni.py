"""Robust UCB with Catoni's estimator: values, the slow policy's decisions, and the documented accuracy."""

import math

import numpy as np
import pytest

from helpers.driving import Live, Plain
from helpers.rewards import KINDS
from references import slow_robust_ucb_catoni as slow
from robandit.policies._parts.records import params_of
from robandit.policies.robust_ucb import catoni
from robandit.policies.robust_ucb.robust_ucb import RobustUCB


def catoni_ucb(v):
    return RobustUCB(estimator="catoni", v=v)


def filled(live, samples, t):
    """Return the run with these rewards, after t - 1 pulls."""
    for arm, sample in enumerate(samples):
        for x in sample:
            live.tell(arm, float(x))
    live.s.pulls[live.arms] = t - 1
    return live


def test_the_value_of_the_specification():
    x = [3.0 * math.sin(7 * j) + 10.0 * (j == 5) for j in range(1, 41)]
    live = filled(Plain(catoni_ucb(2.0), 1), [x], 10)
    share = 4.0 * math.log(10.0) / 40.0
    assert catoni.alpha_of(live.p, share) == pytest.approx(0.297690718863, abs=1e-12)
    assert live.describe()["mean"][0] == pytest.approx(0.405941004912, abs=1e-12)
    assert live.describe()["index"][0] == pytest.approx(0.405941004912 + 0.959705182438, abs=2e-12)
    assert slow.root(np.array(x), slow.tuned_alpha(40, 2.0, 10)) == pytest.approx(0.405941004912, abs=1e-12)


def test_an_arm_is_forced_below_8_log_t_rewards():
    live = filled(Plain(catoni_ucb(1.0), 2), [np.arange(40.0), np.arange(40.0)], 148)  # 8 log 148 = 39.98
    assert np.isfinite(live.describe()["index"]).all()
    live.s.pulls[2] = 148  # 8 log 149 = 40.03
    assert (live.describe()["index"] == math.inf).all()
    assert np.isnan(live.describe()["mean"]).all()


SCALES = {"narrow": 1e-3, "narrow gains": 1e-2}


@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_of_the_slow_policy(kind):
    rng = np.random.default_rng(7)
    arms, steps = 3, 250
    v = 2.0 * SCALES.get(kind, 1.0) ** 2
    live, reference = Live(catoni_ucb(v), arms), slow.Slow(arms, v)
    streams = [iter(KINDS[kind](rng, arm, steps)) for arm in range(arms)]
    same = 0
    for t in range(steps):
        arm = live.ask()
        best, allowed = reference.best() if t % 4 == 0 or t < 90 else (arm, {arm})
        assert arm in allowed
        same += arm == best
        reward = float(next(streams[arm]))
        live.tell(arm, reward)
        reference.rewards[arm].append(reward)
        reference.pulls[arm] += 1
    # Arms with equal rewards are tied, and rounding decides.
    assert same >= (0.5 if kind in ("constants", "zeros", "mostly zeros") else 0.99) * steps


def follow(policy, kind, steps, checks, arms=3, seed=1):
    """Run the compiled policy and yield it with the rewards of each arm at some rounds."""
    rng = np.random.default_rng(seed)
    live = Live(policy, arms)
    streams = np.array([KINDS[kind](rng, arm, steps) for arm in range(arms)])
    used = np.zeros(arms, dtype=int)
    for t in range(1, steps + 1):
        arm = live.ask()
        live.tell(arm, streams[arm, used[arm]])
        used[arm] += 1
        if t in checks:
            yield live, [streams[i, : used[i]] for i in range(arms)], t + 1


@pytest.mark.parametrize(
    ("kind", "v"),
    [
        ("losses, tail 2.5", 10.0),
        ("losses, tail 1.5", 1.0),
        ("student", 3.0),
        ("student", 1e-3),
        ("cauchy", 5.0),
        ("narrow gains", 1e-4),
        ("half zeros", 1.0),
        ("mostly zeros", 0.1),
        ("integers", 2.0),
        ("coins", 0.25),
        ("constants", 1.0),
    ],
)
def test_the_index_is_right_to_1e_10_of_the_width(kind, v):
    steps = 10_000 if kind == "losses, tail 2.5" else 2_500
    checks = {int(t) for t in np.geomspace(300, steps, 20)}
    tables = 0
    for live, samples, t in follow(catoni_ucb(v), kind, steps, checks):
        tables += (live.s.arms[:, catoni.REACH] > 0.0).any()
        columns = live.describe()
        for arm, sample in enumerate(samples):
            expected = slow.index(sample, v, t)
            if expected == math.inf:
                assert columns["index"][arm] == math.inf
                continue
            error = 1e-10 * slow.width(len(sample), v, t) + 1e-15 * abs(expected)
            assert columns["index"][arm] == pytest.approx(expected, rel=0.0, abs=error)
    assert tables > 2 or v == 1e-3  # otherwise only plain solutions were tested


def test_lines_stay_above_the_index():
    rng = np.random.default_rng(3)
    looked = tightest = 0
    for n in (40, 150, 700):
        for kind in ("student", "losses, tail 1.5", "gains", "coins"):
            sample = KINDS[kind](rng, 1, n)
            t = math.exp(n / 8.0) * 0.5 if n < 100 else 5.0 * n
            s = filled(Plain(catoni_ucb(2.0), 1), [sample], 2).s
            s.arms[0, catoni.AGE] = catoni.PATIENCE  # makes a table at once
            p = params_of(v=2.0)
            value = catoni.Catoni.index(p, s, 0, math.log(t))
            height, slope, until = catoni.Catoni.outlook(p, s, 0, math.log(t))
            assert (s.arms[0, catoni.REACH] > 0.0) == (n >= catoni.LEAST)
            assert height >= value == pytest.approx(slow.index(sample, 2.0, t), rel=1e-11)
            assert math.log(t) < until <= n / 8.0
            for level in np.linspace(math.log(t), until, 7)[1:]:
                later = slow.index(sample, 2.0, math.exp(level))
                line = height + slope * (level - math.log(t))
                assert later <= line
                looked += 1
                tightest += line - later <= 0.01 * slow.width(n, 2.0, t)
    assert tightest > 0.9 * looked


@pytest.mark.parametrize("v", [1e-300, 1e-8, 1.0, 1e12, 1e300])
def test_all_sizes_of_rewards_and_v_give_numbers(v):
    rng = np.random.default_rng(5)
    live = Live(catoni_ucb(v), 2)
    sizes = np.array([1e150, 1e-150, 1.0, 1e12, 0.0])
    for _ in range(400):
        live.tell(live.ask(), float(rng.choice(sizes) * rng.choice([-1.0, 1.0])))
    columns = live.describe()
    assert np.isfinite(columns["index"]).all()
    assert (np.abs(columns["mean"]) <= 1e150).all()


def test_an_outlier_hardly_moves_it_and_does_not_spoil_the_table():
    rng = np.random.default_rng(6)
    x = rng.standard_normal(2000)
    means = []
    for outlier in (10.0, 1e12, 1e150):
        live = Live(catoni_ucb(1.0), 1)
        for j, value in enumerate(x):
            live.ask()
            live.tell(0, outlier if j == 1500 else float(value))
        assert live.s.arms[0, catoni.REACH] > 0.0
        means.append(live.describe()["mean"][0])
        sample = np.array(x)
        sample[1500] = outlier
        assert live.describe()["index"][0] == pytest.approx(slow.index(sample, 1.0, 2001), rel=0.0, abs=2e-11)
    assert abs(means[1] - means[0]) < 0.6
    assert abs(means[2] - means[0]) < 8.0  # the logarithm of 1e150 is 345


def test_late_rewards_count_when_they_arrive():
    live = Live(catoni_ucb(1.0), 2)
    live.follow_0_2()
    marks = [live.issue(live.ask()) for _ in range(60)]
    assert list(live.s.pulls) == [30, 30, 60, 0]
    for arm in (1, 0):
        for mark in marks[:30]:
            live.late(arm, 1.0 + arm, mark)
    assert (live.describe()["index"] == math.inf).all()  # 8 log 61 = 32.9
    assert live.ask() == 0
    for arm in (1, 0):
        for _ in range(10):
            live.late(arm, 1.0 + arm, live.issue(arm))
    assert live.describe()["mean"] == pytest.approx([1.0, 2.0], abs=1e-12)
    assert live.ask() == 1
    live.forget(1, live.issue(1))
    assert live.s.pulls[1] == 40

"""Robust UCB with the truncated mean and the median of means."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_robust_ucb import Slow, agree, median_of_means, truncated
from robandit.errors import InvalidInput
from robandit.policies._parts.blocks import HIGH, LOW, add_reward, block_median, empty_sums, enlarged_sums, median
from robandit.policies._parts.reward_store import FULL, USED
from robandit.policies.robust_ucb.robust_ucb import RobustUCB

REWARDS = (0.3, -1.2, 2.5, 0.1, -4, 1.1, 0.7, 3.3)


def policies(eps, moment):
    """Return policies and their rules by name."""
    return {
        "truncated": (RobustUCB(eps=eps, u=moment), partial(truncated, eps=eps, u=moment)),
        "common": (
            RobustUCB(eps=eps, u=moment, common_threshold=True),
            partial(truncated, eps=eps, u=moment, common=True),
        ),
        "medians": (
            RobustUCB(estimator="median_of_means", eps=eps, v=moment),
            partial(median_of_means, eps=eps, v=moment),
        ),
    }


@pytest.mark.parametrize(
    ("estimator", "mean", "width"), [("truncated", 0.275, 5.282001913815), ("medians", 0.425, 17.597180219589)]
)
def test_reference_values(estimator, mean, width):
    live = Live(policies(0.5, 2.0)[estimator][0], 2)
    live.tell(1, 0.0)
    for reward in REWARDS:
        live.tell(0, reward)
    columns = live.describe()  # t = 10
    assert columns["mean"][0] == pytest.approx(mean, rel=1e-12)
    assert columns["index"][0] - columns["mean"][0] == pytest.approx(width, rel=1e-12)


def test_the_common_threshold_by_hand():
    live = Live(policies(0.5, 2.0)["common"][0], 2)
    live.tell(1, 0.0)
    for reward in REWARDS:
        live.tell(0, reward)
    threshold = (2.0 * 8 / (2 * math.log(10))) ** (1 / 1.5)  # 2.29
    assert 1.2 < threshold < 2.5
    assert live.describe()["mean"][0] == pytest.approx((0.3 - 1.2 + 0.1 + 1.1 + 0.7) / 8)


@pytest.mark.independent("RobustUCB")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["truncated", "common", "medians"])
def test_it_is_the_slow_one(name, kind):
    rng = np.random.default_rng(len(kind))
    eps, arms, horizon = [(0.5, 3, None), (1.0, 2, 400), (0.2, 5, 500)][len(kind) % 3]
    moment = float(np.mean(np.abs(KINDS[kind](rng, 0, 2000)) ** (1 + eps)))
    # A bound that is far too small is valid too: it drops many rewards, and the arms differ.
    policy, rule = policies(eps, moment * [1.0, 0.01][len(kind) % 2] + 1e-3)[name]
    agree(Live(policy, arms, horizon), Slow(arms, rule), lambda arm: float(KINDS[kind](rng, arm, 1)[0]), 400, check=4)


@pytest.mark.parametrize("name", ["truncated", "common", "medians"])
def test_a_long_run(name):
    """Samples are dropped (and come back) long after they arrived, and the number of blocks follows the time."""
    rng = np.random.default_rng(3)
    policy, rule = policies(1.0, 0.05)[name]
    live = Live(policy, 2, 3000)
    agree(live, Slow(2, rule), lambda arm: float(rng.standard_t(2.5) - 0.2 * arm), 3000, check=50)
    if name == "truncated":
        assert live.s.slots[:2, USED].max() < 400


@pytest.mark.parametrize("name", ["truncated", "common", "medians"])
def test_outliers_leave_no_trace(name):
    rng = np.random.default_rng(5)
    policy, rule = policies(1.0, 1e22)[name]  # so large that outliers are kept for a while
    draws = lambda arm: float(rng.choice([1e12, -1e12, 1e6]) if rng.random() < 0.02 else rng.normal())  # noqa: E731
    live, slow = Live(policy, 2, None), Slow(2, rule)
    for _ in range(600):
        arm = live.ask()
        reward = draws(arm)
        live.tell(arm, reward)
        slow.learn(arm, reward)
    columns = live.describe()
    for arm, (mean, _) in enumerate(slow.numbers()):
        assert columns["mean"][arm] == pytest.approx(mean, rel=1e-12, abs=1e-14)


def test_a_dropped_outlier_leaves_the_sum_without_it():
    live = Live(RobustUCB(eps=1.0, u=1e4), 2)
    for reward in [0.1] * 50 + [200.0] + [0.1] * 49:
        live.tell(0, reward)
    assert live.describe()["mean"][0] == pytest.approx((9.9 + 200.0) / 100)
    for _ in range(3000):  # 200^2 / 51 > 1e4 / (2 log t) from t = 588 on
        live.tell(1, 0.0)
    assert live.describe()["mean"][0] == pytest.approx(0.099, rel=1e-15)


@settings(max_examples=amount(50, 100), deadline=None, derandomize=True)
@given(
    st.lists(
        st.one_of(st.integers(-2, 2).map(float), st.floats(-1e15, 1e15), st.floats(-10, 10)), min_size=1, max_size=60
    ),
    st.data(),
)
def test_medians_of_blocks(values, data):
    pool, slots = empty_sums(2, None)
    for count, value in enumerate(values, 1):
        assert add_reward(pool, slots, 0, value) == count
        if slots[2, FULL]:
            pool, slots = enlarged_sums(pool, slots)
    assert pool[len(values) - 1, HIGH] + pool[len(values) - 1, LOW] == pytest.approx(math.fsum(values), rel=1e-15)
    blocks = data.draw(st.integers(1, len(values)))
    size = len(values) // blocks
    exact = np.array([math.fsum(values[b * size : (b + 1) * size]) / size for b in range(blocks)])
    expected = pytest.approx(np.median(exact), rel=1e-13, abs=1e-13)
    guess = data.draw(st.one_of(st.sampled_from(list(exact)), st.floats(-10, 10)))
    reach = data.draw(st.one_of(st.just(0.0), st.floats(0, 1e15), st.floats(0, 10)))
    for _ in range(3):  # from any guess and reach, then from those that it returned
        scratch = np.full(130, -7.0)
        guess, reach = block_median(pool, slots, 0, blocks, size, scratch, guess, reach)
        assert guess == expected
        assert reach >= 0.0
        assert (scratch[2 * blocks :] == -7.0).all()
    copy = np.random.default_rng(0).permutation(exact)
    assert median(copy, blocks) == pytest.approx(np.median(exact), rel=1e-15)
    assert sorted(copy) == sorted(exact)


@pytest.mark.parametrize("name", ["truncated", "medians"])
def test_decisions_do_not_depend_on_the_unit(name):
    rng = np.random.default_rng(2)
    eps, scale = 0.5, 64.0
    one = Plain(policies(eps, 2.0)[name][0], 3)
    two = Plain(policies(eps, 2.0 * scale ** (1 + eps))[name][0], 3)
    for _ in range(300):
        arm = one.ask()
        assert arm == two.ask()
        reward = rng.standard_t(2) - arm
        one.tell(arm, reward)
        two.tell(arm, scale * reward)


def test_few_samples_are_stored():
    rng = np.random.default_rng(1)
    live = Plain(RobustUCB(eps=0.4, u=4.0), 1, 6_000)
    for _ in range(6_000):
        live.tell(0, 1.0 + rng.pareto(1.5))
    largest = math.log(6_000)
    assert live.s.slots[0, USED] < 2 * largest * (1 + largest)
    assert live.s.pool.shape[1] < 600


@pytest.mark.parametrize("name", ["truncated", "common", "medians"])
def test_late_rewards(name):
    live = Plain(policies(0.5, 2.0)[name][0], 2)
    marks = [(arm, live.issue(arm)) for arm in (0, 1, 0, 1, 0)]
    assert live.ask() == 1  # no rewards yet: the fewest pulls
    for (arm, mark), reward in zip(reversed(marks), (1.0, 2.0, 3.0, -1.0, 0.5), strict=True):
        live.late(arm, reward, mark)
    _, rule = policies(0.5, 2.0)[name]
    expected = [rule([1.0, 3.0, 0.5], 6), rule([2.0, -1.0], 6)]
    assert live.describe()["mean"] == pytest.approx([mean for mean, _ in expected])
    assert live.describe()["index"] == pytest.approx([mean + width for mean, width in expected])


def test_invalid_parameters():
    for wrong, name, rule in [
        ({"estimator": "mean"}, "estimator", "one of 'truncated', 'median_of_means', 'catoni'"),
        ({"eps": 0.0}, "eps", "a number with 0 < eps <= 1"),
        ({"u": 0.0}, "u", "a finite number > 0"),
        ({"estimator": "catoni", "v": -1.0}, "v", "a finite number > 0"),
        ({"v": 1.0}, "v", "None for 'truncated'"),
        ({"estimator": "median_of_means", "u": 1.0}, "u", "None for 'median_of_means'"),
        ({"estimator": "catoni", "eps": 0.5}, "eps", "1 for 'catoni'"),
        ({"common_threshold": 1}, "common_threshold", "one of True, False"),
        ({"common_threshold": True, "estimator": "catoni"}, "common_threshold", "False for 'catoni'"),
    ]:
        with raises(InvalidInput, parameter=name, rule=rule):
            RobustUCB(**wrong)
    with pytest.raises(InvalidInput, match="cannot play without eps, u"):
        RobustUCB().prepared(10)

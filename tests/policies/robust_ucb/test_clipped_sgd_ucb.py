"""Clipped-SGD-UCB."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.driving import Live, Plain
from helpers.evaluations import count_evaluations
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_clipped_sgd_ucb import SlowClippedSGDUCB
from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel.random import normal, streams
from robandit.policies.robust_ucb import clipped_sgd_ucb as module
from robandit.policies.robust_ucb.clipped_sgd_ucb import ClippedSGDUCB


def test_by_hand():
    """T = 10: A = log(4 * 11 * 100). The first three rewards have the median 2; then steps of g / A, cut off at 1."""
    A = math.log(4400)
    live = Live(ClippedSGDUCB(horizon=10, range=1.0, smoothing=0.0), 2)
    for reward in (7.0, 2.0, -1.0):
        assert live.ask() == 0
        assert math.isnan(live.describe()["mean"][0])
        live.tell(0, reward)
    for reward in (0.0, 0.5, 1.0):
        assert live.ask() == 1
        live.tell(1, reward)
    assert live.describe()["mean"].tolist() == [2.0, 0.5]
    live.tell(0, 2.5)
    assert live.describe()["mean"][0] == 2.0 + 0.5 / A
    live.tell(0, -1e12)
    assert live.describe()["mean"][0] == 2.0 + 0.5 / A - 1.0 / A
    expected = [2.0 - 0.5 / A + 0.1 * math.sqrt(math.log(9) / 5), 0.5 + 0.1 * math.sqrt(math.log(9) / 3)]
    assert live.describe()["index"] == pytest.approx(expected, rel=1e-14)


def test_groups_by_hand():
    """Three groups of two, from x = range: the means 1, 5, 2 of the rewards, hence the gradient x - 2."""
    A = math.log(4 * 101 * 10**4)
    policy = ClippedSGDUCB(horizon=100, range=4.0, init_steps=0, groups=3, batch=2, smoothing=0.0)
    live = Live(policy, 2)
    for reward in (0.0, 2.0, 1e6, -999_990.0, 2.0, 2.0):
        assert live.ask() == 0
        assert math.isnan(live.describe()["mean"][0])
        live.tell(0, reward)
    assert live.describe()["mean"][0] == 4.0 - 2.0 / A
    assert live.ask() == 1


CASES = [
    {},
    {"groups": 3, "batch": 2},
    {"init_steps": 0, "coeff": 0.2},
    {"init_steps": 0, "groups": 5, "coeff": 1.0},
    {"init_steps": 1, "batch": 3, "smoothing": 0.0},
    {"init_steps": 4, "coeff": 0.0, "smoothing": 0.5},
]


@pytest.mark.independent("ClippedSGDUCB")
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_slow_one(kind):
    case = CASES[len(kind) % len(CASES)]
    arms, steps = 2 + len(kind) % 3, 400
    rng = np.random.default_rng(len(kind))
    size = 1.0 + float(np.median(np.abs(KINDS[kind](rng, 0, 99))))
    live = Live(ClippedSGDUCB(range=size, **case), arms, steps)
    live.s.rng[:] = stream = streams(np.random.SeedSequence(len(kind)), 1)[0]

    def draw():
        with np.errstate(over="ignore"):
            return normal(stream)

    slow = SlowClippedSGDUCB(arms, steps, size, draw=draw, **case)
    for step in range(steps):
        arm = live.ask()
        forced = slow.untold()
        if forced:
            assert [arm] == forced
        elif step % 5 == 0:
            indices = slow.indices()
            best = min(range(arms), key=lambda i: (-indices[i], len(slow.rewards[i]), i))
            assert arm == best or max(indices) - indices[arm] <= 1e-11 * max(map(abs, indices))
            np.testing.assert_allclose(live.describe()["index"], indices, rtol=1e-11)
        reward = float(KINDS[kind](rng, arm, 1)[0])
        live.tell(arm, reward)
        slow.learn(arm, reward)
    assert (live.s.rng == stream).all()


def test_it_is_lazy(monkeypatch):
    evaluations = count_evaluations(ClippedSGDUCB(), monkeypatch)
    rewards = np.random.default_rng(0).standard_normal((20, 400)) - 0.5 * np.arange(20)[:, None]
    Plain(ClippedSGDUCB(range=10.0), 20, 2000).replay(rewards, 2000)
    assert 1000 < len(evaluations) < 5 * 2000


@pytest.mark.parametrize("options", [{}, {"groups": 3, "batch": 2}])
def test_no_reward_moves_an_estimate_by_more_than_a_step(options):
    policy = ClippedSGDUCB(horizon=1000, range=2.0, smoothing=0.0, **options)
    live = Plain(policy, 1)
    rng = np.random.default_rng(3)
    last = math.nan
    for _ in range(200):
        live.tell(0, float(rng.choice([1e150, -1e150, 0.0, 1e12, -3.0])))
        now = live.s.arms[0, module.MEAN]
        if live.s.arms[0, module.COUNT] > 3:
            assert abs(now - last) <= 2.0 * live.p.step * (1 + 1e-9) + 1e-12 * abs(now)
        last = now
    assert math.isfinite(last)


@pytest.mark.parametrize("kind", ["cauchy", "normal"])
def test_symmetric_rewards_are_located(kind):
    """A Cauchy law has no mean. Estimates wander about the centre by the root of the step size."""
    rng = np.random.default_rng(5)
    live = Live(ClippedSGDUCB(range=5.0, groups=3 if kind == "cauchy" else 1), 1, 10_000)
    seen = []
    for _ in range(6000):
        live.tell(0, 3.0 + float(rng.standard_cauchy() if kind == "cauchy" else rng.normal()))
        seen.append(live.s.arms[0, module.MEAN])
    assert abs(np.mean(seen[1000:]) - 3.0) < 0.15


def test_an_arm_is_kept_until_its_batch_is_complete():
    live = Plain(ClippedSGDUCB(horizon=1000, range=1.0, groups=3, batch=2, init_steps=2), 3)
    assert [take(live) for _ in range(6)] == [0, 0, 1, 1, 2, 2]
    assert take(live) == 0  # no reward yet: the fewest pulls, then the lowest
    assert [take(live) for _ in range(5)] == [0] * 5
    assert take(live) == 1


def take(live):
    arm = live.ask()
    assert live.issue(arm) == 1.0
    return arm


def test_late_and_lost_rewards():
    live = Plain(ClippedSGDUCB(horizon=100, range=10.0, smoothing=0.0), 2)
    assert [take(live) for _ in range(4)] == [0, 0, 0, 1]
    live.forget(0, 1.0)
    assert take(live) == 1
    assert take(live) == 1
    assert take(live) == 0  # the lost pull is repeated
    for reward in (9.0, 4.0):
        live.late(0, reward, 1.0)
    assert take(live) == 0  # arm 0 lacks its third reward, arm 1 all: the fewest pulls, then the lowest
    assert take(live) == 1
    for arm, reward in [(1, 5.0), (0, 1.0), (1, 5.0), (1, 6.0)]:
        live.late(arm, reward, 1.0)
    assert live.describe()["mean"].tolist() == [4.0, 5.0]
    assert live.ask() == 1
    live.late(0, 30.0, 1.0)
    assert live.describe()["mean"][0] == 4.0 + 10.0 * live.p.step


def test_lost_pulls_of_a_batch():
    live = Plain(ClippedSGDUCB(horizon=100, range=1.0, groups=3, init_steps=1), 2)
    live.tell(0, 1.0)
    live.tell(1, 0.0)
    assert take(live) == 0
    assert live.s.held[0] == 0
    live.forget(0, 1.0)  # the batch has not begun: choose anew
    assert live.s.held[0] == -1
    assert [take(live) for _ in range(3)] == [0] * 3
    assert live.s.held[0] == -1
    live.forget(0, 1.0)
    for _ in range(2):
        live.late(0, 1.0, 1.0)
    live.tell(1, -1.0)  # of one's own choice: a batch of that arm begins
    assert live.ask() == 1
    live.tell(1, -1.0)
    live.tell(1, -1.0)
    assert live.ask() == 0
    live.tell(0, 1.0)
    assert live.s.held[0] == -1


def test_what_a_problem_tells():
    problem = rb.Problem([rb.laws.Gaussian(mean=-3.0, sd=1.0), rb.laws.Gaussian(mean=2.0, sd=1.0)])
    assert ClippedSGDUCB().informed_by(problem) == ClippedSGDUCB(range=3.0)
    assert ClippedSGDUCB(range=7.0).informed_by(problem).range == 7.0
    with pytest.raises(NotApplicable):
        ClippedSGDUCB().informed_by(rb.problems.gaussian(means=[0.0, 0.0]))


REFUSED = {
    "horizon": (0, 2.5, True),
    "range": (0.0, -1.0, math.inf, math.nan, "wide"),
    "coeff": (-0.1, math.nan, None),
    "smoothing": (-1.0, math.inf),
    "init_steps": (-1, 1.5, True, 10_001),
    "groups": (0, 2.0, "three", 10_001),
    "batch": (0, 1.5, None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_parameters(name):
    for value in REFUSED[name]:
        with raises(InvalidInput, parameter=name):
            ClippedSGDUCB(**{name: value})


def test_even_groups_are_refused():
    with raises(InvalidInput, parameter="groups", rule="odd, because a median is taken over the groups"):
        ClippedSGDUCB(groups=4)

"""Maillard sampling and KL-MS: probabilities against their formula, from all rewards."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain, seeded
from helpers.duels import stream
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_sampling import SlowMaillard
from robandit import MaillardSampling
from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel.random import streams, uniform
from robandit.policies.assumptions import assumption_met
from robandit.theory import rate

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of 64-bit words, on purpose
ENDS = (-3.0, 1.0)
FAMILIES = {
    "gaussian": (MaillardSampling(scale=0.7), {"scale": 0.7}),
    "bounded": (MaillardSampling(family="bounded", lower=ENDS[0], upper=ENDS[1]), {"ends": ENDS}),
}
INSIDE = ["integers", "coins", "constants"]
OUTSIDE = ["losses, tail 1.5", "student", "gains"]


def started(policy, arms, kind=Live):
    return seeded(kind(policy, arms))


def chances(live):
    hook = live.policy.hooks("chance")[0]
    return np.array([hook(live.p, live.s, arm) for arm in range(live.arms)])


@pytest.mark.independent("MaillardSampling")
@pytest.mark.parametrize(
    ("family", "kind"), [*(("gaussian", kind) for kind in KINDS), *(("bounded", kind) for kind in [*INSIDE, *OUTSIDE])]
)
def test_probabilities_and_draws_are_those_of_the_formula(family, kind):
    policy, known = FAMILIES[family]
    arms = 4
    live, slow = started(policy, arms), SlowMaillard(arms, **known)
    reward = stream(KINDS[kind], 1)
    rng = np.random.default_rng(2)
    unsure = 0
    for step in range(amount(160, 400)):
        allowed = rng.random(arms) < (1.1 if step % 4 else 0.6)
        allowed[int(rng.integers(arms))] = True
        policy.set_allowed(live.s, allowed)
        slow.allowed = allowed.tolist()
        exact = slow.chances()
        # The slow mean of rewards far from 0 is rounded, and n gap^2 multiplies that.
        rounding = 1e-13 * (1.0 + max(abs(x) for row in slow.x for x in [0.0, *row]) * step)
        np.testing.assert_allclose(chances(live), exact, atol=1e-10 + rounding)
        if slow.forced() is None:
            left = uniform(live.s.rng.copy())
            steps = np.cumsum(exact)
            expected = int(np.searchsorted(steps, left))
            arm = live.ask()
            if np.abs(steps - left).min() < 1e-9 + rounding:
                unsure += 1
            else:
                assert arm == expected
        else:
            arm = live.ask()
            assert arm == slow.forced()
        value = float(reward(arm))
        live.tell(arm, value)
        slow.learn(arm, value)
    assert unsure < 20


def test_values_by_hand():
    live = started(MaillardSampling(scale=2.0), 3)
    assert chances(live).tolist() == [1.0, 0.0, 0.0]
    for arm, rewards in enumerate(([1.0, 3.0], [0.0, 1.0, 2.0], [2.0])):
        for x in rewards:
            live.tell(arm, x)
    weights = np.array([1.0, math.exp(-3.0 / 8.0), 1.0])
    np.testing.assert_allclose(chances(live), weights / weights.sum(), rtol=1e-14)
    np.testing.assert_allclose(live.describe()["probability"], weights / weights.sum(), rtol=1e-14)
    assert live.describe()["mean"].tolist() == [2.0, 1.0, 2.0]
    live = started(MaillardSampling(family="bounded", lower=10.0, upper=14.0), 2)
    for arm, rewards in enumerate(([10.0, 14.0], [11.0, 11.0, 11.0])):  # shares 1/2 and 1/4
        for x in rewards:
            live.tell(arm, x)
    weight = math.exp(-3.0 * (0.25 * math.log(0.5) + 0.75 * math.log(1.5)))
    np.testing.assert_allclose(chances(live), [1.0 / (1.0 + weight), weight / (1.0 + weight)], rtol=1e-13)
    assert live.describe()["mean"].tolist() == [12.0, 11.0]


def test_choices_have_these_chances():
    """Pearson's statistic over 20,000 choices; the negative control is another scale."""
    live, other = started(MaillardSampling(), 3), started(MaillardSampling(scale=1.3), 3)
    for arm, value in enumerate((0.0, 0.6, 1.0)):
        for _ in range(4):
            live.tell(arm, value)
            other.tell(arm, value)
    count = 20_000
    counts = np.zeros(3)
    for words in streams(np.random.SeedSequence(9), count):
        live.s.rng[:] = words
        counts[live.ask()] += 1
    limit = chi2.isf(1e-6, 2)
    expected, wrong = count * chances(live), count * chances(other)
    assert ((counts - expected) ** 2 / expected).sum() < limit
    assert ((counts - wrong) ** 2 / wrong).sum() > limit


@pytest.mark.parametrize("best", [0.0, 1.0])
def test_best_means_at_the_ends(best):
    live = started(MaillardSampling(family="bounded", lower=0.0, upper=1.0), 3)
    for arm, value in enumerate((best, 0.0, best)):
        live.tell(arm, value)
    expected = [1 / 3] * 3 if best == 0.0 else [0.5, 0.0, 0.5]
    np.testing.assert_allclose(chances(live), expected, rtol=1e-15)
    assert {live.ask() for _ in range(60)} == {i for i, share in enumerate(expected) if share > 0.0}


def test_rewards_outside_the_interval_widen_it():
    bandit = rb.Bandit(["a", "b"], MaillardSampling(family="bounded", lower=-1.0, upper=1.0), seed=0)
    for arm, reward in (("a", -7.0), ("b", 9.0), ("b", 0.0)):
        bandit.update(arm, reward)
    assert bandit.counters()["outside"] == 2
    assert [row["mean"] for row in bandit.estimates()] == [-7.0, 4.5]
    wide = rb.Bandit(["a", "b"], MaillardSampling(family="bounded", lower=-7.0, upper=9.0), seed=0)
    for arm, reward in (("a", -7.0), ("b", 9.0), ("b", 0.0)):
        wide.update(arm, reward)
    assert wide.counters()["outside"] == 0
    for one, other in zip(bandit.estimates(), wide.estimates(), strict=True):
        assert one["probability"] == pytest.approx(other["probability"], rel=1e-12)


def test_the_origin_does_not_matter():
    one, two = started(MaillardSampling(), 3), started(MaillardSampling(), 3)
    reward = stream(KINDS["student"], 3)
    for _ in range(500):
        arm = one.ask()
        assert arm == two.ask()
        value = float(np.round(reward(arm) * 2**10) / 2**10)  # so that shifting is exact
        one.tell(arm, value)
        two.tell(arm, value + 2.0**30)


def test_propensities_of_a_live_bandit():
    bandit = rb.Bandit(["a", "b"], MaillardSampling(), seed=0)
    for arm, reward in (("a", 1.0), ("b", 0.0)):
        bandit.update(arm, reward)
    decision = bandit.decide()
    share = 1.0 / (1.0 + math.exp(-0.5))
    assert decision.propensity == pytest.approx(share if decision.arm == "a" else 1.0 - share, rel=1e-14)


def test_late_rewards_and_expired_pulls():
    live = started(MaillardSampling(), 2, Plain)
    marks = [(arm, live.issue(arm)) for arm in (0, 1, 0)]
    assert live.ask() == 1
    live.late(*(0, 1.0, marks[0][1]))
    assert live.ask() == 1
    live.late(*(1, 1.0, marks[1][1]))
    live.forget(*marks[2])
    assert live.s.pulls[:2].tolist() == [1, 1]
    assert chances(live).tolist() == [0.5, 0.5]


def test_what_it_must_know():
    coins = rb.problems.bernoulli(means=[0.2, 0.8])
    told = MaillardSampling(family="bounded").informed_by(coins)
    assert (told.lower, told.upper, told.range) == (0.0, 1.0, 1.0)
    assert assumption_met(told, coins) is True
    assert assumption_met(MaillardSampling(family="bounded", lower=0.5, upper=1.0), coins) is False
    assert assumption_met(MaillardSampling(scale=0.5), coins) is True  # Hoeffding's lemma
    assert assumption_met(MaillardSampling(scale=0.3), coins) is False  # the variance is larger
    assert assumption_met(MaillardSampling(scale=0.45), coins) is None
    heavy = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    assert assumption_met(MaillardSampling(), heavy) is False
    with pytest.raises(NotApplicable):
        MaillardSampling(family="bounded").informed_by(heavy)
    constant = rb.Problem([rb.laws.Constant(1.0), rb.laws.Constant(1.0)])
    with pytest.raises(NotApplicable):
        MaillardSampling(family="bounded").informed_by(constant)
    wide = MaillardSampling(family="bounded", lower=-1.0, upper=3.0)
    assert rate(wide)(1e4, 3) == pytest.approx(4 * math.sqrt(3 * 1e4 * math.log(3)) + 4 * 3 * math.log(1e4))


def test_rejections():
    with pytest.raises(InvalidInput, match="cannot play without upper"):
        MaillardSampling(family="bounded", lower=0.0).prepared(10)
    for wrong, name, rule in (
        ({"family": "coins"}, "family", "one of 'gaussian', 'bounded'"),
        ({"scale": -1.0}, "scale", "a finite number > 0"),
        ({"lower": 0.0}, "lower", "None for 'gaussian'"),
        ({"family": "bounded", "lower": 1.0, "upper": 1.0}, "upper", "a finite number > lower = 1"),
        ({"family": "bounded", "lower": math.nan}, "lower", "a finite number"),
        ({"family": "bounded", "scale": 3.0}, "scale", "omitted for 'bounded'"),
    ):
        with raises(InvalidInput, parameter=name, rule=rule):
            MaillardSampling(**wrong)

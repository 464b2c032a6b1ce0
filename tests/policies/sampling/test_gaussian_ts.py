"""Gaussian Thompson sampling against the posterior, computed from all rewards by scipy."""

import functools
import math

import numpy as np
import pytest
from scipy.stats import chi2, t

import robandit as rb
from helpers.driving import Live, Plain, seeded
from helpers.duels import stream
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_sampling import SlowGaussianTS
from robandit import GaussianTS
from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel import compiled, loops
from robandit.kernel.build import flat
from robandit.kernel.random import streams, uniform
from robandit.theory import regret_bound

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of 64-bit words, on purpose


def started(policy, arms):
    return seeded(Live(policy, arms))


def chances(live):
    hook = functools.partial(loops.chance_of, *live.policy.hooks("chance"))
    entry = compiled(hook, label="chance (test)", args=(live.p, live.s, 0))
    return np.array([entry(*flat((live.p, live.s)), arm) for arm in range(live.arms)])


def drawn(slow, rng):
    """Return the draws of the slow policy: its posterior's centre and scale, and Bailey's t from the same uniform numbers."""
    draws = []
    for arm in range(len(slow.x)):
        nu, mean, scale = slow.posterior(arm)
        u, v = uniform(rng), uniform(rng)
        draws.append(mean + scale * math.sqrt(nu * (u ** (-2.0 / nu) - 1.0)) * math.cos(2.0 * math.pi * v))
    return draws


@pytest.mark.independent("GaussianTS")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [-0.5, -1.7, 0.5])
def test_decisions_are_those_of_the_posterior(kind, alpha):
    arms = 4
    live, slow = started(GaussianTS(alpha=alpha), arms), SlowGaussianTS(arms, alpha)
    reward, close = stream(KINDS[kind], 5), 0
    for _ in range(300):
        rng = live.s.rng.copy()
        arm = live.ask()
        if (expected := slow.forced()) is None:
            draws = drawn(slow, rng)
            expected = max(range(arms), key=lambda i: (draws[i], -slow.pulls[i], -i))
            if arm != expected:  # the slow mean of rewards far from 0 is rounded
                assert draws[expected] - draws[arm] <= 1e-13 * max(map(abs, draws)), (draws, arm)
                close += 1
        else:
            assert arm == expected
        value = float(reward(arm))
        live.tell(arm, value)
        slow.learn(arm, value)
    assert close < (150 if kind == "constants" else 3)  # constants: 0.1 added n times is not 0.1 n
    assert min(len(x) for x in slow.x) >= slow.first


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("kind", ["student", "losses, tail 1.5", "narrow", "narrow gains", "integers"])
def test_chances_are_those_of_an_adaptive_integral(kind):
    arms = 3
    live, slow = started(GaussianTS(), arms), SlowGaussianTS(arms)
    reward = stream(KINDS[kind], 2)
    compared = 0
    for step in range(400):
        if step in (12, 13, 20, 60, 399):
            given = chances(live)
            exact = [slow.chance(arm) for arm in range(arms)]
            np.testing.assert_allclose(given, exact, atol=1e-7)
            assert given.sum() == pytest.approx(1.0, abs=1e-8)
            compared += 1
        arm = live.ask()
        value = float(reward(arm))
        live.tell(arm, value)
        slow.learn(arm, value)
    assert compared == 5


def test_choices_have_these_chances():
    """Pearson's statistic over 20,000 choices; the negative control is another prior."""
    live, other = started(GaussianTS(), 3), started(GaussianTS(alpha=1.5), 3)
    rng = np.random.default_rng(1)
    for arm in range(3):
        for _ in range(5):
            value = float(rng.normal() + 0.3 * arm)
            live.tell(arm, value)
            other.tell(arm, value)
    count = 20_000
    counts = np.zeros(3)
    for words in streams(np.random.SeedSequence(9), count):
        live.s.rng[:] = words
        counts[live.ask()] += 1
    limit = chi2.isf(1e-6, 2)
    expected = count * chances(live)
    assert ((counts - expected) ** 2 / expected).sum() < limit
    wrong = count * chances(other)
    assert ((counts - wrong) ** 2 / wrong).sum() > limit


def test_small_chances_have_small_relative_errors():
    """Two arms with two degrees of freedom: P(draw of arm 0 is larger) falls as the square of the gap."""
    values = []
    for gap in (1e3, 1e4, 1e6):
        live = started(GaussianTS(), 2)
        for arm in range(2):
            for x in (-1.0, 1.0, -1.0, 1.0):
                live.tell(arm, x + gap * arm)
        values.append(chances(live)[0] * gap**2)
    # The tail of t_2 is 1/(2 z^2) to first order, times its scale^2 = 1/2; the two tails add up.
    np.testing.assert_allclose(values, 0.5, rtol=1e-3)


def test_arms_without_spread():
    live = started(GaussianTS(), 4)
    for arm, value in enumerate((1.0, 2.0, 2.0, 0.0)):
        for _ in range(4 + (arm == 1)):
            live.tell(arm, value)
    assert chances(live).tolist() == [0.0, 0.0, 1.0, 0.0]  # a tie of arms 1 and 2: arm 2 has fewer pulls
    assert {live.ask() for _ in range(20)} == {2}
    live.tell(2, 2.0)
    assert chances(live).tolist() == [0.0, 1.0, 0.0, 0.0]  # as many pulls: the lowest arm
    assert live.ask() == 1
    for x in (0.0, 4.0, 0.0, 4.0):
        live.tell(3, x)
    given = chances(live)
    assert given[1] + given[3] == pytest.approx(1.0, abs=1e-9)
    nu, scale = 6.0, math.sqrt(24.0 / (8 * 6))  # rewards 0, 0, 0, 0, 0, 4, 0, 4: mean 1, S = 24
    assert given[3] == pytest.approx(t.sf((2.0 - 1.0) / scale, nu), abs=1e-8)


def test_first_pulls_by_hand():
    for alpha, first in ((-0.5, 4), (0.0, 3), (0.5, 2), (2.0, 2), (-1.0, 5), (-0.75, 5), (0.25, 3)):
        live = started(GaussianTS(alpha=alpha), 3)
        chosen = []
        for _ in range(3 * first):
            assert chances(live).max() == 1.0
            chosen.append(live.ask())
            live.tell(chosen[-1], float(len(chosen)))
        assert chosen == [0, 1, 2] * first
        assert chances(live).max() < 1.0


def test_values_by_hand():
    live = started(GaussianTS(), 2)
    for x in (1.0, 2.0, 3.0):
        live.tell(0, x)
    assert live.describe()["mean"][0] == 2.0
    assert live.describe()["scale"].tolist() == [math.inf, math.inf]
    live.tell(0, 6.0)
    # n = 4, nu = 4 - 1 - 1 = 2, S = 14: sqrt(14 / 8)
    assert live.describe()["mean"][0] == 3.0
    assert live.describe()["scale"][0] == pytest.approx(math.sqrt(14.0 / 8.0), rel=1e-15)


@pytest.mark.parametrize(("factor", "shift"), [(8.0, 0.0), (1.0, 2.0**30), (0.25, -(2.0**20))])
def test_units_and_origin_do_not_matter(factor, shift):
    one, two = started(GaussianTS(), 3), started(GaussianTS(), 3)
    reward = stream(KINDS["student"], 3)
    for _ in range(500):
        arm = one.ask()
        assert arm == two.ask()
        value = float(np.round(reward(arm) * 2**10) / 2**10)  # so that shifting is exact
        one.tell(arm, value)
        two.tell(arm, factor * value + shift)
    np.testing.assert_allclose(chances(one), chances(two), atol=1e-9)


def test_late_rewards_and_expired_pulls():
    live = seeded(Plain(GaussianTS(), 2))
    marks = [(arm, live.issue(arm)) for arm in (live.ask() for _ in range(1))]
    while len(marks) < 10:
        arm = live.ask()
        marks.append((arm, live.issue(arm)))
    assert [arm for arm, _ in marks] == [0, 1] * 5
    for arm, mark in marks[:7]:
        live.late(arm, 1.0 + arm, mark)
    assert live.ask() == 1  # arm 1 has three rewards
    live.forget(*marks[8])
    assert live.s.pulls[:2].tolist() == [4, 5]


def test_squares_that_overflow():
    live = started(GaussianTS(), 2)
    for value in (1e150, -1e150, 1e150, -1e150, 1.0):
        live.tell(0, value)
        live.tell(1, 0.0)
    live.s.arms[0, 3] = math.inf
    given = chances(live)
    assert given.sum() == pytest.approx(1.0, abs=1e-8)
    assert {live.ask() for _ in range(50)} == {0, 1}


def test_one_huge_loss_of_the_best_arm():
    """Why it is not for heavy tails: the loss hides an advantage that 200 other rewards show."""
    rng = np.random.default_rng(0)
    before = started(GaussianTS(), 2)
    for _ in range(200):
        before.tell(0, float(rng.normal()) + 1.0)
        before.tell(1, float(rng.normal()))
    assert chances(before)[0] > 0.999
    before.tell(0, -1e4)
    assert chances(before)[0] < 0.5


def test_facts_and_rejections():
    assert GaussianTS().facts.bound
    assert not GaussianTS(alpha=0.0).facts.bound
    for wrong in (math.nan, math.inf, "x", 1e4, None):
        with raises(InvalidInput, parameter="alpha", rule="a finite number >= -1000 and <= 1000"):
            GaussianTS(alpha=wrong)
    normal = rb.Problem([rb.laws.Gaussian(mean=0.0, sd=2.0), rb.laws.Gaussian(mean=1.0, sd=2.0)])
    assert regret_bound(GaussianTS(), normal, 1000).instance == regret_bound(rb.NormalUCB(), normal, 1000).instance
    with pytest.raises(NotApplicable):
        regret_bound(GaussianTS(alpha=0.5), normal, 1000)

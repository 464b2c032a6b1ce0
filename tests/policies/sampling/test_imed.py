"""IMED against a full scan of indices computed from all rewards."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.duels import stream
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_sampling import SlowIMED
from robandit import IMED
from robandit.errors import InvalidInput, NotApplicable
from robandit.policies.assumptions import assumption_met
from robandit.policies.sampling import divergence, imed


def duel(live, slow, reward, steps, size, masks=None):
    """Play; every choice must be that of the slow policy. Return how many differ within rounding."""
    close = 0
    for step in range(steps):
        if masks is not None:
            allowed = masks(step)
            live.policy.set_allowed(live.s, allowed)
            slow.allowed = list(allowed)
        arm = live.ask()
        if (expected := slow.forced()) is None:
            values = slow.indices()
            expected = min(values, key=lambda i: (values[i], slow.pulls[i], i))
            if arm != expected:
                assert values[arm] - values[expected] <= 1e-9 * size(slow), (step, arm, values)
                close += 1
        else:
            assert arm == expected
        value = float(reward(arm))
        live.tell(arm, value)
        slow.learn(arm, value)
    return close


def rounding(slow):
    """The slow mean is rounded relative to the rewards, not to their spread."""
    means = [abs(slow.mean(i)) for i in slow.candidates()]
    return 1.0 + max(means) * max(map(len, slow.x)) / slow.scale


@pytest.mark.independent("IMED")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arms", [2, 5])
def test_decisions_of_the_gaussian_family(kind, arms):
    live, slow = Live(IMED(scale=0.7), arms), SlowIMED(arms, scale=0.7)
    close = duel(live, slow, stream(KINDS[kind], arms), 600, rounding)
    assert close < (300 if kind in ("constants", "integers", "coins", "narrow gains") else 5)


@pytest.mark.independent("IMED")
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"narrow gains"}))  # of which the slow mean has too few digits
def test_decisions_of_the_bounded_family(kind):
    """Some kinds have rewards above the bound, which rises."""
    arms = 2 + len(kind) % 4
    live, slow = Live(IMED(family="bounded", upper=1.0), arms), SlowIMED(arms, upper=1.0)
    close = duel(live, slow, stream(KINDS[kind], arms), amount(120, 400), lambda slow: 1.0)
    assert close < (200 if kind in ("constants", "integers", "coins", "two points", "half zeros") else 5)
    values, shown = slow.indices(), live.describe()["divergence"]
    for arm in range(arms):
        assert shown[arm] == pytest.approx(values[arm] - math.log(len(slow.x[arm])), rel=1e-9, abs=1e-9)


def test_decisions_with_masks_and_equal_arms():
    rng = np.random.default_rng(4)

    def masks(step):
        allowed = rng.random(4) < (0.7 if step % 3 else 1.1)
        allowed[int(rng.integers(4))] = True
        return allowed

    live, slow = Live(IMED(family="bounded", upper=1.0), 4), SlowIMED(4, upper=1.0)
    source = np.random.default_rng(5)
    assert duel(live, slow, lambda arm: source.random(), amount(500, 1500), lambda slow: 1.0, masks) < 5
    live, slow = Live(IMED(), 4), SlowIMED(4)
    assert duel(live, slow, lambda arm: source.normal(), amount(500, 1500), rounding, masks) < 5


def test_values_by_hand():
    live = Live(IMED(scale=2.0), 2)
    for x in (1.0, 3.0):
        live.tell(0, x)
    for x in (0.0, 1.0, 2.0):
        live.tell(1, x)
    # means 2 and 1: 3 (1)^2 / 8; indices log 2 and 0.375 + log 3
    assert live.describe()["divergence"].tolist() == [0.0, 0.375]
    assert live.ask() == 0
    live = Live(IMED(family="bounded", upper=1.0), 2)
    for arm, coins in enumerate(([1.0, 0.0], [1.0, 0.0, 0.0, 0.0])):
        for x in coins:
            live.tell(arm, x)
    kl = math.log(0.5) + 3 * math.log(1.5)  # 4 kl(1/4, 1/2)
    np.testing.assert_allclose(live.describe()["divergence"], [0.0, kl], rtol=1e-12)


def test_an_arm_that_always_pays_the_upper_bound():
    live = Live(IMED(family="bounded", upper=1.0), 3)
    for arm, x in enumerate((1.0, 0.9, 1.0)):
        live.tell(arm, x)
    live.tell(0, 1.0)
    assert live.describe()["divergence"].tolist() == [0.0, math.inf, 0.0]
    assert live.ask() == 2
    live.tell(2, 0.0)
    assert live.ask() == 0


def test_a_reward_above_the_bound_is_the_new_bound():
    bandit = rb.Bandit(["a", "b"], IMED(family="bounded", upper=1.0), seed=0)
    for arm, reward in (("a", 0.5), ("b", 7.0), ("b", 1.0), ("a", 2.0)):
        bandit.update(arm, reward)
    assert bandit.counters()["above_upper"] == 2
    assert [row["mean"] for row in bandit.estimates()] == [1.25, 4.0]
    bandit.add_arm("c")  # measured from the new bound, too
    bandit.update("c", 3.0)
    told = rb.Bandit(["a", "b", "c"], IMED(family="bounded", upper=7.0), seed=0)
    for arm, reward in (("a", 0.5), ("b", 7.0), ("b", 1.0), ("a", 2.0), ("c", 3.0)):
        told.update(arm, reward)
    assert told.counters()["above_upper"] == 0
    for one, other in zip(bandit.estimates(), told.estimates(), strict=True):
        assert one["mean"] == other["mean"]
        assert one["divergence"] == pytest.approx(other["divergence"], rel=1e-12)
    assert "above_upper" not in rb.Bandit(["a", "b"], IMED(), seed=0).counters()


def test_ties_go_to_the_fewest_pulls():
    for policy in (IMED(), IMED(family="bounded", upper=1.0)):
        live = Live(policy, 3)
        for arm in range(3):
            live.tell(arm, 0.5)
        assert live.ask() == 0
        live.issue(0)
        assert live.ask() == 1
        live.tell(1, 0.5)
        assert live.ask() == 2  # log 1 as arm 0, with fewer pulls


@pytest.mark.parametrize("family", ["gaussian", "bounded"])
def test_shown_indices_change_no_decision(family):
    policy = IMED(family=family, upper=1.0 if family == "bounded" else None)
    shown, silent = Live(policy, 3), Live(policy, 3)
    rng = np.random.default_rng(0)
    for _ in range(300):
        shown.describe()
        arm = silent.ask()
        assert shown.ask() == arm
        value = float(rng.random() + 0.05 * arm - 0.2)
        shown.tell(arm, value)
        silent.tell(arm, value)
    for one, two in zip(shown.s, silent.s, strict=True):
        if one.shape == shown.s.found.shape:
            one, two = one[:-1], two[:-1]  # the scratch row
        assert (one == two).all()


def test_few_exact_evaluations(monkeypatch):
    """The bounds decide most pulls: far fewer passes than arms times pulls."""
    calls = []
    original = divergence.solve
    monkeypatch.setattr(imed, "solve", lambda *args: calls.append(1) or original(*args))
    live = Plain(IMED(family="bounded", upper=1.0), 10)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        arm = live.ask()
        live.tell(arm, float(rng.random() * (0.5 + 0.05 * arm)))
    assert 10 < len(calls) < 1500


def test_late_rewards_and_expired_pulls():
    live = Live(IMED(family="bounded", upper=1.0), 2)
    marks = [(arm, live.issue(arm)) for arm in (0, 1, 0, 1)]
    assert live.ask() == 0
    live.late(1, 0.5, marks[1][1])
    assert live.ask() == 0  # still without a reward
    live.late(0, 0.5, marks[0][1])
    live.forget(0, marks[2][1])
    assert live.s.pulls[:2].tolist() == [1, 2]
    assert live.ask() == 0


def test_memory():
    one, two = (Live(policy, 2) for policy in (IMED(), IMED(family="bounded", upper=1.0)))
    for _ in range(500):
        one.tell(0, 0.5)
        two.tell(0, 0.5)
    assert one.grown == 0
    assert two.grown > 0


def test_what_it_must_know():
    heavy = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    told = IMED(family="bounded").informed_by(heavy)
    assert told.upper == pytest.approx(-1.0 / 3.0)
    assert assumption_met(told, heavy) is None  # the theorem's conditions on the left tail are not known to us
    coins = rb.problems.bernoulli(means=[0.2, 0.8])
    assert assumption_met(IMED(family="bounded", upper=1.0), coins) is True
    assert assumption_met(IMED(family="bounded", upper=-0.5), heavy) is False
    assert assumption_met(IMED(), heavy) is False
    normal = rb.Problem([rb.laws.Gaussian(mean=0.0, sd=2.0), rb.laws.Gaussian(mean=1.0, sd=2.0)])
    assert assumption_met(IMED(scale=2.0), normal) is True
    assert assumption_met(IMED(), normal) is False
    with pytest.raises(NotApplicable):
        IMED(family="bounded").informed_by(normal)
    costs = rb.problems.pareto(means=[1.0, 2.0], tail=1.5, minimize=True)
    assert IMED(family="bounded").informed_by(costs).upper == pytest.approx(-1.0 / 3.0)
    assert IMED(family="bounded", upper=3.0).informed_by(costs).upper == 3.0
    with raises(InvalidInput, parameter="problem", rule="a problem"):
        IMED(family="bounded").informed_by(3)


def test_rejections():
    with pytest.raises(InvalidInput, match="cannot play without upper"):
        IMED(family="bounded").prepared(10)
    for wrong, name, rule in (
        ({"family": "poisson"}, "family", "one of 'gaussian', 'bounded'"),
        ({"scale": 0.0}, "scale", "a finite number > 0"),
        ({"upper": 1.0}, "upper", "None for 'gaussian'"),
        ({"family": "bounded", "upper": math.inf}, "upper", "a finite number"),
        ({"family": "bounded", "scale": 2.0}, "scale", "omitted for 'bounded'"),
    ):
        with raises(InvalidInput, parameter=name, rule=rule):
            IMED(**wrong)


@pytest.mark.parametrize("policy", [rb.IMED(scale=1e-200), rb.IMED(scale=1e200)], ids=str)
def test_extreme_scales(policy):
    """The square of the scale is not computed: it would be 0 or infinite, and the divergence of equal means not a number."""
    run = Plain(policy, 2)
    for _ in range(3):
        run.tell(0, 1.0)
        run.tell(1, 2.0)
    with np.errstate(over="ignore"):
        divergence = run.describe()["divergence"]
    assert divergence[1] == 0.0
    assert divergence[0] == (0.0 if policy.scale > 1.0 else np.inf)

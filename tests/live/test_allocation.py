"""`Bandit.allocation`: against decisions on a copy, for all policies that have one; without an effect; deterministic."""

import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import InvalidInput, NotApplicable, UnavailableArm
from robandit.live.engine import MOST_STEPS

POLICIES = [
    rb.AdaKLUCB(),
    rb.AdaRUCB(),
    rb.UCB1(),
    rb.EpsilonGreedy(epsilon=0.3),
    rb.GaussianTS(),
    rb.Probing(rb.UCB1()),
    rb.Restarting(rb.UCB1()),
]


def used(policy, **options):
    """A bandit with rewards and open decisions."""
    bandit = rb.Bandit(["a", "b", "c"], policy, 3, compile="never", **options)
    for k in range(60):
        decision = bandit.decide()
        if k % 4:
            bandit.reward(decision, {"a": 1.0, "b": 0.5, "c": 0.9}[decision.arm] * (1.0 + 0.1 * (k % 7)))
    return bandit


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("decisions", [100, 137])
def test_it_is_what_a_copy_decides(policy, decisions):
    bandit = used(policy)
    before = bandit.to_bytes()
    shares = bandit.allocation(decisions)
    copy = rb.Bandit.from_bytes(before, compile="never")
    arms = [copy.decide().arm for _ in range(decisions)]
    assert shares == {arm: arms.count(arm) / decisions for arm in "abc"}
    assert bandit.allocation(decisions) == shares
    assert bandit.to_bytes() == before


def test_a_random_policy_makes_at_least_100_decisions():
    assert rb.Bandit(["a", "b"], rb.EpsilonGreedy(epsilon=1.0), 1, compile="never").allocation(1)["a"] not in (0.0, 1.0)


def test_decisions_in_flight_are_not_counted():
    bandit = used(rb.AdaKLUCB())
    copy = rb.Bandit.from_bytes(bandit.to_bytes(), compile="never")
    arms = [copy.decide().arm for _ in range(90)][50:]
    assert bandit.allocating()(40, 50) == {arm: arms.count(arm) / 40 for arm in "abc"}


def test_of_very_many_decisions_each_choice_stands_for_several():
    bandit = used(rb.AdaKLUCB())
    few = bandit.allocation(MOST_STEPS)
    many = bandit.allocation(10**9)
    assert sum(many.values()) == pytest.approx(1.0)
    assert set(few) == set(many)
    exact, coarse = (rb.Bandit(["a", "b"], rb.UCB1(), compile="never").allocation(n) for n in (1_000, 100_000))
    assert exact == coarse == {"a": 0.5, "b": 0.5}  # nothing is known of any arm


def test_paused_arms_are_left_out():
    bandit = used(rb.UCB1())
    bandit.select(among=["a", "b"])
    bandit.pause_arm("b")
    assert set(bandit.allocation(10)) == {"a", "c"}
    for arm in "ac":
        bandit.pause_arm(arm)
    with pytest.raises(UnavailableArm, match="no arm is active"):
        bandit.allocation(10)


def test_a_choice_among_some_arms_does_not_restrict_it():
    bandit = used(rb.UCB1())
    expected = bandit.allocation(50)
    bandit.select(among=["b"])
    assert bandit.allocation(50) == expected


def test_bad_input():
    bandit = used(rb.UCB1())
    for wrong in (0, -1, 1.5, "10", True):
        with raises(InvalidInput, parameter="decisions", rule="an integer from 1 to 1000000000000"):
            bandit.allocation(wrong)
    for policy in (rb.Ada2TINF(), rb.RobustMOSS(eps=1.0, u=1.0, horizon=10)):
        with pytest.raises(NotApplicable, match="no allocation: let each decision ask"):
            rb.Bandit(["a", "b"], policy, compile="never").allocation(10)
    with pytest.raises(NotApplicable, match=r"^MARS with a floor of 0.1 counts"):
        rb.Bandit(["a", "b"], rb.MARS(), floor=0.1, compile="never").allocation(10)

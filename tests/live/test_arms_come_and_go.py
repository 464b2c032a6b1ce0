"""Arms that are added, paused, resumed and retired, and choices among some of them."""

import math
import re

import numpy as np
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from helpers.live_bandits import ARMS, QUICK, loss, next_decisions
from helpers.own_policies import Exp3
from robandit.errors import InvalidInput, NotApplicable, UnavailableArm, UnknownArm

QUICK_POLICIES = [rb.UCB1(), QUICK, rb.EpsilonGreedy(), rb.OptTINF(), rb.Uniform()]


def named(policy):
    return policy.label


@pytest.mark.parametrize("policy", [*QUICK_POLICIES, rb.AdaKLUCB()], ids=named)
def test_arms_added_before_the_first_pull_make_no_difference(policy):
    made = rb.Bandit(ARMS, policy, seed=7)
    grown = rb.Bandit(ARMS[:1], policy, seed=7)
    for arm in ARMS[1:]:
        grown.add_arm(arm)
    assert grown.to_bytes() == made.to_bytes()
    assert next_decisions(grown, 80) == next_decisions(made, 80)
    assert grown.to_bytes() == made.to_bytes()


@pytest.mark.parametrize("policy", QUICK_POLICIES, ids=named)
def test_paused_and_retired_arms_are_not_chosen(policy):
    rng = np.random.default_rng(0)
    bandit = rb.Bandit(ARMS, policy, seed=1)

    def chosen(count=60):
        arms = set()
        for _ in range(count):
            decision = bandit.decide()
            arms.add(decision.arm)
            bandit.reward(decision, loss(rng, ARMS.index(decision.arm)))
        return arms

    assert chosen() == set(ARMS)
    bandit.pause_arm("eu")
    assert chosen() <= {"us", "asia"}
    assert bandit.states == {"eu": "paused", "us": "active", "asia": "active"}
    bandit.pause_arm("us")
    assert chosen() == {"asia"}
    bandit.retire_arm("us")
    bandit.resume_arm("eu")
    assert chosen() <= {"eu", "asia"}
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    assert again.states == bandit.states == {"eu": "active", "us": "retired", "asia": "active"}
    assert [(row["arm"], row["state"]) for row in again.estimates()] == list(again.states.items())
    assert [(row.arm, row.state) for row in again.diagnose().arms] == list(again.states.items())
    assert "retired" in str(again.diagnose())
    assert next_decisions(again) == next_decisions(bandit)


def test_late_rewards_of_absent_arms_are_learned():
    bandit = rb.Bandit(ARMS, rb.UCB1())
    decisions = [bandit.decide() for _ in ARMS]
    bandit.pause_arm("eu")
    bandit.retire_arm("us")
    bandit.reward_many(decisions, [1.0, 2.0, 3.0])
    bandit.update("us", 4.0)  # a pull that somebody else made
    assert [(row["pulls"], row["mean"]) for row in bandit.estimates()] == [(1, 1.0), (2, 3.0), (1, 3.0)]


@pytest.mark.parametrize("policy", QUICK_POLICIES, ids=named)
def test_one_choice_among_some(policy):
    rng = np.random.default_rng(2)
    bandit = rb.Bandit([*ARMS, "sa"], policy, seed=1)
    chosen = set()
    for step in range(200):
        among = [arm for arm in bandit.arms if rng.integers(2)] or ["eu"]
        if step % 3 == 0:
            arm = bandit.select(among=among)
            assert bandit.select(among=iter(among)) == arm
            assert bandit.select(among=reversed(among)) == arm, "the order has no meaning"
            if step % 2:
                bandit.update(arm, loss(rng))
        else:
            decision = bandit.decide(among=among)
            arm = decision.arm
            if decision.propensity is not None:
                assert 0.0 < decision.propensity <= 1.0
                assert len(set(among)) > 1 or decision.propensity == pytest.approx(1.0, abs=1e-12)
            bandit.reward(decision, loss(rng))
        assert arm in among
        chosen.add(arm)
    assert chosen == {*ARMS, "sa"}


def test_a_choice_among_some_is_the_best_of_them():
    bandit = rb.Bandit(["a", "b", "c"], rb.UCB1(scale=0.1))
    bandit.update_many(["a", "b", "c"] * 5, [1.0, 2.0, 3.0] * 5)
    index = {row["arm"]: row["index"] for row in bandit.estimates()}
    assert bandit.select() == "c" == max(index, key=index.get)
    assert bandit.select(among=["a", "b"]) == "b"
    assert bandit.select() == "c"
    assert bandit.select(among=["a"]) == "a"
    bandit.pause_arm("b")
    assert bandit.select(among=["a", "b"]) == "a"


def test_weighted_updates_use_the_probability_of_the_restricted_choice():
    bandit = rb.Bandit(ARMS, rb.OptTINF(), seed=0)
    for _ in range(5):
        bandit.reward(bandit.decide(), -0.01)
    twin = rb.Bandit.from_bytes(bandit.to_bytes())
    decision = bandit.decide(among=["us", "asia"])
    bandit.reward(decision, -0.01)
    assert twin.select(among=["us", "asia"]) == decision.arm
    twin.estimates()  # shows probabilities among all arms, and changes nothing
    twin.update(decision.arm, -0.01)
    assert bandit.estimates() == twin.estimates()


@cases(
    ("act", "error", "parameter", "rule"),
    [
        (lambda b: b.pause_arm("mars"), UnknownArm, "arm", "one of 'eu'"),
        (lambda b: b.pause_arm("paused"), InvalidInput, "arm", "an arm that is active: this one is paused"),
        (lambda b: b.resume_arm("eu"), InvalidInput, "arm", "an arm that is paused: this one is active"),
        (lambda b: b.resume_arm("retired"), InvalidInput, "arm", "an arm that is paused: this one is retired"),
        (lambda b: b.retire_arm("retired"), InvalidInput, "arm", "active or paused: this one is retired"),
        (lambda b: b.add_arm("eu"), InvalidInput, "arm", "a new name: this arm exists and is active"),
        (lambda b: b.add_arm("paused"), InvalidInput, "arm", "a new name: this arm exists and is paused"),
        (lambda b: b.add_arm("retired"), InvalidInput, "arm", "a new name: this arm exists and is retired"),
        (lambda b: b.add_arm(math.inf), InvalidInput, "arm", "a string, a finite number"),
        (lambda b: b.select(among=["eu", "mars"]), UnknownArm, "arm", "one of 'eu'"),
        (lambda b: b.select(among=[]), UnavailableArm, "among", "names with an active arm"),
        (lambda b: b.decide(among=["paused", "retired"]), UnavailableArm, "among", "names with an active arm"),
        (lambda b: b.select(among="eu"), InvalidInput, "among", "a list"),
        (lambda b: b.decide(among={"eu", "us"}), InvalidInput, "among", "a list"),
    ],
)
def test_mistakes_change_nothing(act, error, parameter, rule):
    bandit = rb.Bandit(["eu", "us", "paused", "retired"], rb.UCB1())
    bandit.pause_arm("paused")
    bandit.retire_arm("retired")
    before = bandit.to_bytes()
    with raises(error, parameter=parameter, rule=rule):
        act(bandit)
    assert bandit.to_bytes() == before


def test_without_active_arms_nothing_can_be_chosen():
    bandit = rb.Bandit(["a", "b"], rb.UCB1())
    open_decision = bandit.decide()
    bandit.pause_arm("a")
    bandit.retire_arm("b")
    for ask in (bandit.select, bandit.decide):
        with pytest.raises(UnavailableArm, match=r"no arm is active: 'a' is paused, 'b' is retired; resume or add one"):
            ask()
    bandit.reward(open_decision, 1.0)
    again = rb.Bandit.from_bytes(bandit.to_bytes())
    again.resume_arm("a")
    assert again.select() == "a"


class Fixed(rb.Policy):
    """A policy of one's own that does not read s.allowed."""

    def init(self, arms, horizon):
        return rb.Uniform().init(arms, horizon)

    @staticmethod
    def select(p, s):
        return 0

    @staticmethod
    def update(p, s, arm, reward):
        pass


@pytest.mark.parametrize("policy", [rb.Oracle(arm=0), Fixed(), Exp3()], ids=named)
def test_policies_that_cannot_say_so_by_name(policy):
    bandit = rb.Bandit(ARMS, policy, seed=0)
    before = bandit.to_bytes()
    for act in (
        lambda: bandit.pause_arm("us"),
        lambda: bandit.retire_arm("us"),
        lambda: bandit.select(among=["eu", "us"]),
    ):
        with pytest.raises(
            NotApplicable, match=rf"^{re.escape(policy.name)} cannot .* its select\(\) does not read s\.allowed"
        ):
            act()
    assert bandit.to_bytes() == before


class Own(rb.policies.index.IndexPolicy):
    """An index policy of one's own: greedy with a bonus."""

    row_length = 2

    @staticmethod
    def add(p, s, arm, reward):
        s.arms[arm, 0] += 1.0
        s.arms[arm, 1] += reward

    @staticmethod
    def mean(p, s, arm):
        return s.arms[arm, 1] / s.arms[arm, 0]

    @staticmethod
    def index(p, s, arm, level):
        return s.arms[arm, 1] / s.arms[arm, 0] + 1.0 / s.arms[arm, 0]


def test_an_index_policy_of_ones_own_gets_it_for_free():
    bandit = rb.Bandit(["a", "b"], Own())
    bandit.update_many(["a", "b"] * 10, [1.0, 2.0] * 10)
    assert bandit.select() == "b"
    bandit.pause_arm("b")
    assert bandit.select() == "a"
    bandit.add_arm("c")
    assert bandit.select() == "c"
    assert bandit.select(among=["a", "b"]) == "a"
    bandit.resume_arm("b")
    bandit.update("c", 0.0)
    assert bandit.select() == "b"


# --- the regret of an arm that comes late -----------------------------------------------------------------------------


def regret_after_arrival(policy, seed, *, late):
    """Play 2,000 rounds on Pareto costs with means 2 and 1.5, then 2,000 more with a third arm with mean 1.

    Return the regret of the second half. With ``late=False`` the bandit starts anew with all three arms.
    """
    rng = np.random.default_rng(seed)
    means = {"a": 2.0, "b": 1.5, "c": 1.0}

    def play(bandit, rounds):
        regret = 0.0
        for _ in range(rounds):
            arm = bandit.select()
            bandit.update(arm, means[arm] * float(rng.pareto(2.5)) * 1.5)
            regret += means[arm] - min(means[each] for each in bandit.arms)
        return regret

    if not late:
        return play(rb.Bandit(["a", "b", "c"], policy, seed=seed, minimize=True), 2000)
    bandit = rb.Bandit(["a", "b"], policy, seed=seed, minimize=True)
    play(bandit, 2000)
    bandit.add_arm("c")
    return play(bandit, 2000)


@pytest.mark.parametrize("policy", [rb.AdaKLUCB(), rb.UCB1(scale=2.0), rb.HTINF(eps=1.0, u=4.0)], ids=named)
def test_the_regret_of_a_late_arm_is_near_that_of_a_fresh_start(policy):
    """The means over 12 seeds differ by at most 3 standard errors of the difference and a quarter of the fresh regret."""
    fresh = np.array([regret_after_arrival(policy, seed, late=False) for seed in range(12)])
    late = np.array([regret_after_arrival(policy, seed, late=True) for seed in range(12)])
    error = math.hypot(fresh.std(ddof=1), late.std(ddof=1)) / math.sqrt(12)
    assert late.mean() <= 1.25 * fresh.mean() + 3 * error
    assert late.mean() < 0.5 * 2000 * 0.75, "half of the regret of uniform play"

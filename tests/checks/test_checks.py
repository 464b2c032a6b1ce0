"""`check_policy` accepts every policy of the package, and rejects policies that are wrong in one way each."""

import json
from typing import ClassVar

import numpy as np
import pytest

import robandit as rb
from helpers.own_policies import Exp3, Greedy
from robandit.checks import check_policy
from robandit.checks import policies as checks

OWN = rb.policies.all_policies()


@pytest.mark.parametrize("policy", [*OWN, Greedy(), Exp3()], ids=lambda policy: policy.name)
def test_every_policy_passes(policy):
    check_policy(policy)


def test_the_list_of_policies_is_complete():
    listed = {getattr(rb.policies, name).__name__ for name in rb.policies.policy_names()}
    assert rb.OptHTINF is rb.OptTINF
    assert rb.Policy.from_dict({"policy": "OptHTINF"}) == rb.OptTINF()
    assert {type(policy).__name__ for policy in OWN} == listed >= {"AdaRUCB", "UCB1"}
    assert all(isinstance(policy, rb.Policy) for policy in OWN)


# --- negative controls ----------------------------------------------------------------------------------------------


def mean_of(s, arm):
    return s.arms[arm, 0] / max(s.arms[arm, 1], 1.0)


class Forgetful(Greedy):
    """Takes 0 as the mean of an arm without rewards: with positive rewards it never tries one."""

    @staticmethod
    def select(p, s):
        best = 0
        for arm in range(1, s.arms.shape[0]):
            if mean_of(s, arm) > mean_of(s, best):
                best = arm
        return best


class Curious(Greedy):
    """Counts a pull when it is asked: `select` learns."""

    @staticmethod
    def select(p, s):
        best = 0
        for arm in range(1, s.arms.shape[0]):
            if s.arms[arm, 1] - 0.01 * s.arms[arm, 0] < s.arms[best, 1] - 0.01 * s.arms[best, 0]:
                best = arm
        s.arms[best, 1] += 1.0
        return best

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 0] += reward


class Deaf(Greedy):
    """Takes turns, whatever the rewards."""

    @staticmethod
    def select(p, s):
        total = 0.0
        for arm in range(s.arms.shape[0]):
            total += s.arms[arm, 1]
        return int(total) % s.arms.shape[0]


class Mute(Greedy):
    """Leaves its parameters out of its JSON."""


class Wordy(Greedy):
    """Writes its parameters in a type that JSON does not have."""


# A class that overrides the method is rejected.
Mute.to_dict = lambda self: {"policy": self.tag()}
Wordy.to_dict = lambda self: {"policy": self.tag(), "eps": complex(self.eps)}


class Moody(Greedy):
    """Starts from a random state."""

    def init(self, arms, horizon):
        state = Greedy.init(self, arms, horizon)
        state.arms[:] = np.random.default_rng().normal(size=(arms, 2))
        state.arms[:, 1] = 1.0
        return state


class Drifting(Greedy):
    """Starts from another state after its first two runs: a simulation and a live bandit differ."""

    made: ClassVar = []

    def init(self, arms, horizon):
        state = Greedy.init(self, arms, horizon)
        self.made.append(0)
        state.arms[0, 0] = len(self.made) > 2
        state.arms[:, 1] = 1.0
        return state


class Stubborn(rb.UCB1):
    """Excludes arms only until they have rewards."""

    @staticmethod
    def select(p, s):
        best = -1
        for arm in range(s.arms.shape[0]):
            if s.arms[arm, 1] == 0.0 and s.allowed[arm]:
                return arm
            if s.arms[arm, 1] > 0.0 and (best < 0 or mean_of(s, arm) > mean_of(s, best)):
                best = arm
        return best


class Nostalgic(Greedy):
    """Plays the allowed arm that it found last, and keeps it when other arms are allowed again."""

    respects_allowed = True

    @staticmethod
    def select(p, s):
        last = int(s.arms[0, 0])
        if not s.allowed[last]:
            last = 0
            while not s.allowed[last]:
                last += 1
            s.arms[0, 0] = last
        return last

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 1] += 1.0


def message(policy, only=None):
    """Return the message of the failing check; with ``only``, of that check."""
    with pytest.raises(AssertionError) as failure:
        (only or check_policy)(policy)
    return str(failure.value)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Forgetful(), "never tried some arm"),
        (Curious(), "asked often"),
        (Deaf(), "ignores rewards or the seed"),
        (Mute(eps=0.7), "does not survive JSON: it came back as Mute(eps=0.3)"),
        (Wordy(eps=0.7), "does not survive JSON: Object of type complex"),
        (Moody(), "not reproducible"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, rb.Policy) else "",
)
def test_a_wrong_policy_fails_by_name(policy, words):
    text = message(policy)
    assert words in text
    assert type(policy).__name__ in text


@pytest.mark.parametrize(
    ("policy", "words"), [(Stubborn(), "but the allowed arms are"), (Nostalgic(), "after an exclusion")]
)
def test_a_policy_that_ignores_the_allowed_arms_is_noticed(policy, words):
    assert words in message(policy, checks.check_allowed_arms)


def test_what_is_skipped_is_said_with_its_reason():
    (skipped,) = check_policy(Greedy())
    assert "respects_allowed is False" in skipped
    assert "Greedy(eps=0.3)" in skipped
    assert check_policy(rb.UCB1()) == []


class Powerful(Greedy):
    """Python computes this power by ``pow``, compiled code by products."""

    @staticmethod
    def update(p, s, arm, reward):
        s.arms[arm, 0] += reward**5
        s.arms[arm, 1] += 1.0


def test_other_arithmetic_of_plain_python_is_noticed():
    words = message(Powerful(eps=0.3), checks.check_interpreted_agrees)
    assert "plain Python and compiled code differ in arms; in hooks, write x * x" in words


def test_a_live_bandit_that_differs_from_the_simulation_is_noticed():
    assert "the simulation another" in message(Drifting(eps=0.001), checks.check_live_agrees)


def test_the_checks_find_the_defects_of_others_one_by_one():
    """Control of the controls: the policies above pass the checks of what they do right."""
    checks.check_value(Forgetful())
    checks.check_value(Curious())
    checks.check_reproducible(Curious())
    checks.check_pulls_add_up(Deaf())
    checks.check_asking_never_learns(Deaf())
    assert json.dumps(Greedy(eps=0.5).to_dict())

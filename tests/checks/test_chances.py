"""`check_chance` accepts correct probabilities, and finds each kind of wrong ones."""

import math

import pytest

import robandit as rb
from helpers.own_policies import Exp3, Greedy, greedy_arm
from robandit.checks.chances import check_chance
from robandit.kernel.random import uniform


class Silent(Greedy):
    """Has random choices, and no probabilities."""

    chance = None


class Unsure(Greedy):
    """Has random choices with unknown probabilities."""

    @staticmethod
    def chance(p, s, arm):
        return math.nan


class Short(Greedy):
    """Forgets the exploration: the probabilities do not sum to 1."""

    @staticmethod
    def chance(p, s, arm):
        return 1.0 - p.eps if greedy_arm(s) == arm else 0.0


class Negative(Greedy):
    @staticmethod
    def chance(p, s, arm):
        return 1.2 if greedy_arm(s) == arm else -0.1


class Swapped(Greedy):
    """Says that the exploration never repeats the best arm: probabilities, but wrong by a tenth."""

    @staticmethod
    def chance(p, s, arm):
        return 1.0 - p.eps if greedy_arm(s) == arm else p.eps / (s.arms.shape[0] - 1)


class Drawing(Greedy):
    """Draws random numbers when asked for a probability."""

    @staticmethod
    def chance(p, s, arm):
        uniform(s.rng)
        return p.eps / s.arms.shape[0] + (1.0 - p.eps if greedy_arm(s) == arm else 0.0)


class Learning(Greedy):
    """Changes what the next choice depends on."""

    @staticmethod
    def chance(p, s, arm):
        given = p.eps / s.arms.shape[0] + (1.0 - p.eps if greedy_arm(s) == arm else 0.0)
        if arm == 2:
            s.arms[1, 0] += 1000.0
        return given


class Flattened(Exp3):
    """Divides by a constant instead of the probability of the choice."""

    @staticmethod
    def take(p, s, arm):
        return 1.0 / s.logs.shape[0]


class TwoFaced(Exp3):
    """Tells another probability than it divides by."""

    @staticmethod
    def chance(p, s, arm):
        return 1.0 / s.logs.shape[0]


class NoChoice(rb.Uniform):
    """Does not know that some arms are not allowed."""

    @staticmethod
    def chance(p, s, arm):
        return 1.0 / s.allowed.shape[0]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Silent(), r"no chance\(\) that returns their probabilities: write chance"),
        (Short(), "they must sum to 1"),
        (Negative(), r"they must be in \[0, 1\]"),
        (Swapped(), "but chooses with frequencies"),
        (Drawing(), "chance must not draw random numbers"),
        (Learning(), "chance must not change the state"),
        (Flattened(), "but chooses with frequencies"),
        (TwoFaced(), "take must return the chance"),
        (NoChoice(), "without the first arm,"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, rb.Policy) else "",
)
def test_wrong_probabilities_are_found(policy, words):
    with pytest.raises(AssertionError, match=words) as failure:
        check_chance(policy)
    assert type(policy).__name__ in str(failure.value)


@pytest.mark.parametrize(
    "policy",
    [Greedy(), Greedy(eps=0.0), Exp3(), Unsure(), rb.Uniform(), rb.UCB1(), rb.EpsilonGreedy(epsilon=1.0)],
    ids=lambda policy: policy.name,
)
def test_correct_probabilities_pass(policy):
    check_chance(policy)

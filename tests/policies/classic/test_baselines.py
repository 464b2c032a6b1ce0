"""Uniform play, epsilon-greedy and the oracle."""

import math

import numpy as np
import pytest

from helpers.driving import Live, Plain
from helpers.duels import SlowIndexPolicy
from helpers.invalid import raises
from helpers.rewards import KINDS
from robandit import EpsilonGreedy, Oracle, Uniform, problems
from robandit.errors import InvalidInput
from robandit.kernel.random import streams, uniform
from robandit.policies.classic.uniform import any_arm


def words(seed):
    return streams(np.random.SeedSequence(seed), 1)[0]


def test_uniform_play_is_uniform():
    live = Live(Uniform(), 5)
    live.s.rng[:] = words(3)
    chosen = []
    for _ in range(20_000):
        chosen.append(live.ask())
        live.tell(chosen[-1], 1.0 if chosen[-1] == 0 else -1.0)
    pulls = np.bincount(chosen, minlength=5)
    assert ((pulls - 4000) ** 2 / 4000).sum() < 18.5  # chi-square, 4 degrees of freedom, 0.1%
    again = np.bincount(5 * np.array(chosen[:-1]) + chosen[1:], minlength=25)
    assert ((again - 800) ** 2 / 800).sum() < 52.6  # pairs: 24 degrees


@pytest.mark.parametrize("arms", [1, 2, 3, 7, 1000])
def test_any_arm_is_an_arm_at_the_ends_too(arms, monkeypatch):
    from robandit.policies.classic import uniform as module

    for u, arm in ((2.0**-53, 0), (1.0, arms - 1), (1.0 - 2.0**-53, arms - 1)):
        monkeypatch.setattr(module, "uniform", lambda rng, u=u: u)
        assert any_arm(np.ones(arms, dtype=bool), words(0)) == arm


def test_any_arm_is_uniform_on_the_allowed_arms():
    """Chi-squared with 2 degrees of freedom: above 18.4 with probability 1e-4."""
    allowed = np.array([False, True, True, False, True])
    rng = words(1)
    with np.errstate(over="ignore"):
        counts = np.bincount([any_arm(allowed, rng) for _ in range(9000)], minlength=5)
        assert counts[~allowed].sum() == 0
        assert ((counts[allowed] - 3000) ** 2 / 3000).sum() < 18.4
        # Negative control: the next allowed arm in place of one that is not favours arms after a gap.
        wrong = [
            next(k % 5 for k in range(j, j + 5) if allowed[k % 5])
            for j in np.random.default_rng(0).integers(0, 5, 9000)
        ]
        assert ((np.bincount(wrong, minlength=5)[allowed] - 3000) ** 2 / 3000).sum() > 18.4
        assert any_arm(np.zeros(3, dtype=bool), rng) == -1


class SlowEpsilonGreedy(SlowIndexPolicy):
    def value(self, arm, t):
        total = 0.0
        for x in self.x[arm]:
            total += x
        return total / len(self.x[arm])

    def choose(self, epsilon, rng):
        arms = len(self.x)
        if all(self.x):
            with np.errstate(over="ignore"):
                if uniform(rng) <= epsilon:
                    return math.ceil(uniform(rng) * arms) - 1
        values = self.indices()
        return min(range(arms), key=lambda i: (-values[i], len(self.x[i]), i))


@pytest.mark.independent("EpsilonGreedy")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_epsilon_greedy_decides_as_the_slow_one(kind, epsilon):
    live, slow = Live(EpsilonGreedy(epsilon=epsilon), 4), SlowEpsilonGreedy(4)
    live.s.rng[:] = words(7)
    coins, rng = words(7), np.random.default_rng(1)
    for _ in range(200):
        arm = live.ask()
        assert arm == slow.choose(epsilon, coins)
        value = float(KINDS[kind](rng, arm, 1)[0])
        live.tell(arm, value)
        slow.learn(arm, value)
    assert live.describe()["mean"].tolist() == [slow.value(i, 0) if slow.x[i] else math.nan for i in range(4)]


def test_epsilon_greedy_without_rewards_takes_turns():
    live = Live(EpsilonGreedy(), 3)
    live.follow_0_2()
    marks = [(live.ask(), live.issue(live.ask())) for _ in range(6)]
    assert [arm for arm, _ in marks] == [0, 1, 2] * 2
    assert np.isnan(live.describe()["mean"]).all()
    live.late(1, 5.0, 1.0)
    live.forget(2, 1.0)
    assert live.ask() == 2


@pytest.mark.parametrize("epsilon", [-0.1, 1.5, math.nan, True, "0.1"])
def test_epsilon_is_a_probability(epsilon):
    with raises(InvalidInput, parameter="epsilon", rule="a finite number >= 0 and <= 1"):
        EpsilonGreedy(epsilon=epsilon)


def test_the_oracle_plays_the_best_arm():
    problem = problems.bernoulli(means=[0.2, 0.8, 0.5])
    policy = Oracle().informed_by(problem)
    assert policy == Oracle(arm=1)
    assert Oracle(arm=2).informed_by(problem) == Oracle(arm=2)
    live = Plain(policy, 3)
    for _ in range(5):
        assert live.ask() == 1
        live.tell(1, -1e9)


def test_the_oracle_rejects_what_is_no_arm():
    for arm in (-1, 1.0, True, "0"):
        with raises(InvalidInput, parameter="arm", rule="an integer from 0 to 2^53"):
            Oracle(arm=arm)
    with raises(InvalidInput, parameter="arm", rule="an integer from 0 to 2"):
        Oracle(arm=3).init(3, None)
    with pytest.raises(InvalidInput, match="cannot play without arm"):
        Oracle().prepared(10)

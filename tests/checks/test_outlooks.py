"""`check_policy` compares an ``outlook`` with a full scan. Without one, a policy scans all indices."""

import math
import re

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.cases import cases
from helpers.driving import Live
from robandit.checks import check_policy, outlooks
from robandit.kernel.lazy import HEIGHT
from robandit.live import saving
from robandit.policies.index import FLAT, SLACK, IndexPolicy, no_outlook


class Plain(IndexPolicy):
    """UCB1 as a user writes it, without ``outlook``."""

    scale: float = 1.0
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
        return s.arms[arm, 1] / s.arms[arm, 0] + p.scale * math.sqrt(2.0 * level / s.arms[arm, 0])


def tangent(p, s, arm, level):
    mean, width = s.arms[arm, 1] / s.arms[arm, 0], p.scale * math.sqrt(2.0 * level / s.arms[arm, 0])
    return mean + width + SLACK * (abs(mean) + width), 0.5 * width / level, math.inf


class Quick(Plain):
    """The same with a correct outlook."""

    outlook = staticmethod(tangent)


class IgnoresLevel(Plain):
    outlook = FLAT


class TooLow(Plain):
    """The line starts below the index."""

    @staticmethod
    def outlook(p, s, arm, level):
        height, slope, until = tangent(p, s, arm, level)
        return height - 1e-3 * p.scale, slope, until


class TooLowInPercent(Plain):
    """The line is below the index only if the index is positive."""

    @staticmethod
    def outlook(p, s, arm, level):
        height, slope, until = tangent(p, s, arm, level)
        return 0.99 * height, slope, until


class TooFlat(Plain):
    @staticmethod
    def outlook(p, s, arm, level):
        height, slope, until = tangent(p, s, arm, level)
        return height, 0.5 * slope, until


class OnlyTheMean(Plain):
    @staticmethod
    def outlook(p, s, arm, level):
        return s.arms[arm, 1] / s.arms[arm, 0], 0.0, math.inf


class TakesTime(Plain):
    """The slope is that for t, but ``level`` is log t."""

    @staticmethod
    def outlook(p, s, arm, level):
        height, slope, until = tangent(p, s, arm, level)
        return height, slope * math.exp(-level), until


class Bursts(Plain):
    """The index jumps at level 4."""

    @staticmethod
    def index(p, s, arm, level):
        return Plain.index(p, s, arm, level) + (2.0 if level > 4.0 and s.arms[arm, 0] < 30.0 else 0.0)


class HoldsTooLong(Bursts):
    """The line ignores the jump."""

    outlook = staticmethod(tangent)


class HoldsUntilTheJump(Bursts):
    @staticmethod
    def outlook(p, s, arm, level):
        jumped = 2.0 if level > 4.0 and s.arms[arm, 0] < 30.0 else 0.0
        height, slope, _ = tangent(p, s, arm, level)
        return height + jumped + SLACK, slope, math.inf if level > 4.0 else 4.0


class ReadsOthers(Plain):
    """The index depends on the rewards of other arms."""

    outlook = FLAT

    @staticmethod
    def index(p, s, arm, level):
        total = 0.0
        for other in range(s.arms.shape[0]):
            total += s.arms[other, 0]
        return s.arms[arm, 1] / s.arms[arm, 0] + math.sqrt(total / s.arms[arm, 0])


class LowLater(Plain):
    """The line is too low only for arms with many rewards."""

    @staticmethod
    def outlook(p, s, arm, level):
        height, slope, until = tangent(p, s, arm, level)
        return (height if s.arms[arm, 0] < 60.0 else height - 1.0), slope, until


WRONG = [IgnoresLevel, TooLow, TooLowInPercent, TooFlat, OnlyTheMean, TakesTime, HoldsTooLong, ReadsOthers, LowLater]


@pytest.mark.parametrize(
    "policy", [cls(scale=scale) for cls in WRONG for scale in amount((1.0,), (0.3, 1.0, 20.0))], ids=repr
)
def test_a_wrong_outlook_is_named_with_the_first_pull_that_differs(policy):
    words = rf"^the outlook of {type(policy).__name__}\(scale={policy.scale}\) is wrong: at pull \d+ of (2|3|10) arms \([a-z ]+\)"
    with pytest.raises(AssertionError, match=words) as failure:
        check_policy(policy)
    assert "a full scan of the indices" in str(failure.value)
    assert len(str(failure.value).splitlines()) == 2


@pytest.mark.parametrize(
    "policy", [Quick(), Quick(scale=20.0), Bursts(), HoldsUntilTheJump(), *amount([], [Plain()])], ids=repr
)
def test_policies_with_a_correct_outlook_or_none_pass(policy):
    assert check_policy(policy) == []


def test_the_first_pull_that_differs(monkeypatch):
    with pytest.raises(AssertionError) as failure:
        outlooks.check_outlook(IgnoresLevel())
    pull, arms, kind = re.search(r"at pull (\d+) of (\d+) arms \(([a-z ]+)\)", str(failure.value)).groups()
    monkeypatch.setattr(outlooks, "HORIZON", int(pull))
    outlooks._compare(IgnoresLevel(), int(arms), kind)
    monkeypatch.setattr(outlooks, "HORIZON", int(pull) + 1)
    with pytest.raises(AssertionError, match=f"at pull {pull} "):
        outlooks._compare(IgnoresLevel(), int(arms), kind)


@cases("kind", ["bernoulli", "heavy", "tied"])
@cases("arms", [2, 3, 12])
@cases("seed", [1, 5])
def test_without_outlook_a_policy_plays_its_formula(kind, arms, seed):
    rng = np.random.default_rng(seed)
    ours, theirs = Live(Plain(), arms), Live(rb.UCB1(), arms)
    for step in range(500):
        if step % 25 == 0:
            allowed = rng.random(arms) < 0.7
            allowed[rng.integers(arms)] = True
            for each in (ours, theirs):
                each.policy.set_allowed(each.s, allowed)
        arm = ours.ask()
        assert arm == theirs.ask()
        reward = {"bernoulli": float(rng.random() < 0.5), "heavy": float(rng.standard_t(1.2)), "tied": arm // 2}[kind]
        ours.tell(arm, float(reward))
        theirs.tell(arm, float(reward))


def test_without_outlook_simulated_runs_are_those_of_ucb1():
    problem = rb.problems.bernoulli(means=[0.45, 0.5, 0.55])
    result = rb.simulate([Plain(), rb.UCB1()], problem, 2000, 20, seed=5, progress=False)
    assert result.pulls[0].tobytes() == result.pulls[1].tobytes()


def test_a_subclass_with_another_index_does_not_inherit_the_outlook():
    class Wider(rb.UCB1):
        @staticmethod
        def index(p, s, arm, level):
            return rb.UCB1.index(p, s, arm, level) + math.sqrt(level)

    class Slower(rb.UCB1):
        @staticmethod
        def level(p, s):
            return 1.0

    class Renamed(rb.UCB1):
        label = "another name"

    class Mixed(Bursts, Quick):
        pass

    assert Wider.outlook is Slower.outlook is Mixed.outlook is no_outlook
    assert Renamed.outlook is rb.UCB1.outlook


def test_lines_of_a_policy_without_outlook_are_not_loaded():
    """Up to version 0.2, such a policy saved constant lines, which an index that grows exceeds."""
    bandit, control = (rb.Bandit(["a", "b", "c"], Plain(), compile="never") for _ in range(2))
    for each in (bandit, control):
        each.update_many(["a", "b", "c"] * 5, [0.5, 0.6, 0.4] * 5)
        each.select()
    bandit._engine.state.lines[HEIGHT] = -10.0  # as if no arm could ever beat the leader
    stale = saving.unpack(bandit.to_bytes(), "file").state
    assert (stale.lines[HEIGHT] == math.inf).all()
    bandit = rb.Bandit.from_bytes(bandit.to_bytes(), compile="never")
    for _ in range(200):
        arm = bandit.select()
        assert arm == control.select()
        for each in (bandit, control):
            each.update(arm, 0.5)

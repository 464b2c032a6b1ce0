"""Normal UCB against its formula."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.duels import SlowIndexPolicy, duel, stream
from helpers.rewards import KINDS
from robandit import NormalUCB
from robandit.policies.classic import normal_ucb


class SlowNormalUCB(SlowIndexPolicy):
    least = 3

    def parts(self, arm, t):
        x = np.array(self.x[arm])
        n = len(x)
        mean = math.fsum(x) / n
        variance = math.fsum((x - mean) ** 2) / n
        return mean, math.sqrt(variance) * math.sqrt(t ** (2 / (n - 2)) - 1)

    def value(self, arm, t):
        return sum(self.parts(arm, t))

    def size(self, arm):
        """The slow t^(2/(n-2)) - 1 loses digits if n is large."""
        return sum(map(abs, self.parts(arm, self.t))) * (1 + len(self.x[arm])) if len(self.x[arm]) >= 3 else math.inf


def test_values_by_hand():
    live = Live(NormalUCB(), 2)
    for x in (1.0, 2.0, 3.0, 6.0):
        live.tell(0, x)
    columns = live.describe()
    assert columns["index"].tolist() == [3.0 + math.sqrt(3.5 * 3), math.inf]  # t = 4, n = 4: t^(2/2) - 1 = 3
    for _ in range(3):
        live.tell(1, 2.0)
    assert live.describe()["index"][1] == 2.0  # no variance
    assert live.describe()["index"][0] == pytest.approx(3.0 + math.sqrt(3.5 * 6))


@pytest.mark.independent("NormalUCB")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arms", [2, 6])
def test_decisions_are_those_of_the_formula(kind, arms):
    live, slow = Live(NormalUCB(), arms), SlowNormalUCB(arms)
    close = duel(live, slow, stream(KINDS[kind], arms), 400)
    assert close < (100 if kind in ("constants", "integers", "coins") else 5)
    columns = live.describe()
    for arm in range(arms):
        assert columns["index"][arm] == pytest.approx(slow.value(arm, slow.t), abs=1e-11 * slow.size(arm))


def test_every_arm_has_three_rewards_first():
    live = Live(NormalUCB(), 3)
    chosen = []
    for _ in range(9):
        chosen.append(live.ask())
        live.tell(chosen[-1], 0.0)
    assert chosen == [0, 1, 2] * 3
    late = Live(NormalUCB(), 2)
    marks = [(late.ask(), late.issue(late.ask())) for _ in range(10)]
    assert [arm for arm, _ in marks] == [0, 1] * 5
    for arm, mark in marks[:4]:
        late.late(arm, 1.0, mark)
    assert late.ask() == 0
    assert late.describe()["index"].tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("kind", ["student", "losses, tail 1.5", "narrow"])
def test_units_and_origin_do_not_matter(kind):
    one, two = Live(NormalUCB(), 3), Live(NormalUCB(), 3)
    reward = stream(KINDS[kind], 3)
    for _ in range(600):
        arm = one.ask()
        assert arm == two.ask()
        value = float(np.round(reward(arm) * 2**20) / 2**20)  # so that shifting is exact
        one.tell(arm, value)
        two.tell(arm, 8.0 * value + 1024.0)


@settings(max_examples=amount(150, 300), deadline=None, derandomize=True)
@given(st.integers(3, 10**6), st.floats(0.0, 36.0), st.floats(0.0, 1.0), st.floats(-1e6, 1e6))
def test_the_line_stays_above_the_index(n, level, share, mean):
    p, s = NormalUCB().params(), NormalUCB().init(2, None)
    level += math.log(6.0)
    s.arms[0] = [n, mean, 0.0, 2.0 * n]
    height, slope, until = NormalUCB.outlook(p, s, 0, level)
    assert until >= level * (1 - 1e-12)
    then = level + share * (min(until, 40.0) - level)
    assert NormalUCB.index(p, s, 0, then) <= height + slope * (then - level)


def test_few_arms_are_evaluated(monkeypatch):
    calls = []
    original = normal_ucb.width
    monkeypatch.setattr(normal_ucb, "width", lambda *args: calls.append(1) or original(*args))
    live = Plain(NormalUCB(), 20)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        arm = live.ask()
        live.tell(arm, rng.normal() + 0.1 * arm)
    assert len(calls) < 6 * 1500


def test_variances_that_overflow():
    live = Live(NormalUCB(), 2)
    for value in (1e200, -1e200, 1.0, 5.0):
        live.tell(0, value)
        live.tell(1, 0.0)
    assert live.describe()["index"].tolist() == [math.inf, 0.0]
    assert live.ask() == 0

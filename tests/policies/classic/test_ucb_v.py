"""UCB-V against its formula, with a known range and with an observed one."""

import math

import numpy as np
import pytest

from helpers.driving import Live, Plain
from helpers.duels import SlowIndexPolicy, duel, stream
from helpers.rewards import KINDS
from robandit import UCBV, problems
from robandit.errors import InvalidInput
from robandit.policies.classic import ucb_v


class SlowUCBV(SlowIndexPolicy):
    def __init__(self, arms, length="observed", zeta=1.2, c=1.0):
        super().__init__(arms)
        self.length, self.zeta, self.c = length, zeta, c

    def parts(self, arm, t):
        x = np.array(self.x[arm])
        n = len(x)
        mean = math.fsum(x) / n
        variance = math.fsum((x - mean) ** 2) / n
        rewards = [value for values in self.x for value in values]
        length = max(rewards) - min(rewards) if self.length == "observed" else self.length
        e = self.zeta * math.log(t + 1)
        return mean, math.sqrt(2 * variance * e / n), 3 * self.c * length * e / n

    def value(self, arm, t):
        return sum(self.parts(arm, t))

    def size(self, arm):
        return sum(map(abs, self.parts(arm, self.t)))


def test_values_by_hand():
    live = Live(UCBV(range=4.0), 2)
    for x in (1.0, 2.0, 3.0, 6.0):
        live.tell(0, x)
    columns = live.describe()
    e = 1.2 * math.log(5)
    assert columns["mean"][0] == 3.0
    assert columns["variance"][0] == 3.5
    assert columns["index"][0] == pytest.approx(3.0 + math.sqrt(2 * 3.5 * e / 4) + 3 * 4.0 * e / 4, rel=1e-14)
    assert columns["index"][1] == math.inf
    assert math.isnan(columns["mean"][1])


@pytest.mark.independent("UCBV")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("arms", "steps"), [(2, 300), (5, 300)])
def test_decisions_are_those_of_the_formula(kind, arms, steps):
    length = "observed" if arms == 5 else 3.0
    live, slow = Live(UCBV(range=length, c=0.3), arms), SlowUCBV(arms, length, c=0.3)
    close = duel(live, slow, stream(KINDS[kind], arms), steps, tolerance=1e-10)
    assert close < (steps // 3 if kind in ("constants", "integers", "coins") else 5)
    columns = live.describe()
    for arm in range(arms):
        assert columns["index"][arm] == pytest.approx(slow.value(arm, slow.t), abs=1e-10 * slow.size(arm))


def test_a_record_of_one_arm_widens_all():
    live, slow = Live(UCBV(), 3), SlowUCBV(3)
    rng = np.random.default_rng(0)
    duel(live, slow, lambda arm: float(rng.integers(0, 2)) - arm, 100)
    for record in (50.0, -1e3, 1e12, -1e12):
        live.tell(2, record)
        slow.learn(2, record)
        duel(live, slow, lambda arm: float(rng.integers(0, 2)) - arm, 30)


def test_an_offset_that_dwarfs_the_spread_costs_no_digits():
    live = Live(UCBV(range=1.0), 2)
    rng = np.random.default_rng(1)
    x = 1e9 + rng.random(3000)
    for value in x:
        live.tell(0, value)
    assert live.describe()["variance"][0] == pytest.approx(np.var(x - 1e9), rel=1e-9)
    for _ in range(10):
        live.tell(1, 1e9 + 0.1)
    assert live.describe()["variance"][1] == 0.0


def test_squares_that_overflow_make_the_variance_infinite():
    live = Live(UCBV(range=1.0), 2)
    for value in (1e200, -1e200, 1.0):
        live.tell(0, value)
    live.tell(1, 0.0)
    assert live.describe()["variance"][0] == math.inf
    assert live.ask() == 0


def test_few_arms_are_evaluated(monkeypatch):
    calls = []
    original = ucb_v.widths
    monkeypatch.setattr(ucb_v, "widths", lambda *args: calls.append(1) or original(*args))
    live = Plain(UCBV(range=1.0), 20)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        arm = live.ask()
        live.tell(arm, float(rng.random() < 0.2 + 0.03 * arm))
    assert len(calls) < 6 * 1500


def test_the_range_comes_from_a_bounded_problem():
    assert UCBV().informed_by(problems.bernoulli(means=[0.2, 0.8])).range == 1.0
    assert UCBV(range=3.0).informed_by(problems.bernoulli(means=[0.2, 0.8])).range == 3.0
    heavy = problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    assert UCBV().informed_by(heavy) == UCBV()


def test_an_observed_range_is_labelled():
    assert UCBV().name == "UCB-V, observed range"
    assert UCBV().facts.bound == ""
    assert "negative control" in UCBV().facts.notes[0]
    assert UCBV(range=2.0).name == "UCB-V(range=2.0)"
    assert UCBV(range=2.0).facts.knows == ("range",)
    assert UCBV(zeta=2.0).name == "UCB-V, observed range(zeta=2.0)"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("range", 0.0, "a finite number > 0"),
        ("range", "seen", "a finite number > 0"),
        ("range", None, "a finite number > 0"),
        ("zeta", 0.0, "a finite number > 0"),
        ("c", -1.0, "a finite number >= 0"),
    ],
)
def test_parameters_outside_their_domain(name, value, rule):
    with pytest.raises(InvalidInput, match=r"^UCBV: ") as caught:
        UCBV(**{name: value})
    assert (caught.value.parameter, caught.value.value, caught.value.rule) == (name, value, rule)

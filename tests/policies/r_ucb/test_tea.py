"""R-UCB-TEA and R-UCB-LT against their formulas."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.duels import SlowIndexPolicy, duel, stream
from helpers.evaluations import count_evaluations
from helpers.invalid import raises
from helpers.rewards import KINDS
from robandit import RUCBLT, RUCBTEA
from robandit.errors import InvalidInput
from robandit.policies._parts.reward_store import USED
from robandit.policies.r_ucb import tea as r_ucb_tea
from robandit.policies.r_ucb.growth import growth, growth_kind

WORDS = ("log", "log_squared", "log_log", "corollary")


def f_of(word, t):
    late = max(t, 3)
    return {
        "log": math.log(late),
        "log_squared": math.log(late) ** 2,
        "log_log": math.log(math.log(max(t, 16))),
        "corollary": 0.5 * math.exp(0.5 * math.sqrt(math.log(math.log(late)))),
    }[word]


class SlowTEA(SlowIndexPolicy):
    def __init__(self, arms, word):
        super().__init__(arms)
        self.word = word

    def parts(self, arm, t):
        x = np.array(self.x[arm])
        f = f_of(self.word, t + 1)
        kept = np.abs(x) <= f
        return math.fsum(x[kept]) / len(x), 16 * f * math.log(t + 1) / len(x), f, np.count_nonzero(~kept) / len(x)

    def value(self, arm, t):
        mean, width, f, _ = self.parts(arm, t)
        return mean + 1 / math.log(f) + width if f > 1 else math.inf

    def size(self, arm):
        mean, width, *_ = self.parts(arm, self.t)
        return abs(mean) + width + 1


class SlowLT(SlowTEA):
    def parts(self, arm, t):
        n = len(self.x[arm])
        return math.fsum(self.x[arm]) / n, math.sqrt(f_of(self.word, t + 1) * math.log(t + 1) / n)

    def value(self, arm, t):
        return sum(self.parts(arm, t))


def test_values_typed_in():
    live = Live(RUCBTEA(f="log"), 2)
    for x in (1.0, -1.5, 40.0, 2.0):
        live.tell(0, x)
    f = math.log(5)  # 1.609: 40 and 2 are beyond
    columns = live.describe()
    assert columns["mean"][0] == -0.125
    assert columns["threshold"][0] == f
    assert columns["share_trimmed"][0] == 0.5
    assert columns["index"][0] == pytest.approx(-0.125 + 1 / math.log(f) + 16 * f * f / 4, rel=1e-14)
    assert columns["index"][1] == math.inf
    for _ in range(4):
        live.tell(1, 0.0)
    assert live.describe()["mean"][0] == 0.375  # log 9 = 2.197: 2 is back
    light = Live(RUCBLT(f="log"), 2)
    for x in (1.0, -1.5, 40.0, 2.0):
        light.tell(0, x)
    assert light.describe()["index"][0] == pytest.approx(10.375 + math.log(5) / 2, rel=1e-14)


@pytest.mark.independent("RUCBTEA")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("word", "arms"), [("log", 3), ("log_squared", 2), ("log_squared", 5), ("log_log", 3)])
def test_tea_decides_as_its_formula_says(kind, word, arms):
    live, slow = Live(RUCBTEA(f=word), arms, 300 if arms == 3 else None), SlowTEA(arms, word)
    tied = kind in ("constants", "integers", "coins", "zeros", "mostly zeros", "two points", "half zeros")
    heavy = kind in ("gains", "narrow", "narrow gains")  # nothing is kept: all means are 0
    assert duel(live, slow, stream(KINDS[kind], arms), 300) < (150 if tied or heavy else 40)
    columns = live.describe()
    for arm in range(arms):
        mean, width, f, trimmed = slow.parts(arm, slow.t)
        assert columns["mean"][arm] == pytest.approx(mean, abs=1e-12 * f)
        assert columns["threshold"][arm] == pytest.approx(f, rel=1e-14)
        assert columns["share_trimmed"][arm] == pytest.approx(trimmed, abs=1e-14)
        assert columns["index"][arm] == pytest.approx(mean + width + 1 / math.log(f), rel=1e-12)


@pytest.mark.parametrize("kind", ["student", "losses, tail 1.5", "gains"])
def test_the_corollary_takes_turns_until_f_exceeds_1(kind):
    live, slow = Live(RUCBTEA(f="corollary"), 3, 1100), SlowTEA(3, "corollary")
    reward = stream(KINDS[kind], 2)
    duel(live, slow, reward, 928)
    assert [len(x) for x in slow.x] == [310, 309, 309]
    assert live.s.reach[r_ucb_tea.NOW] <= 1.0
    duel(live, slow, lambda arm: 0.1 * reward(arm), 172)
    assert live.s.reach[r_ucb_tea.NOW] > 1.0


@pytest.mark.independent("RUCBLT")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", WORDS)
def test_lt_decides_as_its_formula_says(kind, word):
    live, slow = Live(RUCBLT(f=word), 4), SlowLT(4, word)
    close = duel(live, slow, stream(KINDS[kind], 4), 250)
    assert close < (80 if kind in ("constants", "integers", "coins") else 5)
    columns = live.describe()
    for arm in range(4):
        assert columns["index"][arm] == pytest.approx(slow.value(arm, slow.t), abs=1e-11 * slow.size(arm))


def test_rewards_come_back_while_their_arm_is_not_pulled():
    """Arm 1 has one reward of each size and is then not pulled; each reward counts when f passes it."""
    live, slow = Live(RUCBTEA(f="log_squared"), 2, 3000), SlowTEA(2, "log_squared")
    for x in np.linspace(-60.0, 60.0, 61):
        live.tell(1, x)
        slow.learn(1, x)
    waiting = []

    def reward(arm):
        waiting.append(live.s.slots[1, USED])
        return 30.0 - 30.0 * arm

    duel(live, slow, reward, 1500)
    assert min(waiting) < max(waiting) - 20


def test_rewards_that_never_count_are_not_stored():
    live = Live(RUCBTEA(f="log"), 2, 1000)
    for x in (math.log(1001.0) + 1e-9, 1e12, -6.9, 3.0):
        live.tell(0, x)
    assert live.s.slots[0, USED] == 1 + 1  # 3 came before the first decision
    assert live.describe()["share_trimmed"][0] == 1.0
    for_ever = Live(RUCBTEA(f="log"), 2)
    for x in (36.0, 37.0, -1e300):
        for_ever.tell(0, x)
    assert for_ever.s.slots[0, USED] == 1


def test_many_waiting_rewards_make_it_grow():
    live, slow = Live(RUCBTEA(), 2), SlowTEA(2, "log_squared")
    rng = np.random.default_rng(5)
    duel(live, slow, lambda arm: rng.uniform(-1000, 1000) - arm, 300)
    assert live.grown > 0


def test_estimates_change_nothing():
    live = Live(RUCBTEA(f="log"), 2)
    for j in range(40):
        live.tell(j % 2, 0.2 * j)
    before = [array.copy() for array in live.s]
    live.describe()
    assert all((a == b).all() for a, b in zip(before, live.s, strict=True))


@settings(max_examples=amount(100, 200), deadline=None, derandomize=True)
@given(st.sampled_from(WORDS), st.integers(1, 10**6), st.integers(3, 10**7), st.floats(0.0, 1.0), st.floats(1.0, 60.0))
def test_lines_stay_above_and_end_before_a_reward_returns(word, n, t, share, size):
    level, kind = math.log(t), growth_kind(word)
    p, s = RUCBTEA(f=word).params(), RUCBTEA(f=word).init(2, None)
    s.reach[r_ucb_tea.NOW] = growth(kind, level)
    s.arms[0] = [n, n, -0.3 * n]
    if s.reach[r_ucb_tea.NOW] < size <= s.reach[r_ucb_tea.LAST]:
        s.pool[0, 0] = size
        s.slots[0, USED] = 1
    height, slope, until = RUCBTEA.outlook(p, s, 0, level)
    then = min(level + share * (until - level), until)
    if then >= level and s.reach[r_ucb_tea.NOW] > 1.0:
        assert growth(kind, then) < size or not s.slots[0, USED]
        s.reach[r_ucb_tea.NOW] = growth(kind, then)
        assert RUCBTEA.index(p, s, 0, then) <= height + slope * (then - level)
    p, s = RUCBLT(f=word).params(), RUCBLT(f=word).init(2, None)
    s.arms[0] = [-0.3 * n, n]
    height, slope, until = RUCBLT.outlook(p, s, 0, level)
    then = min(level + share * (min(until, 40.0) - level), until)
    assert RUCBLT.index(p, s, 0, then) <= height + slope * (then - level)


@pytest.mark.parametrize("policy", [RUCBTEA(), RUCBTEA(f="log"), RUCBLT()], ids=lambda policy: policy.name)
def test_few_arms_are_evaluated(policy, monkeypatch):
    evaluations = count_evaluations(policy, monkeypatch)
    live = Plain(policy, 20)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        arm = live.ask()
        live.tell(arm, rng.standard_t(1.5) + 0.2 * arm)
    assert 1000 < len(evaluations) < 6 * 1500


@pytest.mark.parametrize("policy", [RUCBTEA, RUCBLT])
def test_invalid_parameters(policy):
    with raises(InvalidInput, parameter="f", rule="one of 'log', 'log_squared', 'log_log', 'corollary'"):
        policy(f="sqrt")


def test_late_rewards():
    live = Live(RUCBTEA(f="log"), 2)
    marks = [live.issue(live.ask()) for _ in range(4)]
    assert live.s.pulls[:2].tolist() == [2, 2]
    for arm, value in ((1, 1.2), (0, 1.0), (1, 50.0)):
        live.late(arm, value, marks[0])
    f = math.log(5)
    expected = [1.0 + 1 / math.log(f) + 16 * f * f, 0.6 + 1 / math.log(f) + 8 * f * f]
    assert live.describe()["index"] == pytest.approx(expected)
    assert live.ask() == 0

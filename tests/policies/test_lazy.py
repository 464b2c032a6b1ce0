"""The lazy arg-max decides as a full scan does."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from robandit.kernel import lazy
from robandit.kernel.lazy import best_arm, forget_leader, lazy_state, touched
from robandit.policies import UCB1, AdaRUCB
from robandit.policies.index import TAKEN


class Pieces:
    """Indices given as functions: arm i has pieces, each ``base + rise * sqrt(level)`` up to the next event.

    At an event an index may jump either way. Pieces with ``rise = 0`` and a small integer as base make exact ties.
    """

    def __init__(self, arms):
        self.pieces = [[(math.inf, 0.0, 0.0)] for _ in range(arms)]
        self.rounds = [0] * arms
        self.lines, self.lead = lazy_state(arms)
        self.allowed = np.ones(arms, dtype=bool)
        self.evaluated = 0

    def piece(self, arm, level):
        return next(p for p in self.pieces[arm] if level < p[0])

    def index(self, arm, level):
        _, base, rise = self.piece(arm, level)
        return base + rise * math.sqrt(level)

    def lazy(self, level):
        return best_arm(counted_index, outlook, rounds, None, self, level)

    def scan(self, level):
        return min(np.flatnonzero(self.allowed), key=lambda i: (-self.index(i, level), self.rounds[i], i))


def counted_index(p, s, arm, level):
    s.evaluated += 1
    return s.index(arm, level)


def outlook(p, s, arm, level):
    end, base, rise = s.piece(arm, level)
    top = abs(base) + abs(rise) * math.sqrt(level)
    # The piece does not hold at its end itself, so the line ends just before.
    return base + rise * math.sqrt(level) + 1e-12 * top, 0.5 * rise / math.sqrt(level), math.nextafter(end, 0.0)


def rounds(p, s, arm):
    return s.rounds[arm]


INTEGERS = st.integers(-3, 3).map(float)
ANY = st.floats(-100, 100)
# Rises are not negative: a square root that falls is not below its tangent.
PIECES = st.lists(
    st.tuples(st.floats(1e-3, 10), st.one_of(INTEGERS, ANY), st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 50))),
    min_size=1,
    max_size=4,
)


@st.composite
def runs(draw):
    arms = draw(st.integers(1, 6))
    steps = []
    for _ in range(draw(st.integers(1, 40))):
        advance = draw(st.one_of(st.just(0.0), st.floats(0, 3)))  # the same level twice is a step too
        changes = draw(st.lists(st.tuples(st.integers(-1, arms - 1), PIECES), max_size=2))
        excluded = draw(st.one_of(st.none(), st.sets(st.integers(0, arms - 1), max_size=arms - 1)))
        steps.append((advance, changes, draw(st.booleans()), excluded))
    return arms, steps


@settings(max_examples=amount(80, 200), deadline=None, derandomize=True)
@given(runs())
def test_the_lazy_arm_is_the_best_arm(run):
    arms, steps = run
    s = Pieces(arms)
    level = 0.5
    last = 0
    for advance, changes, play, excluded in steps:
        if excluded is not None:
            s.allowed[:] = [arm not in excluded for arm in range(arms)]
            forget_leader(s.lines, s.lead)
        for where, pieces in changes:
            arm = last if where < 0 else where  # the leader's data change most often, as in a bandit
            end, made = level, []
            for length, base, rise in pieces:
                end += length
                made.append((end, base, rise))
            s.pieces[arm] = [*made[:-1], (math.inf, *made[-1][1:])]
            touched(s.lines, s.lead, arm)
        level += advance
        last = s.lazy(level)
        assert last == s.scan(level)
        if play:
            s.rounds[last] += 1  # rounds may change without touched: they only break ties


def test_it_is_lazy():
    """With smooth indices and one arm touched per round: a few evaluations, not one per arm."""
    arms, steps = 50, 2000
    rng = np.random.default_rng(0)
    s = Pieces(arms)
    for arm in range(arms):
        s.pieces[arm] = [(math.inf, rng.normal(), rng.uniform(1, 2))]
    for t in range(2, steps):
        level = math.log(t)
        arm = s.lazy(level)
        assert arm == s.scan(level)
        s.rounds[arm] += 1
        _, base, rise = s.pieces[arm][0]
        s.pieces[arm] = [(math.inf, base + rng.normal() / t, rise * math.sqrt(1 - 1 / (s.rounds[arm] + 5)))]
        touched(s.lines, s.lead, arm)
    assert s.evaluated < 4 * steps


class SlowUCB1:
    """UCB1 by its formula: every index, every time."""

    def __init__(self, arms, scale=1.0):
        self.sums, self.counts, self.scale, self.t = [0.0] * arms, [0] * arms, scale, 0

    def index(self, arm):
        n = self.counts[arm]
        level = math.log(self.t + 1)
        return self.sums[arm] / n + self.scale * math.sqrt(2 * level / n) if n else math.inf

    def choose(self):
        return min(range(len(self.sums)), key=lambda i: (-self.index(i), self.counts[i], i))

    def learn(self, arm, reward):
        self.sums[arm] += reward
        self.counts[arm] += 1
        self.t += 1


UCB1_REWARDS = {
    "bernoulli": lambda rng, arm: float(rng.random() < 0.3 + 0.4 / (1 + arm)),
    "always tied": lambda rng, arm: 0.0,
    "pairs tied": lambda rng, arm: float(arm // 2),
    "normal": lambda rng, arm: rng.normal() - 0.1 * arm,
    "heavy": lambda rng, arm: rng.standard_t(1.2) * 1e3,
    "large": lambda rng, arm: 1e140 * rng.random(),
}


@pytest.mark.independent("UCB1")
@pytest.mark.parametrize("kind", UCB1_REWARDS)
@pytest.mark.parametrize(("arms", "steps"), [(2, 800), (3, 800), (17, 800), (200, 900)])
def test_ucb1_is_a_full_scan(kind, arms, steps):
    rng = np.random.default_rng(arms)
    scale = [1.0, 0.1, 25.0][arms % 3]
    live, slow = Live(UCB1(scale=scale), arms), SlowUCB1(arms, scale)
    for _ in range(steps):
        arm = live.ask()
        assert arm == live.ask()
        assert arm == slow.choose()
        reward = UCB1_REWARDS[kind](rng, arm)
        live.tell(arm, reward)
        slow.learn(arm, reward)
    columns = live.describe()
    for arm in range(arms):
        assert columns["index"][arm] == pytest.approx(slow.index(arm), rel=1e-12)
        assert columns["mean"][arm] == pytest.approx(
            slow.sums[arm] / slow.counts[arm] if slow.counts[arm] else math.nan, nan_ok=True
        )


def test_ucb1_with_rewards_of_other_arms_than_asked_for():
    rng = np.random.default_rng(4)
    live, slow = Live(UCB1(), 6), SlowUCB1(6)
    for _ in range(1500):
        arm = live.ask()
        assert arm == slow.choose()
        for pulled in {arm, int(rng.integers(6))} if rng.random() < 0.3 else {arm}:
            reward = float(rng.integers(0, 3))
            live.tell(pulled, reward)
            slow.learn(pulled, reward)


def test_ucb1_with_arms_that_are_not_allowed():
    """Arm 5 is not allowed in the first half, and is tried as soon as it is."""
    rng = np.random.default_rng(7)
    live, slow = Plain(UCB1(), 6), SlowUCB1(6)
    allowed = np.ones(6, dtype=bool)
    for t in range(1000):
        if rng.random() < 0.1:
            allowed = rng.random(6) < 0.5
            allowed[rng.integers(5)] = True
        allowed[5] = t >= 500
        live.policy.set_allowed(live.s, allowed)
        arm = live.ask()
        assert arm == min(np.flatnonzero(allowed), key=lambda i: (-slow.index(i), slow.counts[i], i))
        assert t != 500 or arm == 5
        reward = float(rng.integers(0, 3)) / (1 + arm)
        live.tell(arm, reward)
        slow.learn(arm, reward)


def test_ucb1_with_late_rewards():
    live = Live(UCB1(), 3)
    marks = []
    for _ in range(5):  # no reward yet: the arm with the fewest open pulls
        arm = live.ask()
        marks.append((arm, live.issue(arm)))
    assert [arm for arm, _ in marks] == [0, 1, 2, 0, 1]
    live.forget(2, marks[2][1])
    assert live.ask() == 2
    before = live.s.pulls[3 + TAKEN]
    for arm, mark in marks[:2] + marks[3:]:
        live.late(arm, 0.5, mark)
        assert live.ask() == 2
    live.tell(2, 0.0)
    assert live.s.pulls[3 + TAKEN] == before + 1 == 6
    # Two rewards, or one and a pull that expired, which counts in n.
    twice, once = 0.5 + math.sqrt(math.log(7)), math.sqrt(math.log(7))
    assert live.describe()["index"] == pytest.approx([twice, twice, once])


def test_with_one_allowed_arm_no_other_is_evaluated():
    s = Pieces(4)
    s.allowed[:] = [False, True, False, False]
    assert s.lazy(1.0) == s.lazy(2.0) == s.lazy(3.0) == 1
    assert s.evaluated == 3


def test_the_old_leader_is_evaluated_after_its_return():
    """Its line, if any, is from before it led: it must not be used."""
    s = Pieces(3)
    for arm, base in enumerate((0.0, 5.0, 4.0)):
        s.pieces[arm] = [(math.inf, base, 0.0)]
    assert s.lazy(1.0) == 1
    s.pieces[1] = [(math.inf, 9.0, 0.0)]
    touched(s.lines, s.lead, 1)  # does nothing, because arm 1 leads
    s.allowed[1] = False
    forget_leader(s.lines, s.lead)
    assert s.lazy(1.0) == 2
    s.pieces[2] = [(math.inf, 7.0, 0.0)]
    s.allowed[1] = True
    forget_leader(s.lines, s.lead)
    assert s.lazy(1.0) == 1


@pytest.mark.parametrize(("policy", "rounds"), [(UCB1(), 3000), (AdaRUCB(c=0.5, delta_exp=1.0), 1500)], ids=repr)
def test_few_arms_are_evaluated(policy, rounds, monkeypatch):
    """A round evaluates the leader, and each arm whose line is then renewed."""
    renewed = []
    original = lazy.renew
    monkeypatch.setattr(lazy, "renew", lambda *args: renewed.append(args) or original(*args))
    rng = np.random.default_rng(0)
    arms = 30
    rewards = (rng.random((arms, 400)) < np.linspace(0.2, 0.8, arms)[:, None]).astype(float)
    Plain(policy, arms, 3000).replay(rewards, 3000)
    assert 0 < len(renewed) < 3 * rounds


LATE = [
    rb.AdaKLUCB(),
    rb.AdaKLProved(),
    AdaRUCB(c=0.5, delta_exp=1.0),
    UCB1(),
    rb.RUCBMoM(),
    rb.RobustUCB(estimator="truncated", eps=0.5, u=3.0),
    rb.KLinfUCB(eps=0.5, u=3.0),
    rb.EpsilonGreedy(),
]
STEPS = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 40])), min_size=1, max_size=3)


@pytest.mark.parametrize("policy", LATE, ids=repr)
@settings(max_examples=amount(6, 40), deadline=None, derandomize=True)
@given(STEPS, st.integers(2, 5))
def test_with_late_rewards_the_lazy_arm_is_that_of_a_full_scan(policy, stretches, arms):
    """Rewards come after random delays, in any order, or never. A stretch has its own law of delays."""
    lazy_run, scan = Plain(policy, arms), Plain(policy, arms)
    pulls = []
    for seed, mean in stretches:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            scan.s.lines[:], scan.s.lead[:] = lazy_state(arms)  # without lines, every index is computed
            arm = lazy_run.ask()
            assert arm == scan.ask()
            pulls.append((arm, *(run.issue(arm) for run in (lazy_run, scan))))
            while pulls and rng.random() < 1 - 1 / (1 + len(pulls) / mean):
                arm, *marks = pulls.pop(int(rng.integers(len(pulls))))
                reward = -float(rng.pareto(1.5)) - 0.3 * arm
                for run, mark in zip((lazy_run, scan), marks, strict=True):
                    if seed % 7 == 0:
                        run.forget(arm, mark)
                    else:
                        run.late(arm, reward, mark)
    assert lazy_run.s.unrewarded.tolist() == scan.s.unrewarded.tolist()


def test_a_line_below_the_index_is_noticed():
    """The negative control: an outlook that lets an arm rest for too long chooses other arms than a full scan."""

    class Sleepy(UCB1):
        @staticmethod
        def index(p, s, arm, level):
            return UCB1.index(p, s, arm, level)

        @staticmethod
        def outlook(p, s, arm, level):
            return UCB1.index(p, s, arm, level) - 1.0, 0.0, math.inf

    with pytest.raises(AssertionError):
        test_with_late_rewards_the_lazy_arm_is_that_of_a_full_scan.hypothesis.inner_test(Sleepy(), [(1, 5)] * 3, 4)

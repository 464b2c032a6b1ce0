"""Rewards that come late, in any order, or never: `take`, `update` and `expire` of AdaR-UCB."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.rewards import KINDS
from references.slow_adar_ucb import SlowAdaRUCB
from robandit.policies import AdaRUCB
from robandit.policies.adar import layout

IN_X, IN_TOP = layout.IN_X, layout.IN_TOP


@pytest.mark.parametrize("horizon", [4000, None])
@pytest.mark.parametrize("kind", ["losses, tail 1.5", "cauchy", "narrow", "half zeros", "integers", "gains"])
def test_the_order_of_arrival_does_not_matter(kind, horizon):
    rng = np.random.default_rng(1)
    policy = AdaRUCB(c=1.0)
    lockstep, late = Live(policy, 3, horizon), Live(policy, 3, horizon)
    pulls = []
    for _ in range(1500):
        arm = lockstep.ask()
        reward = float(KINDS[kind](rng, arm, 1)[0])
        lockstep.tell(arm, reward)
        pulls.append((arm, reward, late.issue(arm)))
    for position in rng.permutation(len(pulls)):
        late.late(*pulls[position])
    one, two = lockstep.describe(), late.describe()
    size = np.abs(one["mean"]) + one["threshold"]
    for name in policy.columns:
        assert (np.abs(one[name] - two[name]) <= 1e-11 * size).all(), name
    for column in (layout.N_X, layout.N_NONZERO, layout.ISSUED_X, layout.ISSUED_TOP):
        assert (lockstep.s.counts[:, column] == late.s.counts[:, column]).all()
    assert lockstep.ask() == late.ask()


def test_roles_alternate_and_belong_to_pulls_not_to_arrivals():
    live = Live(AdaRUCB(), 2)
    marks = [live.issue(1) for _ in range(6)]
    assert marks == [IN_X, IN_TOP] * 3
    for mark in reversed(marks):  # the last first: each reward goes where its pull was meant to
        live.late(1, 10.0 if mark == IN_X else 1.0, mark)
    assert live.s.counts[1, layout.N_X] == live.s.counts[1, layout.N_NONZERO] == 3
    assert live.s.buffer[1, layout.BIG_VALUE, :3].tolist() == [10.0] * 3
    assert live.s.buffer[1, layout.TOP_VALUE, :3].tolist() == [1.0] * 3


def test_the_second_pull_of_a_round_is_of_the_same_arm_whatever_arrives():
    live = Live(AdaRUCB(), 3)
    for expected in (0, 1, 2, 0, 1, 2):
        first = live.ask()
        assert first == expected
        live.issue(first)
        assert live.ask() == first
        live.issue(first)


def test_a_lost_first_pull_ends_its_round():
    live = Live(AdaRUCB(), 2)
    mark = live.issue(live.ask())
    assert live.ask() == 0
    live.forget(0, mark)
    assert live.s.clock[layout.CURRENT] == -1
    assert live.issue(0) == IN_X
    assert live.s.clock[layout.ROUNDS] == 2


def test_a_lost_pull_of_another_arm_leaves_the_round_alone():
    live = Live(AdaRUCB(), 2)
    lost = [live.issue(1), live.issue(1)]
    live.issue(0)
    live.forget(1, lost[0])
    assert live.ask() == 0
    assert live.issue(1) == IN_X  # made up for, and its round is whole at once
    assert live.ask() == 0


def test_lost_second_pulls_are_made_up_for():
    live = Live(AdaRUCB(), 2)
    marks = [live.issue(0) for _ in range(6)]
    live.forget(0, marks[1])
    live.forget(0, marks[3])
    assert live.issue(0) == IN_TOP
    assert live.ask() == 0  # still one short
    assert live.issue(0) == IN_TOP
    assert live.issue(0) == IN_X


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["take", "take", "reward", "expire", "ask"]), st.integers(0, 2), st.integers(0, 99)),
    max_size=60,
)


@settings(max_examples=amount(150, 300), deadline=None, derandomize=True)
@given(ACTIONS)
def test_bookkeeping_of_pulls(actions):
    """Against a model: a pull is for the stream with fewer of its arm's pulls that were not lost; the clock counts rounds begun."""
    live = Plain(AdaRUCB(c=0.3, delta_exp=1.0), 3, None)
    made = [[0, 0] for _ in range(3)]
    current, clock, waiting = -1, 0, []
    got = np.zeros((3, 2), dtype=int)
    for what, arm, choice in actions:
        if what == "take":
            mark = live.issue(arm)
            stream = 0 if made[arm][0] <= made[arm][1] else 1
            assert mark == (IN_X if stream == 0 else IN_TOP)
            made[arm][stream] += 1
            clock += stream == 0
            waiting.append((arm, mark))
            if made[arm][0] > made[arm][1]:
                current = arm
            elif current == arm:
                current = -1
        elif what == "ask":
            chosen = live.ask()
            assert current in (-1, chosen)
            assert 0 <= chosen < 3
        elif waiting:
            arm, mark = waiting.pop(choice % len(waiting))
            if what == "reward":
                live.late(arm, 1.0 + choice, mark)
                got[arm, int(mark)] += 1
            else:
                live.forget(arm, mark)
                made[arm][int(mark)] -= 1
                if mark == IN_X and current == arm and made[arm][0] <= made[arm][1]:
                    current = -1
        assert live.s.clock[layout.ROUNDS] == clock  # so it never goes back
        assert live.s.counts[:, [layout.ISSUED_X, layout.ISSUED_TOP]].tolist() == made
        assert live.s.counts[:, [layout.N_X, layout.N_NONZERO]].tolist() == got.tolist()
    # Left alone, every arm becomes balanced again.
    for arm in range(3):
        for _ in range(abs(made[arm][0] - made[arm][1])):
            live.issue(arm)
        assert live.s.counts[arm, layout.ISSUED_X] == live.s.counts[arm, layout.ISSUED_TOP]


def test_late_rewards_never_stop_exploration_of_the_others():
    """No reward ever arrives: arms share the pulls."""
    live = Live(AdaRUCB(), 4)
    pulls = np.zeros(4, dtype=int)
    for _ in range(80):
        arm = live.ask()
        live.issue(arm)
        pulls[arm] += 1
    assert pulls.tolist() == [20] * 4


@pytest.mark.parametrize("runner", [Live, Plain])
@pytest.mark.parametrize("horizon", [2600, None])
def test_many_rewards_at_once_between_two_evaluations(runner, horizon):
    """The threshold passes everything that was above it when it was last looked at, and all of that is merged meanwhile."""
    policy = AdaRUCB()
    rng = np.random.default_rng(7)
    for second in (np.full(1200, 1e4), 1e4 * (1 + 1e-3 * rng.random(1200)), 1e4 * rng.standard_normal(1200)):
        live, reference = runner(policy, 1, horizon), SlowAdaRUCB(1)
        for batch in (rng.standard_cauchy(60), second):
            for value in batch:
                live.tell(0, value)
                live.tell(0, -value)
                reference.learn(0, value, -value)
            tau = len(reference.x[0]) + 1
            if len(batch) == 60:
                live.s.clock[layout.ROUNDS] = 10
                assert live.describe()["share_trimmed"][0] > 0.3
                assert live.s.counts[0, layout.TOP_ABOVE] > 10
                live.s.clock[layout.ROUNDS] = tau - 1
        want, said = reference.precise(0, tau), live.describe()
        assert said["threshold"][0] == pytest.approx(float(want.threshold), rel=1e-12)
        assert said["index"][0] == pytest.approx(float(want.index), rel=1e-11)
        assert said["share_trimmed"][0] == float(want.share_trimmed)

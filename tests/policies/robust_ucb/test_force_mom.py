"""ForceMoM."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_force_mom import SlowForceMoM, blocks_of
from robandit.errors import InvalidInput
from robandit.policies.robust_ucb import force_mom as module
from robandit.policies.robust_ucb.force_mom import FORCED, GREEDY, KEPT, ForceMoM


def test_the_schedule_by_hand():
    """K = 2: m0 = ceil(16 log(4 + e)) = 31, so 62 forced pulls, which 2^(1/3) t^(2/3) passes first at t = 346."""
    assert math.ceil(16 * math.log(4 + math.e)) == 31
    assert 2 ** (1 / 3) * 345 ** (2 / 3) < 62 < 2 ** (1 / 3) * 346 ** (2 / 3)
    live = Live(ForceMoM(), 2)
    chosen, stored = [], []
    for t in range(1, 351):
        arm = live.ask()
        live.tell(arm, [1.0, 3.0][arm])
        chosen.append(arm)
        if live.describe()["stored"].sum() > len(stored):
            stored.append(t)
    assert chosen[:62] == [0, 1] * 31
    assert chosen[62:345] == [1] * 283
    assert stored == [*range(1, 63), 346, *[t for t in (347, 348, 349, 350) if 2 ** (1 / 3) * t ** (2 / 3) > 63]]
    assert chosen[345] == 0


@pytest.mark.parametrize(
    ("arms", "n", "blocks"), [(2, 1, 1), (2, 2, 1), (2, 4, 3), (2, 31, 7), (10, 50, 11), (10, 10**6, 13), (1, 5, 5)]
)
def test_blocks_by_hand(arms, n, blocks):
    assert module.block_count(arms, n) == blocks_of(n, arms) == blocks


def test_the_median_by_hand():
    """Seven blocks of four of 31 rewards: the last three are left out, and a block mean is the median."""
    live = Live(ForceMoM(), 2)
    values = [float((7 * j) % 31) ** 2 for j in range(31)]
    values[30] = 1e9
    for value in values:
        live.tell(0, value)
        live.tell(1, 0.0)
    means = [sum(values[4 * b : 4 * b + 4]) / 4 for b in range(7)]
    assert live.describe()["mean"].tolist() == [sorted(means)[3], 0.0]
    assert live.describe()["stored"].tolist() == [31.0, 31.0]


CASES = [(2, None, 2 / 3), (3, 1500, 0.9), (5, None, 2 / 3), (1, 1500, 0.3), (4, 1500, 0.8)]


@pytest.mark.independent("ForceMoM")
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_slow_one(kind):
    """Decisions are equal, ties included; where rounding could decide, the two estimates are."""
    arms, horizon, rho = CASES[len(kind) % len(CASES)]
    rng = np.random.default_rng(len(kind))
    live, slow = Live(ForceMoM(rho=rho), arms, horizon), SlowForceMoM(arms, rho)
    for step in range(1500):
        arm = live.ask()
        if slow.exploring():
            assert arm == slow.choose()
        elif step % 7 == 0:
            found = slow.estimates()
            tie = 1e-12 * max(map(abs, found))
            assert arm == slow.choose() or 0 < max(found) - found[arm] <= tie
        reward = float(KINDS[kind](rng, arm, 1)[0])
        live.tell(arm, reward)
        slow.learn(arm, reward)
    columns = live.describe()
    assert columns["stored"].tolist() == [len(stored) for stored in slow.stored]
    np.testing.assert_allclose(columns["mean"], slow.estimates(), rtol=1e-12, atol=1e-15)
    assert (live.s.plan[module.PLAN :] == columns["stored"]).all()


def test_ties_go_to_the_fewest_pulls():
    live, slow = Live(ForceMoM(), 3), SlowForceMoM(3)
    chosen = []
    for _ in range(900):
        chosen.append(live.ask())
        assert chosen[-1] == slow.choose()
        reward = 1.0 if chosen[-1] > 0 else -1.0
        live.tell(chosen[-1], reward)
        slow.learn(chosen[-1], reward)
    assert chosen[120:124] in ([1, 2, 1, 2], [2, 1, 2, 1])


def test_an_outlier_of_any_size_spoils_one_block():
    live = Live(ForceMoM(), 2)
    rng = np.random.default_rng(0)
    values = [[], []]
    for j in range(62):
        reward = 1e15 if j == 10 else float(rng.normal(j % 2))
        values[j % 2].append(reward)
        live.tell(j % 2, reward)
    slow = [sorted(math.fsum(v[4 * b : 4 * b + 4]) / 4 for b in range(7))[3] for v in values]
    assert live.describe()["mean"] == pytest.approx(slow, rel=1e-13)


@pytest.mark.parametrize("rho", [1e-15, 1e-9, 0.01, 0.3, 0.5, 2 / 3, 0.9, 0.999999])
@pytest.mark.parametrize("arms", [1, 2, 27, 1000])
def test_the_time_before_which_nothing_is_due_is_never_late(rho, arms):
    """And hardly early: the power is looked at only a few times in vain."""
    plan = np.zeros(module.PLAN, dtype=np.int64)
    for done in [1, 2, 30, 1000, 64_000, 10**6, 10**9]:
        for t in (1, 2, 26, 27, 28, 1000, 10**6, 10**12, 2**53):
            plan[module.DONE], plan[module.WAIT] = done, 0
            expected = done < module.schedule(rho, arms, t)
            assert module.due(rho, plan, arms, t) == expected
            wait = int(plan[module.WAIT])
            if not expected:
                for before in {wait - 1, max(wait // 2, 1), 1} if wait > 1 else ():
                    assert module.schedule(rho, arms, min(before, 2**60)) <= done
                if rho >= 0.3 and wait < 1e12:
                    assert module.schedule(rho, arms, wait + 3) > done


def test_the_power_is_seldom_looked_at(monkeypatch):
    calls = 0
    original = module.due

    def counted(*given):
        nonlocal calls
        calls += 1
        return original(*given)

    monkeypatch.setattr(module, "due", counted)
    live = Plain(ForceMoM(), 2)
    for _ in range(3000):
        live.tell(live.ask(), 0.0)
    forced = live.s.plan[module.DONE]
    assert forced == math.ceil(2 ** (1 / 3) * 3000 ** (2 / 3))
    assert calls < 3 * forced  # twice when it is due, and seldom otherwise


@pytest.mark.parametrize("rho", [0.2, 2 / 3])
def test_memory_grows_with_the_schedule(rho):
    live = Live(ForceMoM(rho=rho), 2)
    for _ in range(4000):
        live.tell(live.ask(), 1.0)
    forced = max(62, math.ceil(2 ** (1 - rho) * 4000**rho))
    assert live.s.slots[:2, 1].sum() == forced
    assert len(live.s.pool) <= 4 * forced + 64
    known = Live(ForceMoM(rho=rho), 2, 4000)
    assert len(known.s.pool) <= 2 * forced + 64


def test_what_a_pull_is_for_is_decided_when_it_is_made():
    live = Plain(ForceMoM(), 2)
    marks = [(arm, live.issue(arm)) for arm in [0, 1] * 31]
    assert {mark for _, mark in marks} == {FORCED}
    assert [live.ask() for _ in range(2)] == [0, 0]  # nothing is known: no greedy pull can be made
    assert live.issue(0) == KEPT
    assert live.ask() == 1
    for arm, mark in marks[:2]:
        live.late(arm, 5.0 + arm, mark)
    assert live.ask() == 1
    greedy = live.issue(1)
    assert greedy == GREEDY
    live.late(1, -1e9, greedy)
    assert live.describe()["mean"].tolist() == [5.0, 6.0]
    while live.s.pulls[2] < 345:
        assert live.issue(1) == GREEDY
    for arm, mark in reversed(marks[2:]):  # rounds later, and still stored
        live.late(arm, 2.0 - arm, mark)
    assert live.describe()["stored"].tolist() == [31.0, 31.0]
    assert live.describe()["mean"].tolist() == [2.0, 1.0]
    assert live.ask() == 0
    assert live.issue(0) == FORCED


def test_without_rewards_arms_share_the_pulls():
    live = Plain(ForceMoM(), 3)
    pulls = np.zeros(3, dtype=int)
    for _ in range(300):
        arm = live.ask()
        assert live.issue(arm) != GREEDY
        pulls[arm] += 1
    assert pulls.tolist() == [100] * 3


def test_lost_forced_pulls_are_made_up_for():
    live = Plain(ForceMoM(), 2)
    for j in range(62):
        arm = live.ask()
        assert arm == j % 2
        mark = live.issue(arm)
        if j in (7, 20, 21):
            live.forget(arm, mark)
            assert live.ask() == (1 if j != 20 else 0)
            again = live.ask()
            mark = live.issue(again)
            live.late(again, float(again), mark)
        else:
            live.late(arm, float(arm), mark)
    assert live.describe()["stored"].tolist() == [31.0, 31.0]
    assert live.s.plan[module.DONE] == 62
    assert live.ask() == 1
    greedy = live.issue(1)
    live.forget(1, greedy)
    assert live.s.plan[module.DONE] == 62
    assert live.s.pulls.tolist() == [31, 31, 66, 2]


def test_a_pull_lost_in_the_greedy_phase_is_forced_again():
    live = Plain(ForceMoM(), 2)
    marks = []
    for _ in range(62):
        arm = live.ask()
        marks.append(live.issue(arm))
        if len(marks) > 1:
            live.late(arm, float(arm), marks[-1])
    assert live.ask() == 1
    assert live.issue(1) == GREEDY
    live.forget(0, marks[0])
    assert live.ask() == 0
    assert live.issue(0) == FORCED
    assert live.ask() == 1


def test_an_arm_of_ones_own_choice():
    """In a forced round it is stored and does not count; in a greedy one it is not stored."""
    live = Plain(ForceMoM(), 2)
    for _ in range(100):
        live.tell(1, 7.0)
    assert live.s.plan[module.DONE] == 0
    assert live.describe()["stored"].tolist() == [0.0, 100.0]
    for _ in range(62):
        live.tell(live.ask(), 1.0)
    assert live.describe()["stored"].tolist() == [31.0, 131.0]
    assert live.ask() == 1
    live.tell(0, 1e9)
    assert live.describe()["stored"].tolist() == [31.0, 131.0]


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["play", "play", "play", "own", "reward", "lose"]), st.integers(0, 999)), max_size=80
)


@settings(max_examples=amount(75, 150), deadline=None, derandomize=True)
@given(ACTIONS, st.integers(1, 3))
def test_bookkeeping(actions, arms):
    """Against a model, with rewards in any order, lost pulls and arms of one's own choice."""
    live = Plain(ForceMoM(rho=0.9), arms)
    live.s.plan[module.LEAST] = 2 * arms  # a short first phase, to come to the rest
    forced, stored, taken, waiting = [0] * arms, [0] * arms, 0, []
    for what, number in actions:
        if what in ("play", "own"):
            exploring = sum(forced) < max(2 * arms, math.ceil(arms**0.1 * (taken + 1) ** 0.9))
            mine = min(range(arms), key=lambda i: (forced[i], i))
            arm = live.ask() if what == "play" else number % arms
            if what == "play" and exploring:
                assert arm == mine
            if what == "play" and not exploring and 0 in stored:
                assert stored[arm] == 0
            mark = live.issue(arm)
            taken += 1
            expected = (FORCED if arm == mine else KEPT) if exploring else GREEDY if stored[arm] else KEPT
            assert mark == expected
            forced[arm] += mark == FORCED
            waiting.append((arm, mark))
        elif waiting:
            arm, mark = waiting.pop(number % len(waiting))
            if what == "reward":
                live.late(arm, float(number), mark)
                stored[arm] += mark != GREEDY
            else:
                live.forget(arm, mark)
                forced[arm] -= mark == FORCED
        assert live.s.plan[module.PLAN :].tolist() == forced
        assert live.s.plan[module.DONE] == sum(forced)
        assert live.s.slots[:arms, 1].tolist() == stored


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5, math.nan, math.inf, "half", None, True])
def test_invalid_parameters(rho):
    with raises(InvalidInput, parameter="rho", rule="a finite number > 0 and < 1"):
        ForceMoM(rho=rho)

"""Rounds of duels: what LB-SDA and Dirichlet sampling share."""

import numpy as np
import pytest

import robandit as rb
from helpers.driving import Plain
from robandit.policies.sampling.rounds import LEADER, LEFT, PROPOSED, QUEUED, ROUND

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of 64-bit words, on purpose
POLICIES = [rb.LBSDA(), rb.LBSDA(memory="limited"), rb.LBSDA(window=50), rb.DirichletSampling()]
over_all = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)


def with_three_winners(policy):
    """Arm 0 leads with two rewards of 0. Arms 1, 2 and 3 have one reward above, and win in any case."""
    live = Plain(policy, 4)
    for arm, reward in [(0, 0.0), (0, 0.0), (1, 5.0), (2, 6.0), (3, 7.0)]:
        live.tell(arm, reward)
    return live


def pulled(live):
    arm = live.ask()
    live.issue(arm)
    return arm


@over_all
def test_all_winners_of_a_round_are_pulled_in_order(policy):
    """Even if a reward of the round changes who leads."""
    live = with_three_winners(policy)
    chosen = []
    for _ in range(3):
        arm = live.ask()
        assert live.ask() == arm
        chosen.append(arm)
        live.tell(arm, -100.0 if arm == 1 else 50.0)
        assert live.s.clock[ROUND] == 1
    assert chosen == [1, 2, 3]
    assert live.s.clock[LEADER] == 0
    assert live.s.clock[LEFT] == 0


@over_all
def test_a_proposal_is_void_after_a_late_reward(policy):
    """Before the round starts, a reward may change it; afterwards it does not."""
    live = with_three_winners(policy)
    mark = live.issue(0)  # its reward is late; the pull was not proposed
    assert live.s.clock[ROUND] == 0
    assert live.ask() == 1
    live.late(1, 5.0, live.issue(1))  # starts the round
    assert live.ask() == 2
    live.late(0, 1e6, mark)
    assert live.ask() == 2
    assert [pulled(live), pulled(live)] == [2, 3]

    live = with_three_winners(policy)
    mark = live.issue(0)
    assert live.ask() == 1
    assert live.s.clock[PROPOSED] == 1
    live.late(0, -1.0, mark)
    assert live.s.clock[PROPOSED] == 0
    assert live.s.clock[ROUND] == 0


@over_all
def test_arms_that_are_not_allowed_are_skipped(policy):
    live = with_three_winners(policy)
    assert pulled(live) == 1
    policy.set_allowed(live.s, [True, True, False, True])
    assert live.ask() == 3
    policy.set_allowed(live.s, [True] * 4)
    assert live.ask() == 2  # it is still queued
    policy.set_allowed(live.s, [True, True, False, False])
    arm = live.ask()  # nothing is left of this round for the allowed arms
    assert arm == 1
    live.issue(arm)
    assert live.s.clock[ROUND] == 2
    assert live.s.duels[QUEUED].sum() == live.s.clock[LEFT]


@over_all
def test_a_paused_leader_is_replaced(policy):
    live = with_three_winners(policy)
    policy.set_allowed(live.s, [False, True, True, True])
    arm = live.ask()
    assert arm != 0
    live.issue(arm)
    assert live.s.clock[LEADER] == (3 if not getattr(policy, "window", None) else live.s.clock[LEADER])
    assert live.s.clock[LEADER] > 0


@over_all
def test_pulls_of_other_arms_belong_to_no_round(policy):
    live = with_three_winners(policy)
    assert live.ask() == 1
    live.issue(0)
    assert live.s.clock[ROUND] == 0
    assert live.ask() == 1
    live.issue(3)  # proposed, but not the first: the round starts
    assert live.s.clock[ROUND] == 1
    assert [pulled(live), pulled(live)] == [1, 2]


@over_all
def test_an_added_arm_is_tried_first(policy):
    live = with_three_winners(policy)
    assert pulled(live) == 1
    longer = Plain(policy, 5, state=policy.extended(live.s))
    policy.resumed(longer.s, 4)
    policy.set_allowed(longer.s, [True] * 5)
    assert longer.ask() == 4
    longer.tell(4, 0.0)
    assert [pulled(longer), pulled(longer)] == [2, 3]  # the round goes on


@over_all
def test_lost_pulls_leave_no_round_open(policy):
    live = with_three_winners(policy)
    for _ in range(3):
        arm = live.ask()
        live.forget(arm, live.issue(arm))
    assert live.s.clock[LEFT] == 0
    assert live.ask() == 1  # the same rewards: the same winners
    assert np.array_equal(live.s.pulls[:4], [2, 1, 1, 1])

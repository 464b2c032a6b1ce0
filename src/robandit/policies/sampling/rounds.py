"""Rounds of duels between a leader and its challengers: the shared code of LB-SDA and Dirichlet sampling.

The arms that win their duels are pulled once each, in the order of the arms (the papers shuffle them); if none wins, the leader is.

``select`` must not learn, so it only proposes a round: the proposal is a cache, which is void after a reward or a change of the
allowed arms. The round starts when a proposed arm is pulled (`Rounds.take`); its other arms are then queued. A queued arm that is
not allowed is skipped; if no other one is left, the next round is proposed. A pull of any other arm belongs to no round.

A state that uses it has the fields ``pulls`` (from `robandit.policies.index.no_pulls`), ``clock`` and ``duels`` (from `no_rounds`)
and ``slots`` (:mod:`robandit.policies._parts.reward_store`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Ints
from robandit.policies._parts.blocks import two_product, two_sum
from robandit.policies._parts.counting import Counting
from robandit.policies._parts.reward_store import stored_rewards
from robandit.policies.index import first_untried, take_pull

# The clock: rounds started, leader of the last one (-1: none), the round since which it leads, queued arms, 1 if there is a
# proposal, and the leader, the first arm and the number of arms of that proposal.
ROUND, LEADER, SINCE, LEFT, PROPOSED, NEXT, CHOICE, WINNERS, CLOCK = 0, 1, 2, 3, 4, 5, 6, 7, 8
# Rows of ``duels``, one column per arm: 1 if the arm is in the proposal, 1 if it is queued, 1 if it was in the last round, and the
# round of its last pull, where pulls before the first round count for it.
WINS, QUEUED, WON, DRAWN, DUELS = 0, 1, 2, 3, 4


def no_rounds(arms: int) -> tuple[Ints, Ints]:
    """Return ``clock`` and ``duels`` of a new run."""
    clock = np.zeros(CLOCK, dtype=np.int64)
    clock[LEADER] = -1
    duels = np.zeros((DUELS, arms), dtype=np.int64)
    duels[DRAWN] = 1
    return clock, duels


class Rounds(Counting):
    """The hooks of a policy that plays rounds, for which the proposal depends on the allowed arms."""

    columns: ClassVar[tuple[str, ...]] = ("mean", "stored")

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        """Count a pull. If the arm is queued, remove it from the queue; if it is proposed, start the round."""
        if s.clock[LEFT] > 0 and s.duels[QUEUED, arm] == 1:
            s.duels[QUEUED, arm] = 0
            s.clock[LEFT] -= 1
        elif s.clock[PROPOSED] == 1 and s.duels[WINS, arm] == 1:
            start_round(s, arm)
        s.duels[DRAWN, arm] = max(1, s.clock[ROUND])
        return take_pull(p, s, arm)

    def forget_choice(self, state: Any) -> None:
        state.clock[PROPOSED] = 0


def select_in_round(propose: Any, p: Any, s: Any) -> int:
    """Return an arm without rewards, else the next arm of the round, else the first arm of a new round from ``propose(p, s)``."""
    arm = first_untried(stored_rewards, s, 1.0)
    if arm < 0 and s.clock[LEFT] > 0:
        arm = first_queued(s)
    if arm >= 0:
        return arm
    if s.clock[PROPOSED] == 0:
        propose(p, s)
        s.clock[PROPOSED] = 1
    return s.clock[CHOICE]


@out_of_line
def first_queued(s: Any) -> int:
    """Return the first queued arm that is allowed, or -1."""
    for arm in range(s.allowed.shape[0]):
        if s.duels[QUEUED, arm] == 1 and s.allowed[arm]:
            return arm
    return -1


def settle(s: Any, leader: int, winners: int) -> None:
    """Complete a proposal whose winners are marked: without a winner, it is the leader's turn."""
    if winners == 0:
        s.duels[WINS, leader] = 1
        winners = 1
    s.clock[NEXT] = leader
    s.clock[WINNERS] = winners
    arm = 0
    while s.duels[WINS, arm] == 0:
        arm += 1
    s.clock[CHOICE] = arm


def start_round(s: Any, arm: int) -> None:
    """Start the proposed round with a pull of this arm."""
    clock, duels = s.clock, s.duels
    clock[ROUND] += 1
    if clock[LEADER] != clock[NEXT]:
        clock[LEADER] = clock[NEXT]
        clock[SINCE] = clock[ROUND]
    for other in range(duels.shape[1]):
        duels[QUEUED, other] = duels[WON, other] = duels[WINS, other]
    duels[QUEUED, arm] = 0
    clock[LEFT] = clock[WINNERS] - 1
    clock[PROPOSED] = 0


# --- exact comparisons of means -------------------------------------------------------------------------------------------

# A sum of rewards is a pair of numbers, high and low, as in `robandit.policies._parts.blocks`. Means are compared as products of
# sums and counts, without division. So equal means of discrete rewards are equal here, and a challenger wins such a duel.


def excess(high: float, low: float, other_high: float, other_low: float) -> float:
    """Return the first sum minus the second."""
    total, lost = two_sum(high, -other_high)
    return total + (lost + (low - other_low))


@out_of_line
def excess_of_mean(high: float, low: float, n: int, other_high: float, other_low: float, m: int) -> float:
    """Return a number with the sign of the first mean, of n rewards, minus the second, of m rewards."""
    product, lost = two_product(high, float(m))
    other, other_lost = two_product(other_high, float(n))
    return excess(product, lost + low * m, other, other_lost + other_low * n)

"""AdaTINF (Huang, Dai, Huang 2022)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints, UInts
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.base import Policy, check_horizon
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.tinf.ftrl import (
    FRESH,
    HEARD,
    MADE,
    SKIPPED,
    believe,
    decide,
    drawn,
    level,
    look,
    new_state,
    solve_square,
)

__all__ = ["AdaTINF"]

THETA = 1.0 - 2.0 ** (-1.0 / 3.0)
Q = 2.0  # weights are (1 + m + eta L)^-2

# Fields of ``ledger``:
LEVEL = 0  # 2^J: the scale that rewards are believed to have
SPENT = 1  # S: costs since J changed
END = 2  # one more than the pulls that are planned for


class Params(NamedTuple):
    """Whether to start anew, for twice as many pulls, when those planned for are made (`Ada2TINF`)."""

    restarts: int


class State(NamedTuple):
    """What follow the regularised leader keeps, and the ledger of costs."""

    losses: Floats
    weights: Floats
    root: Floats
    clock: Ints
    rng: UInts
    ledger: Floats


class AdaTINF(Policy):
    """HTINF with eps = 1 that finds the scale of the rewards by doubling: it must be told the horizon only.

    Choices are random, by follow the regularised leader, and rewards beyond a threshold are skipped, as in `HTINF`. The scale of
    the rewards starts at 1. What skipped and learned rewards may have cost is added up, and when the sum exceeds what the
    scale allows for, the scale is doubled, or more. Use it when nothing is known of the moments but the number of pulls;
    `Ada2TINF` does without that too. It only protects the worst case: no instance-dependent bound is known.

    Parameters
    ----------
    horizon
        Number of pulls. None: not told yet; `simulate` fills it in.

    Guarantee
    ---------
    If the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (so its mean is at most 0), then for
    every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret is at worst ``K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)``, against
    adversaries too (Theorem 6.1). Must know: the horizon. Not anytime, random.

    Notes
    -----
    The paper is about losses; here the loss is minus the reward. The cost of a skipped reward is its loss with its sign, as
    printed. With late rewards, eta and the threshold are those of the time when a reward arrives (pulls made until then, and
    the scale believed in then), with the probability of the reward's own decision.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b", "c"], rb.AdaTINF(horizon=1000), seed=0)
    >>> bandit.update(bandit.select(), -0.05)
    >>> [round(row["probability"], 6) for row in bandit.estimates()]
    [0.34651, 0.34651, 0.30698]

    References
    ----------
    J. Huang, Y. Dai, L. Huang. Adaptive best-of-both-worlds algorithm for heavy-tailed multi-armed bandits. ICML 2022, PMLR 162.
    """

    horizon: int | None = None

    weighted = True
    columns = ("mean", "probability")
    about = Facts(
        knows=("horizon",),
        anytime=False,
        random=True,
        assumption=NONPOSITIVE,
        bound="Theorem 6.1 of Huang et al.",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)",
        matches=(None, True),
        adaptive=Adaptive(True, True, True, True),
        citation="Huang, Dai, Huang 2022",
        row=10,
        title="AdaTINF",
        notes=("The AdaR-UCB paper leaves out sqrt(K T), which Theorem 6.1 of Huang et al. has.",),
    )

    def validate(self) -> None:
        """A number of pulls."""
        check_horizon("AdaTINF", self.horizon)

    def params(self) -> Params:
        """It never starts anew."""
        return Params(restarts=0)

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known; the horizon is the policy's own."""
        assert self.horizon is not None
        return beginning(arms, self.horizon)

    def counters(self, state: State) -> dict[str, int]:
        """Rewards that were skipped, and J, the logarithm of the scale to base 2."""
        return {"skipped": int(state.clock[SKIPPED]), "doublings": round(math.log2(state.ledger[LEVEL]))}

    @staticmethod
    def select(p: Params, s: State) -> int:
        """An arm drawn from the weights."""
        see(p, s)
        return drawn(s)

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """The probability of the choice. The first pull of a new start forgets what was before."""
        see(p, s)
        if over(p, s):
            restart(s)
        return decide(s, arm)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """Learn from the reward unless it is too large, and enter its cost."""
        s.clock[HEARD] += 1
        s.clock[FRESH] = 0
        rate = s.ledger[LEVEL] * math.sqrt(float(s.clock[MADE]))  # 1/eta
        root = math.sqrt(mark)
        if abs(reward) <= THETA * rate * root:
            s.losses[arm] -= reward / mark
            cost = 2.0 * reward * reward / (rate * root)
        else:
            s.clock[SKIPPED] += 1
            cost = -reward
        s.ledger[SPENT] += cost
        budget = math.sqrt(s.losses.shape[0] * s.ledger[END])
        if s.ledger[LEVEL] * budget < s.ledger[SPENT]:
            s.ledger[LEVEL] = max(2.0 * s.ledger[LEVEL], 2.0 ** (math.ceil(math.log2(cost / budget)) + 1.0))
            s.ledger[SPENT] = cost

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """The mean that the losses stand for (skipped rewards count as 0), and the probability of the next choice."""
        see(p, s)
        believe(s, arm, out)


def beginning(arms: int, horizon: int) -> State:
    """Nothing is known, and rewards are believed to have scale 1."""
    return State(*new_state(arms, Q), np.array([1.0, 0.0, horizon + 1.0]))


def over(p: Params, s: State) -> bool:
    """Whether the next pull is the first of a new start."""
    return p.restarts != 0 and s.clock[MADE] + 1.0 >= s.ledger[END]


@out_of_line
def restart(s: State) -> None:
    """Forget everything, for twice as many pulls."""
    for arm in range(s.losses.shape[0]):
        s.losses[arm] = 0.0
    s.ledger[LEVEL] = 1.0
    s.ledger[SPENT] = 0.0
    s.ledger[END] *= 2.0
    s.clock[MADE] = 0
    s.clock[HEARD] = 0


def see(p: Params, s: State) -> None:
    """The weights of the pull that is about to be made: all equal if it is the first of a new start.

    Only the pull itself starts anew: until then rewards still belong to the old start, however often weights are looked at.
    """
    if s.clock[FRESH] == 1:
        return
    if over(p, s):
        level(s)
    else:
        look(solve_square, s, 1.0 / (s.ledger[LEVEL] * math.sqrt(s.clock[MADE] + 1.0)), Q)

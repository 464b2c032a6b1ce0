"""AdaTINF (Huang, Dai, Huang 2022)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.policies._parts.records import params_of
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive
from robandit.policies.tinf.ftrl import (
    HEARD,
    MADE,
    SKIPPED,
    Leader,
    equalise,
    hear,
    huang_facts,
    make_decision,
    new_state,
    set_weights,
    solve_square,
)

THETA = 1.0 - 2.0 ** (-1.0 / 3.0)
Q = 2.0  # weights are (1 + m + eta L)^-2

# Fields of ``ledger``: the assumed scale 2^J of the rewards, the costs S since J changed, and the planned pulls plus 1.
LEVEL, SPENT, END = 0, 1, 2


def restart_due(p: Any, s: Any) -> bool:
    """Return whether the next pull is the first after a restart."""
    return p.restarts != 0 and s.clock[MADE] + 1.0 >= s.ledger[END]


@out_of_line
def restart(s: Any) -> None:
    """Forget everything, and plan twice as many pulls."""
    for arm in range(s.losses.shape[0]):
        s.losses[arm] = 0.0
    s.ledger[LEVEL] = 1.0
    s.ledger[SPENT] = 0.0
    s.ledger[END] *= 2.0
    s.clock[MADE] = 0
    s.clock[HEARD] = 0


class Doubling(Leader):
    """The hooks of `AdaTINF` and `Ada2TINF`. The latter has no horizon: it plans one pull, then restarts."""

    def params(self) -> Any:
        return params_of(restarts=int(not hasattr(self, "horizon")))

    def init(self, arms: int, horizon: int | None) -> Any:
        """Return a state without losses, for rewards of scale 1. The horizon is the policy's parameter, not the argument."""
        return new_state(arms, Q, ledger=np.array([1.0, 0.0, getattr(self, "horizon", 1) + 1.0]))

    def counters(self, state: Any) -> dict[str, int]:
        """Return the number of skipped rewards, and J, the log of the scale to base 2."""
        return super().counters(state) | {"doublings": round(math.log2(state.ledger[LEVEL]))}

    @staticmethod
    def refresh(p: Any, s: Any) -> None:
        """Compute the weights of the next pull. They are equal if a restart is due, which only `decide` performs."""
        if restart_due(p, s):
            equalise(s)
        else:
            set_weights(solve_square, s, 1.0 / (s.ledger[LEVEL] * math.sqrt(s.clock[MADE] + 1.0)), Q)

    @staticmethod
    def decide(p: Any, s: Any, arm: int) -> float:
        if restart_due(p, s):
            restart(s)
        return make_decision(p, s, arm)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
        hear(s)
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


class AdaTINF(Doubling, Policy):
    """HTINF with eps = 1 that finds the scale of the rewards by doubling, and needs to know only the horizon.

    Choices are random and rewards beyond a threshold are skipped, as in `HTINF`. The scale of the rewards starts at 1. It is at
    least doubled when the possible costs of skipped and learned rewards exceed a budget that is proportional to the scale; as
    printed, the cost of a skipped reward is its loss with its sign. Use it when you know the number of pulls and nothing about the
    moments; `Ada2TINF` does not even need the number of pulls. A late reward uses the eta and the threshold of its time of arrival.

    Parameters
    ----------
    horizon
        Number of pulls. None: not known yet; `simulate` fills it in.

    Guarantee
    ---------
    Under truncated non-positivity (see `HTINF`), for every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret is at worst
    ``K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)``, also against adversaries (Theorem 6.1). Needs the horizon in advance.
    Randomised.

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

    use_when = "you know only the horizon; rewards may be adversarial"
    about = huang_facts(
        knows=("horizon",),
        anytime=False,
        bound="Theorem 6.1 of Huang et al.",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)",
        matches=(None, True),
        adaptive=Adaptive(True, True, True, True),
        row=10,
        notes=("The AdaR-UCB paper omits the term sqrt(K T) of Theorem 6.1 of Huang et al.",),
    )

"""Robust MOSS (Wei, Srivastava 2021), exact, in O(log) amortised time per pull.

The index is computed when a reward arrives. The saturation level grows from epoch to epoch, so a reward below it is added to a
running sum. Larger rewards wait in a heap and are counted with their signs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.heap import pop_smallest, push, smallest
from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.records import index_state, params_of
from robandit.policies._parts.reward_store import USED, KeepsRewards, empty_store
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import FLAT, IndexPolicy
from robandit.validation import invalid, positive, within

# Numbers of an arm: rewards, the sum of the rewards with |X| <= LEVEL, the number of larger positive minus larger negative rewards,
# the saturation level, the number of rewards (a power of a) at which the level next changes, and the index.
COUNT, SUM, BALANCE, LEVEL, EPOCH, INDEX = 0, 1, 2, 3, 4, 5


class RobustMOSS(KeepsRewards, IndexPolicy):
    """UCB policy on a saturated mean, with a bonus that shrinks as an arm's pulls approach T/K.

    Use it when you know eps, u and the horizon, which affect every decision: its worst case has no logarithm. Rewards beyond a
    level B are clipped to B (not dropped), and B grows with the number of rewards.

    Parameters
    ----------
    eps, u
        The order and bound of the raw moments: E|X|^(1+eps) <= u for every arm, with eps in (0, 1].
    horizon
        The number of pulls. `simulate` fills it in.
    a
        Ratio of the epochs on which the saturation level is constant, at least 1.000001.
    eta
        The bonus has the factor 1 + eta. The proof requires eta psi(2 eta/a) >= 2a with psi(x) = (1 + 1/x) log(1 + x) - 1.

    Guarantee
    ---------
    Regret is at most of the order ``K^(eps/(1+eps)) (u T)^(1/(1+eps))`` in the worst case, and ``sum_i log(T gap_i^((1+eps)/eps) /
    K) / gap_i^(1/eps)`` on an instance (with u = 1). Requires eps and u. Needs the horizon in advance. Deterministic. The rule is
    reconstructed: it was not checked against the paper's text. The factor u^(1/(1+eps)) follows from the units.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=2.5)
    >>> policy = rb.RobustMOSS().informed_by(problem)
    >>> result = rb.simulate(policy, problem, horizon=2000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.5 * 1000)  # uniform play: 1000
    True

    References
    ----------
    L. Wei, V. Srivastava. Minimax policy for heavy-tailed bandits. IEEE Control Systems Letters 5, 2021.
    """

    eps: float | None = None
    u: float | None = None
    horizon: int | None = None
    a: float = 1.1
    eta: float = 2.2

    use_when = "you know eps, u and the horizon"
    label = "Robust MOSS"
    columns = ("mean", "index", "threshold", "share_saturated")
    about = Facts(
        knows=("eps", "u", "horizon"),
        anytime=False,
        bound="Wei and Srivastava",
        instance="sum log(T gap^((1+eps)/eps) / K) / gap^(1/eps)",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps))",
        matches=(True, True),
        adaptive=Adaptive(False, False, False, False),
        citation="Wei, Srivastava 2021",
        source="reconstructed",
        row=4,
    )

    def validate(self) -> None:
        owner = "RobustMOSS"
        check_known(self)
        within(self.a, "a", 1.000001, math.inf, owner=owner)
        positive(self.eta, "eta", owner=owner)
        x = 2.0 * self.eta / self.a
        psi = math.log1p(x) + (math.log1p(x) / x if x > 0.0 else 1.0) - 1.0
        if not self.eta * psi >= 2.0 * self.a:
            rule = f"such that eta psi(2 eta/a), here {self.eta * psi:g}, is at least 2a = {2.0 * self.a:g}"
            raise invalid("eta", self.eta, rule, owner=owner, hint="take a larger eta or a smaller a")

    def params(self: Any) -> Any:
        order = 1.0 + self.eps
        scale = float(self.u ** (1.0 / order))
        return params_of(
            scale=scale,
            mean_power=-1.0 / order,
            width_power=self.eps / order,
            width=(1.0 + self.eta) * scale,
            a=float(self.a),
            horizon=float(self.horizon),
        )

    def init(self, arms: int, horizon: int | None) -> Any:
        pool, slots = empty_store(arms, 1)
        return index_state(arms, arms=np.zeros((arms, 6)), pool=pool, slots=slots)

    def extended(self, state: Any) -> Any:
        """Return the state with one more arm, and saturation levels (which rise) and indices for the new number of arms."""
        longer, p = super().extended(state), self.params()
        for arm in range(len(state.allowed)):
            if longer.arms[arm, COUNT] > 0.0:
                begin_epoch(p, longer, arm)
                set_index(p, longer, arm)
        return longer

    outlook = FLAT

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        row = s.arms[arm]
        row[COUNT] += 1.0
        n = row[COUNT]
        if n >= row[EPOCH]:
            begin_epoch(p, s, arm)
        if abs(reward) <= row[LEVEL]:
            row[SUM] += reward
        else:
            row[BALANCE] += 1.0 if reward > 0.0 else -1.0
            push(s.pool, s.slots, arm, reward)
        set_index(p, s, arm)

    @staticmethod
    def level(p: Any, s: Any) -> float:
        return 0.0

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return saturated_mean(s.arms[arm])

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        return s.arms[arm, INDEX]

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        row = s.arms[arm]
        out[0] = out[2] = out[3] = math.nan
        out[1] = math.inf
        if row[COUNT] > 0.0:
            out[0] = saturated_mean(row)
            out[1] = row[INDEX]
            out[2] = row[LEVEL]
            out[3] = s.slots[arm, USED] / row[COUNT]


def set_index(p: Any, s: Any, arm: int) -> None:
    """Compute the index of an arm."""
    row = s.arms[arm]
    row[INDEX] = saturated_mean(row) + p.width * phi(p, s, row[COUNT]) ** p.width_power


def phi(p: Any, s: Any, n: float) -> float:
    """Return phi(n) = max(log(T / (K n)), 1) / n."""
    return max(math.log(p.horizon / (s.arms.shape[0] * n)), 1.0) / n


@out_of_line
def begin_epoch(p: Any, s: Any, arm: int) -> None:
    """Begin an epoch, which ends at the smallest power h of ``a`` above n. Its saturation level depends on h."""
    row = s.arms[arm]
    n = row[COUNT]
    k = math.floor(math.log(n) / math.log(p.a)) + 1.0
    while 0.0 < p.a**k <= n < math.inf:  # the quotient of logarithms may be off by one at an exact power
        k += 1.0
    while p.a ** (k - 1.0) > n:
        k -= 1.0
    row[EPOCH] = p.a**k
    row[LEVEL] = p.scale * phi(p, s, row[EPOCH]) ** p.mean_power
    while s.slots[arm, USED] > 0 and smallest(s.pool, s.slots, arm) <= row[LEVEL]:
        value = pop_smallest(s.pool, s.slots, arm)
        row[SUM] += value
        row[BALANCE] -= 1.0 if value > 0.0 else -1.0


def saturated_mean(row: Floats) -> float:
    """Return the mean of the saturated rewards. An infinite level saturates no reward."""
    total = row[SUM]
    if row[BALANCE] != 0.0:
        total += row[BALANCE] * row[LEVEL]
    return total / row[COUNT]

"""Robust MOSS (Wei, Srivastava 2021), exact, in O(log) amortised time per pull.

The index of an arm depends on its own rewards alone, not on time, so it is computed when a reward arrives and the arg-max compares
numbers that are at hand. The saturation level is constant on epochs and grows from one to the next. So a reward below
it is never saturated again and goes into a running sum; the others are set aside in a heap, counted with their signs, and come
back when the level passes them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.heap import pop_smallest, push, smallest
from robandit.policies._parts.reward_store import USED, empty_store, enlarged, store_full
from robandit.policies.base import Policy, check_eps, check_horizon, check_number
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TRIED, expire_pull, no_pulls, pulls_made, take_pull, untried

__all__ = ["RobustMOSS"]

# Numbers of an arm.
COUNT = 0  # rewards
SUM = 1  # of rewards up to LEVEL in size
BALANCE = 2  # positive rewards above LEVEL minus negative ones
LEVEL = 3  # saturation level
EPOCH = 4  # first number of rewards (a power of a) at which LEVEL changes
INDEX = 5
ARM_FLOATS = 6


class Params(NamedTuple):
    """The parameters as numbers; ``scale`` is u^(1/(1+eps))."""

    scale: float
    mean_power: float  # -1/(1+eps)
    width_power: float  # eps/(1+eps)
    width: float  # (1+eta) scale
    a: float
    horizon: float


class State(NamedTuple):
    """See the names above; the heap of saturated rewards; pulls made; and the lazy arg-max."""

    arms: Floats  # (arms, ARM_FLOATS)
    pool: Floats
    slots: Ints
    pulls: Ints
    lines: Floats
    lead: Ints


class RobustMOSS(Policy):
    """Optimism on a saturated mean, with a bonus that shrinks as an arm nears its share of the horizon.

    The policy for a known moment and a known horizon: its worst case has no logarithm. Rewards beyond a level B are moved to B (not
    dropped), and B grows with the number of rewards. Not for an unknown eps or u, which enter its every step, nor
    without an idea of the horizon.

    Parameters
    ----------
    eps, u
        The order and bound of the raw moments: E|X|^(1+eps) <= u for every arm, with eps in (0, 1].
    horizon
        The number of pulls. `simulate` fills it in.
    a
        Ratio of the epochs on which the saturation level is constant, at least 1.000001.
    eta
        The bonus has the factor 1 + eta. The proof asks for eta psi(2 eta/a) >= 2a with psi(x) = (1 + 1/x) log(1 + x) - 1.

    Guarantee
    ---------
    Regret at most of the order ``K^(eps/(1+eps)) (u T)^(1/(1+eps))`` in the worst case, and the sum over arms of
    ``log(T gap^((1+eps)/eps) / K) / gap^(1/eps)`` on an instance (with u = 1). Must know: eps, u and the horizon. Not anytime,
    not random. The algorithm is written down from memory, not checked against the paper's text (confidence 0.80); its
    factor u^(1/(1+eps)) is the one that units ask for.

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
        row=4,
        title="Robust MOSS",
        notes=("Written down from memory, not checked against the paper's text.",),
    )

    def validate(self) -> None:
        """Moments and horizon in their domains, and constants for which the bound is proved."""
        check_eps("RobustMOSS", self.eps)
        if self.u is not None:
            check_number("RobustMOSS", "u", self.u, above=0.0)
        check_horizon("RobustMOSS", self.horizon)
        check_number("RobustMOSS", "a", self.a, least=1.000001)
        check_number("RobustMOSS", "eta", self.eta, above=0.0)
        x = 2.0 * self.eta / self.a
        psi = math.log1p(x) + (math.log1p(x) / x if x > 0.0 else 1.0) - 1.0
        if not self.eta * psi >= 2.0 * self.a:
            raise InvalidInput(
                f"RobustMOSS: a = {self.a!r} and eta = {self.eta!r} have eta psi(2 eta/a) = {self.eta * psi:g}, which must be at "
                f"least 2a = {2.0 * self.a:g}: take a larger eta or a smaller a"
            )

    def params(self) -> Params:
        """Powers and factors."""
        assert self.eps is not None
        assert self.u is not None
        assert self.horizon is not None
        scale = self.u ** (1.0 / (1.0 + self.eps))
        return Params(
            scale=float(scale),
            mean_power=-1.0 / (1.0 + self.eps),
            width_power=self.eps / (1.0 + self.eps),
            width=float((1.0 + self.eta) * scale),
            a=float(self.a),
            horizon=float(self.horizon),
        )

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        return State(np.zeros((arms, ARM_FLOATS)), *empty_store(arms, 1), no_pulls(arms), *lazy_state(arms))

    def grow(self, state: State) -> State:
        """More room for saturated rewards."""
        pool, slots = enlarged(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, 0.0)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Saturate the reward, or add it to the sum, and renew the index."""
        row = s.arms[arm]
        row[COUNT] += 1.0
        n = row[COUNT]
        if n >= row[EPOCH]:
            next_epoch(p, s, arm)
        if abs(reward) <= row[LEVEL]:
            row[SUM] += reward
        else:
            row[BALANCE] += 1.0 if reward > 0.0 else -1.0
            push(s.pool, s.slots, arm, reward)
        row[INDEX] = mean(row) + p.width * crowding(p, s, n) ** p.width_power
        if n == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    full = staticmethod(store_full)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Saturated mean, index, saturation level and the share of rewards beyond it."""
        row = s.arms[arm]
        if row[COUNT] == 0.0:
            out[0] = out[2] = out[3] = math.nan
            out[1] = math.inf
        else:
            out[0] = mean(row)
            out[1] = row[INDEX]
            out[2] = row[LEVEL]
            out[3] = s.slots[arm, USED] / row[COUNT]


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def crowding(p: Params, s: State, n: float) -> float:
    """phi(n) = max(log(T / (K n)), 1) / n."""
    return max(math.log(p.horizon / (s.arms.shape[0] * n)), 1.0) / n


@out_of_line
def next_epoch(p: Params, s: State, arm: int) -> None:
    """The smallest power of a above n begins the next epoch, and is the h that sets the level of this one."""
    row = s.arms[arm]
    n = row[COUNT]
    k = math.floor(math.log(n) / math.log(p.a)) + 1.0
    while p.a**k <= n:  # the quotient of logarithms may be off at an exact power
        k += 1.0
    while p.a ** (k - 1.0) > n:
        k -= 1.0
    row[EPOCH] = p.a**k
    row[LEVEL] = p.scale * crowding(p, s, row[EPOCH]) ** p.mean_power
    while s.slots[arm, USED] > 0 and smallest(s.pool, s.slots, arm) <= row[LEVEL]:
        value = pop_smallest(s.pool, s.slots, arm)
        row[SUM] += value
        row[BALANCE] -= 1.0 if value > 0.0 else -1.0


def mean(row: Floats) -> float:
    """Of the saturated rewards. (The level may be infinite: then nothing is saturated.)"""
    total = row[SUM]
    if row[BALANCE] != 0.0:
        total += row[BALANCE] * row[LEVEL]
    return total / row[COUNT]


def index(p: Params, s: State, arm: int, level: float) -> float:
    """As the last reward left it."""
    return s.arms[arm, INDEX]


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """It stays until the next reward."""
    return s.arms[arm, INDEX], 0.0, math.inf

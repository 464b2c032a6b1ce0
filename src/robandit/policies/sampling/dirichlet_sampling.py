"""Dirichlet sampling (Baudry, Saux, Maillard 2021): duels with random weights, most of them without drawing the weights.

A challenger with rewards x_1, ..., x_n and bonus point b wins its duel with a leader of mean mu if sum w_i x_i + w_{n+1} b >= mu,
where w is uniform on the simplex. As w_i = e_i / sum e_j for exponential e_i, it wins if A = sum e_i z_i >= 0, where z_i = x_i - mu
and z_{n+1} = b - mu. For each t >= 0 with t max z < 1, let e'_i = e_i / (1 - t z_i), A' = sum e'_i z_i, and C = prod 1 / (1 - t
z_i). Changing the measure from e to e' gives

    P(A >= 0) = C E[exp(-t A') 1{A' >= 0}] = P(U <= C exp(-t A'), A' >= 0),  U uniform on (0, 1].

So a duel draws U first. It is lost if U > C, without any e_i; the t that minimises C decides most lost duels. C takes O(n) time,
and mu changes with every pull of the leader. So a duel stores a cap for the next ones: C at its t, for z_i = x_i - low and the
largest bonus for mu <= high. It bounds the smallest C for all mu in [low, high], until the challenger has a new reward.

Random numbers depend only on the run's ``rng`` words, which never change, the round and the arm. So a choice depends on the rewards
and the rounds, and not on how often ``select`` was called before.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Literal, Self

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import GOLDEN, exponential, mixed
from robandit.kernel.types import Floats
from robandit.policies._parts.blocks import HIGH, LOW, two_sum
from robandit.policies._parts.counting import unknown_chance
from robandit.policies._parts.records import params_of, state_of
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store
from robandit.policies.assumptions import BOUNDED_ABOVE, LIGHT_TAILS
from robandit.policies.base import Policy
from robandit.policies.facts import Facts
from robandit.policies.index import count_tried, no_pulls
from robandit.policies.sampling.imed import ends_of
from robandit.policies.sampling.rounds import (
    LEADER,
    PROPOSED,
    ROUND,
    WINS,
    Rounds,
    excess_of_mean,
    no_rounds,
    select_in_round,
    settle,
)
from robandit.validation import choice, finite, invalid

# Columns of ``caps``, one row per arm: the means of the leader from LEAST to MOST for which CAP bounds the probability of a win.
LEAST, MOST, CAP = 0, 1, 2
# Of the gap between the means: MOST - mu and mu - LEAST. Half of it costs more caps, twice of it more draws.
REACH = 1.0 / 32.0
WORTH = -0.7  # a cap is stored if log C is smaller; larger ones decide too few duels
SLACK = 1e-6  # added to the logarithm of a cap; far above the rounding of C and of its minimum
CLOSE = 1e-10  # relative step at which the search for t ends; the error of log C is of the order of its square
MOST_STEPS = 100
BY_ARM = np.uint64(0xD1342543DE82EF95)  # an odd step of counters, like GOLDEN

_baudry = {"random": True, "citation": "Baudry, Saux, Maillard 2021"}
_FACTS = {
    "robust": Facts(
        **_baudry,  # type: ignore[arg-type]
        assumption=LIGHT_TAILS,
        bound="that of Baudry, Saux and Maillard for RDS",
        instance="log T log log T",
        source="reconstructed",
        title="Dirichlet sampling, robust",
        notes=("The constant depends on the laws of the arms. The bound does not cover heavy tails.",),
    ),
    "bounded": Facts(
        **_baudry,  # type: ignore[arg-type]
        knows=("upper",),
        assumption=BOUNDED_ABOVE,
        bound="that of Baudry, Saux and Maillard for BDS",
        instance="sum gap/KLinf(arm, best mean) log T",
        source="a secondary source",
        title="Dirichlet sampling, bounded",
        notes=("KLinf is over the laws of rewards of at most `upper`.",),
    ),
}


class DirichletSampling(Rounds, KeepsRewards, Policy):
    """Thompson sampling without a prior or a scale: duels between randomly weighted rewards and the leader's mean.

    The leader is the arm with the most rewards; mu is its mean. Each other arm with fewer rewards, x_1 to x_n, is pulled if its
    mean is at least mu, or if a random average of its rewards and one bonus point b is at least mu. The weights are uniform on the
    simplex (Dirichlet with parameters 1). If no challenger is pulled, the leader is. Use it for light tails of unknown scale, or
    for bounded rewards with a known upper bound. With the robust bonus, scaling or shifting all rewards changes no decision. Do not
    use it for heavy tails: mu is a sample mean. All rewards are stored, and runs with many arms as good as the best are slow.

    Several arms may be pulled in one round, in the order of the arms. Among arms with equally many rewards, the one with the larger
    mean leads, then the leader before. A late reward counts when it arrives. `Decision.propensity` is NaN.

    Parameters
    ----------
    bonus
        ``"robust"`` (RDS): ``b = mu + rho (1/n) sum (mu - x_i)^+`` with ``rho = sqrt(log(1 + n))``. ``"bounded"`` (BDS): b is the
        upper bound of the rewards.
    upper
        Upper bound of the rewards, for ``"bounded"``. A higher reward becomes the bound; the counter ``above_upper`` counts them.

    Guarantee
    ---------
    ``"bounded"``: regret is asymptotically ``sum gap/KLinf log T``, the best possible for rewards of at most ``upper``.
    ``"robust"``: regret grows slightly faster than log T, as log T log log T, for light tails. Nothing is proved for heavy tails.
    Requires nothing, or the upper bound. Anytime and randomised. Of the paper only the abstract was available, which confirms the
    logarithmic and the slightly worse rates. The duels were checked against a public implementation of BDS for Bernoulli rewards
    (github.com/DataWraith/banditbench): leader, equal counts, b = upper. The robust bonus, its rho and log log T are reconstructed.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.gaussian(means=[0.0, 1.0], sd=1.0)
    >>> result = rb.simulate(rb.DirichletSampling(), problem, horizon=2000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.03 * 1000)  # uniform play: 1000
    True
    >>> rb.DirichletSampling(bonus="bounded").informed_by(rb.problems.bernoulli(means=[0.2, 0.8])).upper
    1.0

    References
    ----------
    D. Baudry, P. Saux, O.-A. Maillard. From optimality to robustness: Dirichlet sampling strategies in stochastic bandits. NeurIPS
    2021.
    """

    bonus: Literal["robust", "bounded"] = "robust"
    upper: float | None = None

    use_when = "tails are light, and choices may be random"
    label = "Dirichlet sampling"
    chance: ClassVar[Any] = staticmethod(unknown_chance)  # a win has no simple formula, and earlier draws matter

    @property
    def facts(self) -> Facts:
        return dataclasses.replace(_FACTS[self.bonus], late="at random")

    @classmethod
    def variants(cls) -> tuple[Policy, ...]:
        return cls(), cls(bonus="bounded")

    def validate(self) -> None:
        choice(self.bonus, "bonus", _FACTS, owner="DirichletSampling")
        if self.upper is not None:
            finite(self.upper, "upper", owner="DirichletSampling")
            if self.bonus != "bounded":
                hint = "it is for bonus='bounded'"
                raise invalid("upper", self.upper, f"None for {self.bonus!r}", owner="DirichletSampling", hint=hint)

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        if self.bonus == "bounded" and self.upper is None and hasattr(problem, "reward_laws"):
            return dataclasses.replace(self, upper=ends_of(problem, "DirichletSampling", low=False)[1])
        return super().informed_by(problem, eps=eps)

    def params(self) -> Any:
        return params_of(robust=int(self.bonus == "robust"), upper=0.0 if self.upper is None else float(self.upper))

    def init(self, arms: int, horizon: int | None) -> Any:
        pool, slots = empty_store(arms, 1)
        caps = np.zeros((arms, 3))
        caps[:, LEAST] = math.inf
        clock, duels = no_rounds(arms)
        return state_of(
            pool=pool,  # (1, rewards)
            slots=slots,
            pulls=no_pulls(arms),
            sums=np.zeros((arms, 2)),
            bound=np.array([self.params().upper]),  # or the largest reward above it
            caps=caps,
            clock=clock,
            duels=duels,
            run=np.zeros(1, dtype=np.int64),  # rewards above ``upper``
            words=np.zeros(4, dtype=np.uint64),  # scratch: the stream of one duel
            rng=np.zeros(4, dtype=np.uint64),
        )

    def counters(self, state: Any) -> dict[str, int]:
        return {"above_upper": int(state.run[0])} if self.bonus == "bounded" else {}

    @staticmethod
    def select(p: Any, s: Any) -> int:
        return select_in_round(propose, p, s)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        """Store the reward. If it raises the bound, no cap holds any more."""
        if p.robust == 0 and reward > p.upper:
            s.run[0] += 1
            if reward > s.bound[0]:
                s.bound[0] = reward
                for other in range(s.caps.shape[0]):
                    s.caps[other, LEAST] = math.inf
        s.pool[0, append(s.slots, arm)] = reward
        total, lost = two_sum(s.sums[arm, HIGH], reward)
        s.sums[arm, HIGH] = total
        s.sums[arm, LOW] += lost
        s.caps[arm, LEAST] = math.inf
        s.clock[PROPOSED] = 0
        if s.slots[arm, USED] == 1:
            count_tried(s)

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = mean(s, arm) if s.slots[arm, USED] > 0 else math.nan
        out[1] = s.slots[arm, USED]


def mean(s: Any, arm: int) -> float:
    """Return the mean of the arm's rewards."""
    return (s.sums[arm, HIGH] + s.sums[arm, LOW]) / s.slots[arm, USED]


def above(s: Any, arm: int, other: int) -> float:
    """Return a number with the sign of the arm's mean minus the other's."""
    n, m = s.slots[arm, USED], s.slots[other, USED]
    return excess_of_mean(s.sums[arm, HIGH], s.sums[arm, LOW], n, s.sums[other, HIGH], s.sums[other, LOW], m)


@out_of_line
def propose(p: Any, s: Any) -> None:
    """Find the leader and the challengers that win, among the allowed arms."""
    leader = -1
    for arm in range(s.allowed.shape[0]):
        s.duels[WINS, arm] = 0
        if s.allowed[arm] and (leader < 0 or leads(s, arm, leader)):
            leader = arm
    mu = mean(s, leader)
    winners = 0
    for arm in range(s.allowed.shape[0]):
        if s.allowed[arm] and s.slots[arm, USED] < s.slots[leader, USED] and wins(p, s, arm, leader, mu):
            s.duels[WINS, arm] = 1
            winners += 1
    settle(s, leader, winners)


def leads(s: Any, arm: int, other: int) -> bool:
    """Return whether the arm leads before the other, a lower one: by rewards, then by their mean, then if it led before."""
    n, m = s.slots[arm, USED], s.slots[other, USED]
    if n != m:
        return n > m
    more = above(s, arm, other)
    return more > 0.0 or (more == 0.0 and s.clock[LEADER] == arm)


def wins(p: Any, s: Any, arm: int, leader: int, mu: float) -> bool:
    """Return whether the challenger wins its duel. Most duels are decided by one random number and the cap."""
    word = first_word(s, arm)
    u = (float(word >> np.uint64(11)) + 1.0) * 2.0**-53
    if s.caps[arm, LEAST] <= mu <= s.caps[arm, MOST] and u > s.caps[arm, CAP]:
        return False
    return contest(p, s, arm, leader, mu, word, u)


def first_word(s: Any, arm: int) -> np.uint64:
    """Return 64 random bits that depend on the run, the round and the arm."""
    counter = s.rng[0] + np.uint64(s.clock[ROUND]) * GOLDEN + np.uint64(arm) * BY_ARM
    return mixed(mixed(counter) ^ s.rng[1])


@out_of_line
def contest(p: Any, s: Any, arm: int, leader: int, mu: float, word: np.uint64, u: float) -> bool:
    """Decide a duel by U and, if need be, by weights. If the cap does not hold for mu and a new one would be small, store it."""
    if above(s, arm, leader) >= 0.0:
        return True
    extra = bonus(p, s, arm, mu, mu)
    t = tilt(s, arm, mu, extra)
    if t == math.inf:
        return False
    level = log_bound(s, arm, mu, extra, t)
    if level < WORTH and not s.caps[arm, LEAST] <= mu <= s.caps[arm, MOST]:
        reach = REACH * max(mu - mean(s, arm), 0.0)  # rounding may make it negative
        s.caps[arm, LEAST] = mu - reach
        s.caps[arm, MOST] = mu + reach
        s.caps[arm, CAP] = cap(p, s, arm, mu - reach, mu + reach, t)
    return math.log(u) <= level and drawn(s, arm, mu, extra, t, level, word, u)


def cap(p: Any, s: Any, arm: int, low: float, high: float, t: float) -> float:
    """Return a bound on C for every mean of the leader from low to high, at any t that is best for one of them."""
    return math.exp(min(0.0, log_bound(s, arm, low, bonus(p, s, arm, low, high), t) + SLACK))


def drawn(s: Any, arm: int, mu: float, extra: float, t: float, level: float, word: np.uint64, u: float) -> bool:
    """Decide a duel by U and weights with tilted exponential variables."""
    for i in range(4):
        s.words[i] = mixed((word ^ s.rng[2]) + np.uint64(i + 1) * GOLDEN)
    start = s.slots[arm, START]
    total = exponential(s.words) * extra / (1.0 - t * extra)
    for j in range(start, start + s.slots[arm, USED]):
        z = s.pool[0, j] - mu
        total += exponential(s.words) * z / (1.0 - t * z)
    return total >= 0.0 and math.log(u) <= level - t * total


def bonus(p: Any, s: Any, arm: int, low: float, high: float) -> float:
    """Return the largest b - mu for a mean mu of the leader from low to high."""
    if p.robust == 0:
        return s.bound[0] - low
    start, n = s.slots[arm, START], s.slots[arm, USED]
    below = 0.0
    for j in range(start, start + n):
        below += max(high - s.pool[0, j], 0.0)
    return math.sqrt(math.log(1.0 + n)) * below / n


def log_bound(s: Any, arm: int, mu: float, extra: float, t: float) -> float:
    """Return log C for z_i = x_i - mu and the last z, or infinity if t is too large for them."""
    start = s.slots[arm, START]
    factor = 1.0 - t * extra
    if factor <= 0.0:
        return math.inf
    total = -math.log(factor)
    for j in range(start, start + s.slots[arm, USED]):
        factor = 1.0 - t * (s.pool[0, j] - mu)
        if factor <= 0.0:
            return math.inf
        total -= math.log(factor)
    return total


@out_of_line
def tilt(s: Any, arm: int, mu: float, extra: float) -> float:
    """Return the t >= 0 that minimises C, the root of sum z_i / (1 - t z_i), or infinity if every z is at most 0."""
    start = s.slots[arm, START]
    end = start + s.slots[arm, USED]
    largest = extra
    total = extra
    for j in range(start, end):
        z = s.pool[0, j] - mu
        largest = max(largest, z)
        total += z
    if largest <= 0.0:
        return math.inf
    if total >= 0.0:
        return 0.0
    low = 0.0
    high = 1.0 / largest
    t = 0.0
    for _ in range(MOST_STEPS):
        value = extra / (1.0 - t * extra)
        slope = value * value
        for j in range(start, end):
            z = s.pool[0, j] - mu
            part = z / (1.0 - t * z)
            value += part
            slope += part * part
        if value >= 0.0:
            high = t
        else:
            low = t
        room = 1.0 - t * largest
        steep = slope * room - largest * value
        step = t - value * room / steep if steep > 0.0 else high
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - t) <= CLOSE * step:
            break
        t = step
    return min(t, high)

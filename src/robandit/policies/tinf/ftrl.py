"""Follow the regularised leader: the shared code of HTINF, OptTINF, AdaTINF, Ada2TINF and uniINF.

With losses L and Tsallis entropy, the weights minimise ``eta <L, x> - alpha sum x_i^(1/alpha)`` over the simplex, alpha in (1, 2]:

    x_i = (1 + m + eta (L_i - min L))^(-q),  q = alpha / (alpha - 1),

with the unique m >= 0 for which they sum to 1, at most K^(1/q) - 1. With uniINF's log-barrier the weights instead minimise ``eta
<L, x> - sum log x_i``, and q = 1. Powers of 1 + m use log1p, so no digits are lost when alpha is near 1 and m is of order 1/q.

The root is found by Newton's method on the generalised mean ``(sum x_i)^(-1/q)``, which is concave in m; near the root a step also
uses the second derivative. After a short step the weights are updated by their Taylor series, which costs less than a power. A
search starts at the root of the last decision, not at the last computed root, because reading the weights must not change later
results.

The state of each policy begins with the fields of `new_state`. The policies turn rewards into losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import uniform
from robandit.kernel.types import Bools, Floats
from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.records import state_of
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.classic.uniform import allowed_arms
from robandit.policies.facts import Facts

Weight = Callable[[float, float], float]
huang_facts = partial(Facts, random=True, assumption=NONPOSITIVE, citation="Huang, Dai, Huang 2022", source="the paper")

# Fields of ``root``: m and the smallest loss, now and at the last decision, and the largest possible m.
ROOT, LOW, START, START_LOW, TOP = 0, 1, 2, 3, 4

# Fields of ``clock``: pulls, rewards, skipped rewards, 1 if the weights are up to date, and an arm with the smallest loss.
MADE, HEARD, SKIPPED, FRESH, LEAD = 0, 1, 2, 3, 4

PASSES = 200  # a limit that is never reached
# Thresholds for the relative change of the weights:
NEAR = 0.1  # below it, the second derivative helps
SHORT = 0.01  # below it, a series is faster than a power
CLOSE = 1e-5  # its third power is below rounding


def new_state(arms: int, q: float, **more: Any) -> Any:
    """Return a state without losses: loss estimates, their weights and their root, then the fields in ``more``."""
    root = np.zeros(5)
    root[TOP] = root[START] = largest_root(arms, q)
    clock, rng = np.zeros(5, dtype=np.int64), np.zeros(4, dtype=np.uint64)
    return state_of(losses=np.zeros(arms), weights=np.zeros(arms), root=root, clock=clock, rng=rng, **more)


def largest_root(arms: int, q: float) -> float:
    """Return m for equal losses."""
    return math.expm1(math.log(arms) / q)


def solve(losses: Floats, allowed: Bools, weights: Floats, low: float, eta: float, q: float, start: float) -> float:
    """Fill in the weights and return m. The search begins at ``start``."""
    if q == 2.0:
        return solve_square(losses, allowed, weights, low, eta, q, start)
    return root_from(power, losses, allowed, weights, low, eta, q, start)


def square(z: float, q: float) -> float:
    """Return (1 + z)^-2."""
    inverse = 1.0 / (1.0 + z)
    return inverse * inverse


def reciprocal(z: float, q: float) -> float:
    """Return (1 + z)^-1."""
    return 1.0 / (1.0 + z)


def power(z: float, q: float) -> float:
    """Return (1 + z)^-q."""
    return math.exp(-q * math.log1p(z))


@out_of_line
def root_from(
    weight: Weight, losses: Floats, allowed: Bools, weights: Floats, low: float, eta: float, q: float, start: float
) -> float:
    """Fill in the weights and return m, by the search that the module describes."""
    # ``slope`` and ``bend`` are the first two derivatives of ``total``, without the factors -q and q (q + 1).
    arms = losses.shape[0]
    a = 1.0 / q
    m = start
    moved = math.inf  # q times the last step, and the next one
    move = 0.0
    for _ in range(PASSES):
        near = abs(moved) <= SHORT and q > 2.0
        total = slope = bend = 0.0
        for arm in range(arms):
            if not allowed[arm]:
                weights[arm] = 0.0
                continue
            z = m + eta * (losses[arm] - low)
            inverse = 1.0 / (1.0 + z)
            x = weights[arm] * series(moved * inverse, a) if near else weight(z, q)
            weights[arm] = x
            total += x
            x *= inverse
            slope += x
            bend += x * inverse
        move = (total - 1.0) / slope
        if abs(move) > NEAR:
            move = q * math.expm1(a * math.log(total)) * total / slope
        else:
            move += move * move * 0.5 * (1.0 + a) * bend / slope
        if abs(move) <= CLOSE:
            break
        new = max(m + a * move, 0.0)
        moved = q * (new - m)
        m = new
    total = 0.0
    for arm in range(arms):
        if not allowed[arm]:
            continue
        y = move / (1.0 + m + eta * (losses[arm] - low))
        x = weights[arm] * (1.0 - y * (1.0 - 0.5 * (1.0 + a) * y))
        weights[arm] = x
        total += x
    scale = 1.0 / total
    for arm in range(arms):
        weights[arm] *= scale
    return max(m + a * move, 0.0)


solve_square = partial(root_from, square)  # q = 2
solve_barrier = partial(root_from, reciprocal)  # q = 1


def series(y: float, a: float) -> float:
    """Return (1 - a y)^(1/a) for a in (0, 1/2] and |y| <= SHORT, up to rounding."""
    tail = 1.0 - y * ((1.0 - 4.0 * a) / 5.0) * (1.0 - y * ((1.0 - 5.0 * a) / 6.0))
    tail = 1.0 - y * ((1.0 - 2.0 * a) / 3.0) * (1.0 - y * ((1.0 - 3.0 * a) / 4.0) * tail)
    return 1.0 - y * (1.0 - y * (0.5 - 0.5 * a) * tail)


def set_weights(solver: Callable[..., float], s: Any, eta: float, q: float) -> None:
    """Compute the weights of the allowed arms for their current losses and this eta. The weights of others are 0."""
    low = math.inf
    lead = -1
    for arm in range(s.losses.shape[0]):
        if s.losses[arm] < low and s.allowed[arm]:
            low = s.losses[arm]
            lead = arm
    start = s.root[START] + eta * (low - s.root[START_LOW])
    s.root[ROOT] = solver(s.losses, s.allowed, s.weights, low, eta, q, min(max(start, 0.0), s.root[TOP]))
    s.root[LOW] = low
    s.clock[LEAD] = lead
    s.clock[FRESH] = 1


@out_of_line
def equalise(s: Any) -> None:
    """Set the weights of the allowed arms to those of equal losses."""
    count = allowed_arms(s.allowed)
    lead = -1
    for arm in range(s.weights.shape[0]):
        s.weights[arm] = 1.0 / count if s.allowed[arm] else 0.0
        if s.allowed[arm] and lead < 0:
            lead = arm
    s.root[ROOT] = s.root[TOP]
    s.root[LOW] = 0.0
    s.clock[LEAD] = lead
    s.clock[FRESH] = 1


def make_decision(p: Any, s: Any, arm: int) -> float:
    """Count a pull and return the probability with which the arm was chosen. The weights must be up to date."""
    s.root[START] = s.root[ROOT]
    s.root[START_LOW] = s.root[LOW]
    s.clock[MADE] += 1
    s.clock[FRESH] = 0
    return s.weights[arm]


def hear(s: Any) -> None:
    """Count a reward, which makes the weights stale."""
    s.clock[HEARD] += 1
    s.clock[FRESH] = 0


# Hooks, bound to a policy's ``refresh(p, s)``, which computes the weights of the next pull.


def select_arm(refresh: Any, p: Any, s: Any) -> int:
    """Draw an arm with the weights as probabilities, to within 2^-53. The leader gets the remainder due to rounding."""
    if s.clock[FRESH] == 0:
        refresh(p, s)
    left = uniform(s.rng)
    for arm in range(s.weights.shape[0]):
        left -= s.weights[arm]
        if left <= 0.0:
            return arm
    return s.clock[LEAD]


def weight_of(refresh: Any, p: Any, s: Any, arm: int) -> float:
    """Return the arm's weight, which is the probability that it is chosen next."""
    if s.clock[FRESH] == 0:
        refresh(p, s)
    return s.weights[arm]


def take_decision(decide: Any, refresh: Any, p: Any, s: Any, arm: int) -> float:
    """Count a pull and return the probability with which the arm was chosen."""
    if s.clock[FRESH] == 0:
        refresh(p, s)
    return decide(p, s, arm)


def describe_arm(refresh: Any, p: Any, s: Any, arm: int, out: Floats) -> None:
    """Fill in the mean implied by the losses (NaN without any), where skipped rewards count as 0, and the arm's probability."""
    if s.clock[FRESH] == 0:
        refresh(p, s)
    out[0] = math.nan
    if s.clock[HEARD] > 0 and s.allowed[arm]:
        out[0] = (0.0 - s.losses[arm]) / s.clock[HEARD]
    out[1] = s.weights[arm]


def smallest_other(s: Any, arm: int, alone: float) -> float:
    """Return the smallest loss of the allowed arms other than this one, or ``alone`` if there are none."""
    others = s.allowed.copy()
    others[arm] = False
    return float(s.losses[others].min()) if others.any() else alone


def shift_paused(s: Any, arm: int, amount: float) -> None:
    """Add an amount to the losses of all paused arms other than this one."""
    paused = ~s.allowed
    paused[arm] = False
    s.losses[paused] += amount


class Leader:
    """Base class of the policies. A subclass defines ``refresh`` and `update`, and ``decide`` if `make_decision` is not enough."""

    weighted: ClassVar[bool] = True
    respects_allowed: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("mean", "probability")
    decide: ClassVar[Any] = staticmethod(make_decision)
    select: ClassVar[Any]

    def __init_subclass__(cls: Any) -> None:
        """Bind the subclass's hooks."""
        super().__init_subclass__()
        cls.select = staticmethod(partial(select_arm, cls.refresh))
        cls.chance = staticmethod(partial(weight_of, cls.refresh))
        cls.take = staticmethod(partial(take_decision, cls.decide, cls.refresh))
        cls.estimate = staticmethod(partial(describe_arm, cls.refresh))

    def validate(self) -> None:
        check_known(self)

    # Losses of allowed arms grow while an arm is away, so its own loss would become the smallest. While it is paused, its loss is
    # therefore relative to the smallest loss of the allowed arms (if there are none, that of the last one): it returns as far
    # behind the leader as it left. If a pause or return changes the smallest loss, the losses of other paused arms change with it.

    def paused(self, state: Any, arm: int) -> None:
        """Make the arm's loss relative to the smallest loss of the other allowed arms."""
        own = float(state.losses[arm])
        smallest = smallest_other(state, arm, own)
        shift_paused(state, arm, min(own, smallest) - smallest)
        state.losses[arm] = own - smallest

    def resumed(self, state: Any, arm: int) -> None:
        """Add the smallest loss of the other allowed arms to the arm's relative loss."""
        relative = float(state.losses[arm])
        smallest = smallest_other(state, arm, math.inf)
        if smallest == math.inf:  # no other arm is allowed: this one becomes the leader
            shift_paused(state, arm, -relative)
        else:
            shift_paused(state, arm, -min(relative, 0.0))
            state.losses[arm] += smallest

    def forget_choice(self, state: Any) -> None:
        state.clock[FRESH] = 0

    def counters(self, state: Any) -> dict[str, int]:
        return {"skipped": int(state.clock[SKIPPED])}

"""Follow the regularised leader: what HTINF, OptTINF, AdaTINF, Ada2TINF and uniINF share.

With losses L and Tsallis entropy, the weights minimise ``eta <L, x> - alpha sum x_i^(1/alpha)`` over the simplex, alpha in (1, 2]:

    x_i = (1 + m + eta (L_i - min L))^(-q),  q = alpha / (alpha - 1),

with the one m >= 0 that makes them sum to 1; it is at most K^(1/q) - 1. m itself is the unknown, and weights are powers by log1p,
so that nothing is lost when alpha is near 1, where m is of the size of 1/q. With the log-barrier, uniINF's, they minimise
``eta <L, x> - sum log x_i``, and the same formula has q = 1.

The root: Newton's method on the generalised mean ``(sum x_i)^(-1/q)``, which is concave in m, so that every step ends at or left of
the root and the next ones climb to it; it is straight when one arm has all the weight, so few steps are enough from anywhere. Close
to the root a step takes the second derivative along (three times as many right digits, not twice). After a short step the weights
follow by their Taylor series, which costs less than a power; once the third power of the step is below rounding, that is the last
pass, and they are normalised. A search starts where the last decision's ended, so one power for each arm is usual.

That start is the last *decision's*, not the last look's: looking at weights changes no later digit.

A state that uses this has the fields of `State`. Rewards are turned into losses by the policies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.random import uniform
from robandit.kernel.types import Floats, Ints, UInts
from robandit.policies.base import check_number

__all__ = [
    "State",
    "believe",
    "check_alpha",
    "decide",
    "drawn",
    "level",
    "look",
    "new_state",
    "solve",
    "solve_barrier",
    "solve_square",
    "tsallis_weights",
]

# Fields of ``root``:
HERE = 0  # the m of the weights
LOW = 1  # and the smallest loss
START = 2  # those of the last decision
START_LOW = 3
TOP = 4  # the largest m there can be

# Fields of ``clock``:
MADE = 0  # pulls
HEARD = 1  # rewards
SKIPPED = 2  # rewards that were too large to be learned from
FRESH = 3  # 1: the weights belong to the losses and the time
LEAD = 4  # an arm with the smallest loss

PASSES = 200  # far more than ever needed
NEAR = 0.1  # relative change of the weights below which the second derivative is of use
SHORT = 0.01  # and below which a series gives them faster than a power
CLOSE = 1e-5  # and below which its third power is rounding


class State(NamedTuple):
    """Loss estimates, the weights that belong to them, and where their root was found."""

    losses: Floats
    weights: Floats
    root: Floats
    clock: Ints
    rng: UInts


def new_state(arms: int, q: float) -> State:
    """Nothing is known."""
    root = np.zeros(5)
    root[TOP] = root[START] = largest_root(arms, q)
    return State(np.zeros(arms), np.zeros(arms), root, np.zeros(5, dtype=np.int64), np.zeros(4, dtype=np.uint64))


def largest_root(arms: int, q: float) -> float:
    """The m of equal losses."""
    return math.expm1(math.log(arms) / q)


def tsallis_weights(losses: Any, *, alpha: float, eta: float) -> Floats:
    """The probabilities that minimise ``eta <losses, x> - alpha sum x_i^(1/alpha)``.

    Parameters
    ----------
    losses
        Cumulative losses, one for each of two or more arms.
    alpha
        Order of the moment, in (1, 2]; the entropy's exponent is 1/alpha.
    eta
        Learning rate, > 0.

    Examples
    --------
    >>> tsallis_weights([0.0, 1.0, 3.0], alpha=2.0, eta=1.0)
    array([0.73018669, 0.21231258, 0.05750073])
    """
    check_number("tsallis_weights", "eta", eta, above=0.0)
    check_alpha("tsallis_weights", alpha)
    try:
        given = np.array(losses, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"tsallis_weights: losses = {losses!r} must be numbers, one for each arm") from error
    if given.ndim != 1 or len(given) < 2:
        raise InvalidInput(
            f"tsallis_weights: losses have shape {given.shape}: they must be a list of two or more numbers"
        )
    if not (np.abs(given) <= 1e300).all():
        bad = given[~(np.abs(given) <= 1e300)][0]
        raise InvalidInput(f"tsallis_weights: a loss is {bad}: losses must be numbers with |loss| <= 1e300")
    out = np.zeros(len(given))
    q = alpha / (alpha - 1.0)
    with np.errstate(over="ignore"):  # a loss that is as good as infinite has weight 0
        solve(given, out, given.min(), float(eta), q, largest_root(len(given), q))
    return out


def check_alpha(owner: str, alpha: Any) -> None:
    """Raise `InvalidInput` unless alpha is the order of a moment with 1 < alpha <= 2."""
    if not isinstance(alpha, (int, float, np.floating)) or isinstance(alpha, bool) or not 1.0 < alpha <= 2.0:
        raise InvalidInput(f"{owner}: alpha = {alpha!r} must be a number with 1 < alpha <= 2")


def solve(losses: Floats, weights: Floats, low: float, eta: float, q: float, start: float) -> float:
    """Fill in the weights and return m; the search starts at ``start``."""
    if q == 2.0:
        return solve_square(losses, weights, low, eta, q, start)
    return root_from(power, losses, weights, low, eta, q, start)


def solve_square(losses: Floats, weights: Floats, low: float, eta: float, q: float, start: float) -> float:
    """The same where q is 2."""
    return root_from(square, losses, weights, low, eta, q, start)


def solve_barrier(losses: Floats, weights: Floats, low: float, eta: float, q: float, start: float) -> float:
    """The same where q is 1."""
    return root_from(reciprocal, losses, weights, low, eta, q, start)


def square(z: float, q: float) -> float:
    """(1 + z)^-2."""
    inverse = 1.0 / (1.0 + z)
    return inverse * inverse


def reciprocal(z: float, q: float) -> float:
    """(1 + z)^-1."""
    return 1.0 / (1.0 + z)


def power(z: float, q: float) -> float:
    """(1 + z)^-q."""
    return math.exp(-q * math.log1p(z))


@out_of_line
def root_from(
    weight: Callable[[float, float], float],
    losses: Floats,
    weights: Floats,
    low: float,
    eta: float,
    q: float,
    start: float,
) -> float:
    """See the module. ``slope`` and ``bend`` are the derivatives of ``total`` but for the factors -q and q (q + 1)."""
    arms = losses.shape[0]
    a = 1.0 / q
    m = start
    moved = math.inf  # q times the last step, and the next one
    move = 0.0
    for _ in range(PASSES):
        near = abs(moved) <= SHORT and q > 2.0
        total = 0.0
        slope = 0.0
        bend = 0.0
        for arm in range(arms):
            z = m + eta * (losses[arm] - low)
            inverse = 1.0 / (1.0 + z)
            if near:
                x = weights[arm] * series(moved * inverse, a)
            else:
                x = weight(z, q)
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
        y = move / (1.0 + m + eta * (losses[arm] - low))
        x = weights[arm] * (1.0 - y * (1.0 - 0.5 * (1.0 + a) * y))
        weights[arm] = x
        total += x
    scale = 1.0 / total
    for arm in range(arms):
        weights[arm] *= scale
    return max(m + a * move, 0.0)


def series(y: float, a: float) -> float:
    """(1 - a y)^(1/a) for a in (0, 1/2] and |y| <= SHORT, to the last digit."""
    tail = 1.0 - y * ((1.0 - 4.0 * a) / 5.0) * (1.0 - y * ((1.0 - 5.0 * a) / 6.0))
    tail = 1.0 - y * ((1.0 - 2.0 * a) / 3.0) * (1.0 - y * ((1.0 - 3.0 * a) / 4.0) * tail)
    return 1.0 - y * (1.0 - y * (0.5 - 0.5 * a) * tail)


def look(solver: Callable[..., float], s: Any, eta: float, q: float) -> None:
    """Make the weights those of the losses and of this eta."""
    low = s.losses[0]
    lead = 0
    for arm in range(1, s.losses.shape[0]):
        if s.losses[arm] < low:
            low = s.losses[arm]
            lead = arm
    start = s.root[START] + eta * (low - s.root[START_LOW])
    s.root[HERE] = solver(s.losses, s.weights, low, eta, q, min(max(start, 0.0), s.root[TOP]))
    s.root[LOW] = low
    s.clock[LEAD] = lead
    s.clock[FRESH] = 1


@out_of_line
def level(s: Any) -> None:
    """Make the weights those of equal losses."""
    arms = s.weights.shape[0]
    for arm in range(arms):
        s.weights[arm] = 1.0 / arms
    s.root[HERE] = s.root[TOP]
    s.root[LOW] = 0.0
    s.clock[LEAD] = 0
    s.clock[FRESH] = 1


def drawn(s: Any) -> int:
    """An arm with the probability that its weight says, to within 2^-53: what rounding leaves over is the leader's."""
    left = uniform(s.rng)
    for arm in range(s.weights.shape[0]):
        left -= s.weights[arm]
        if left <= 0.0:
            return arm
    return s.clock[LEAD]


def decide(s: Any, arm: int) -> float:
    """The pull is made: the clock moves on. Returns the probability with which the arm was chosen; weights must be fresh."""
    s.root[START] = s.root[HERE]
    s.root[START_LOW] = s.root[LOW]
    s.clock[MADE] += 1
    s.clock[FRESH] = 0
    return s.weights[arm]


def believe(s: Any, arm: int, out: Floats) -> None:
    """What a policy of the family says of an arm: the mean that the losses stand for, and the probability of the next choice."""
    out[0] = math.nan
    if s.clock[HEARD] > 0:
        out[0] = (0.0 - s.losses[arm]) / s.clock[HEARD]
    out[1] = s.weights[arm]

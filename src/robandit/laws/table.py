"""Every law as rows of numbers, and the one compiled function that draws from them.

A law is a finite mixture of affine images ``loc + scale * Z`` of a few base variables ``Z``, so a list of laws
becomes a table with one row per component, and the kernels are compiled per policy instead of per policy and problem.
The base variables and what ``a``, ``b`` and the pool mean for them:

============== ================================================== ======================== ==================
code           Z                                                  a                        b
============== ================================================== ======================== ==================
``PARETO``     U^(-a): Pareto with least value 1                  1 / tail                 .
``CONSTANT``   0                                                  .                        .
``BERNOULLI``  1 with probability a, else 0                       P(Z = 1)                 .
``GAUSSIAN``   standard normal                                    .                        .
``STUDENT``    Student's t                                        degrees of freedom       .
``POWER``      E^a with E standard exponential                    1/shape, or -1/tail      .
``LOGNORMAL``  exp(b + a N)                                       sigma                    mu
``BURR``       (U^(-b) - 1)^a                                     1 / c                    1 / k
``CAUCHY``     standard Cauchy                                    .                        .
``STABLE``     alpha-stable, S1, alpha != 1, scale 1, location 0  alpha                    beta tan(pi alpha/2)
``STABLE_ONE`` alpha-stable, S1, alpha = 1, scale 1, location 0   .                        beta
``DISCRETE``   value j with probability p_j                       .                        .
``EMPIRICAL``  a recorded sample, drawn with replacement          .                        .
============== ================================================== ======================== ==================

A Lomax variable is a Pareto variable shifted by its scale, so it needs no code. ``DISCRETE`` keeps its cumulative
probabilities and then its values in the pool; ``EMPIRICAL`` keeps its sample there. Two more codes hand out recorded
rewards in their order: see :mod:`robandit.laws.in_order`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.random import normal, uniform
from robandit.kernel.types import Floats, Ints, UInts
from robandit.laws.in_order import MISSED, replayed
from robandit.laws.validation import items_of

if TYPE_CHECKING:
    from robandit.laws.base import Law

__all__ = ["Component", "LawTable", "draw", "fill", "missed", "tabulate"]

PARETO = 0
CONSTANT = 1
BERNOULLI = 2
GAUSSIAN = 3
STUDENT = 4
POWER = 5
LOGNORMAL = 6
BURR = 7
CAUCHY = 8
STABLE = 9
STABLE_ONE = 10
DISCRETE = 11
EMPIRICAL = 12

# Columns of ``par``. Eight doubles are one cache line, so a draw touches one line of the table.
CUMULATIVE = 0
LOC = 1
SCALE = 2
A = 3
B = 4
OFFSET = 5
LENGTH = 6
COLUMNS = 8

# The middle of the last cell of the uniform grid: what -log(U) means when U rounds to 1.
LEAST_EXPONENTIAL = 2.0**-54


class Component(NamedTuple):
    """One part of a law: with probability ``weight`` the reward is ``loc + scale * Z``, with Z given by ``code``."""

    weight: float
    loc: float
    scale: float
    code: int
    a: float = 0.0
    b: float = 0.0
    data: Floats | None = None


class LawTable(NamedTuple):
    """The components of several laws; law ``i`` owns the rows ``start[i] .. start[i + 1] - 1``."""

    code: Ints
    par: Floats
    start: Ints
    pool: Floats


def tabulate(laws: Sequence[Law]) -> LawTable:
    """Turn laws into the arrays that ``draw`` reads.

    ``par`` has one row per component: cumulative weight within its law, loc, scale, a, b, offset and length of its part
    of the pool, and `MISSED`, which stays 0. All arrays are C-contiguous and not empty.
    """
    given = items_of(laws, "laws", "laws")
    if not given:
        raise InvalidInput("laws is empty: a table needs at least one law; pass [law]")
    codes: list[int] = []
    rows: list[list[float]] = []
    start = [0]
    pools: list[Floats] = []
    places: dict[int, int] = {}  # arms often share one recorded sample: keep it once
    used = 0
    for i, law in enumerate(given):
        if not hasattr(law, "components"):
            raise InvalidInput(f"laws[{i}] is {law!r}: it must be a law; wrap a plain number as Constant(number)")
        parts = [part for part in law.components() if part.weight > 0.0]
        total = math.fsum(part.weight for part in parts)
        for number, part in enumerate(parts, start=1):
            offset = length = 0
            if part.data is not None:
                length = len(part.data)
                if id(part.data) not in places:
                    places[id(part.data)] = used
                    pools.append(part.data)
                    used += length
                offset = places[id(part.data)]
            # The last one is exactly 1, so that a uniform of 1 finds a component whatever the rounding of the sum.
            below = math.fsum(other.weight for other in parts[:number]) / total if number < len(parts) else 1.0
            codes.append(part.code)
            # + 0.0 turns -0.0 into 0.0: then loc + scale * 0 is never a negative zero
            rows.append([below, part.loc + 0.0, part.scale, part.a, part.b, float(offset), float(length), 0.0])
        start.append(len(codes))
    pool = np.concatenate(pools) if pools else np.zeros(1)
    return LawTable(
        np.array(codes, dtype=np.int64),
        np.array(rows, dtype=np.float64),
        np.array(start, dtype=np.int64),
        np.ascontiguousarray(pool, dtype=np.float64),
    )


def draw(code: Ints, par: Floats, start: Ints, pool: Floats, arm: int, rng: UInts) -> float:
    """One reward of law ``arm``, advancing its stream ``rng`` (one row of four words)."""
    row = start[arm]
    last = start[arm + 1] - 1
    if row < last:
        chosen = uniform(rng)
        while row < last and chosen > par[row, CUMULATIVE]:
            row += 1
    kind = code[row]
    if kind == PARETO:
        value = math.exp(-math.log(uniform(rng)) * par[row, A])
    elif kind == CONSTANT:
        value = 0.0
    else:
        value = draw_other(kind, row, par, pool, rng)
    return float(par[row, LOC] + par[row, SCALE] * value)


def missed(table: LawTable) -> float:
    """Return the regret that the sampler itself has measured so far: the cell ``par[0, MISSED]``.

    The sampler of a replay knows what the best arm would have given at each time, and adds the differences up in this cell of its
    own copy of the table (`robandit.laws.in_order`). For laws, whose regret follows from the gaps, the cell is 0.
    """
    return float(table.par[0, MISSED])


def fill(code: Ints, par: Floats, start: Ints, pool: Floats, arm: int, rng: UInts, out: Floats) -> None:
    """Fill ``out`` with rewards of law ``arm``."""
    for i in range(out.shape[0]):
        out[i] = draw(code, par, start, pool, arm, rng)


@out_of_line
def draw_other(kind: int, row: int, par: Floats, pool: Floats, rng: UInts) -> float:
    """The base variables that are not among the hottest, and recorded rewards."""
    a, b = par[row, A], par[row, B]
    if kind == BERNOULLI:
        return 1.0 if uniform(rng) <= a else 0.0
    if kind == GAUSSIAN:
        return normal(rng)
    if kind == STUDENT:
        return draw_student(a, rng)
    if kind == POWER:
        return math.exp(math.log(positive_exponential(rng)) * a)
    if kind == LOGNORMAL:
        return math.exp(b + a * normal(rng))
    if kind == BURR:
        return math.exp(math.log(math.expm1(positive_exponential(rng) * b)) * a)
    if kind == CAUCHY:
        return math.tan(math.pi * (uniform(rng) - 0.5))
    if kind == STABLE:
        return draw_stable(a, b, rng)
    if kind == STABLE_ONE:
        return draw_stable_one(b, rng)
    if kind == DISCRETE:
        return draw_discrete(pool, int(par[row, OFFSET]), int(par[row, LENGTH]) // 2, rng)
    if kind == EMPIRICAL:
        return draw_empirical(pool, int(par[row, OFFSET]), int(par[row, LENGTH]), rng)
    return replayed(kind, row, par, pool, rng)


def positive_exponential(rng: UInts) -> float:
    """A standard exponential that is never 0, so that its logarithm is finite."""
    value = -math.log(uniform(rng))
    return value if value > 0.0 else LEAST_EXPONENTIAL


def draw_student(dof: float, rng: UInts) -> float:
    """Student's t by Bailey's radius and angle (1994): exact, two uniforms, no rejection and no gamma variable."""
    squared = dof * math.expm1(-2.0 * math.log(uniform(rng)) / dof)
    return math.sqrt(squared) * math.cos(2.0 * math.pi * uniform(rng))


def draw_stable(alpha: float, skew: float, rng: UInts) -> float:
    """A stable variable with alpha != 1 by Chambers, Mallows and Stuck (1976); ``skew`` is beta tan(pi alpha / 2).

    The angle of the second cosine is formed with the exact ``1 - alpha``: near alpha = 1 the rounding of that angle is
    then raised to a power of the same small size, and the result is good to a few units in its last place.
    """
    angle = math.pi * (uniform(rng) - 0.5)
    shift = math.atan(skew)
    inverse = 1.0 / alpha
    # both cosines are positive in exact arithmetic; at the ends of the interval rounding can bring them to 0 or below
    first = max(math.cos(angle), LEAST_EXPONENTIAL)
    second = max(math.cos((1.0 - alpha) * angle - shift), LEAST_EXPONENTIAL)
    stretch = 0.5 * math.log1p(skew * skew) - math.log(first)
    tilt = (1.0 - alpha) * (math.log(second) - math.log(positive_exponential(rng)))
    return math.sin(alpha * angle + shift) * math.exp((stretch + tilt) * inverse)


def draw_stable_one(beta: float, rng: UInts) -> float:
    """A stable variable with alpha = 1 (same source)."""
    angle = math.pi * (uniform(rng) - 0.5)
    slope = max(0.5 * math.pi + beta * angle, LEAST_EXPONENTIAL)
    cosine = max(math.cos(angle), LEAST_EXPONENTIAL)
    ratio = 0.5 * math.pi * positive_exponential(rng) * cosine / slope
    return (slope * math.tan(angle) - beta * math.log(ratio)) * (2.0 / math.pi)


def draw_discrete(pool: Floats, offset: int, count: int, rng: UInts) -> float:
    """The value whose cumulative probability is the first to reach a uniform."""
    chosen = uniform(rng)
    low = 0
    high = count - 1
    while low < high:
        middle = (low + high) // 2
        if pool[offset + middle] < chosen:
            low = middle + 1
        else:
            high = middle
    return float(pool[offset + count + low])


def draw_empirical(pool: Floats, offset: int, count: int, rng: UInts) -> float:
    """One recorded value, each with the same probability; 1 - U lies in [0, 1), so the index stays inside."""
    return float(pool[offset + int((1.0 - uniform(rng)) * count)])

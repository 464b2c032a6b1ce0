"""Tables of laws, and the compiled function that draws from every law.

A law is a finite mixture of affine images ``loc + scale * Z`` of a few base variables ``Z``. So a list of laws becomes a table with
one row per component. Kernels are compiled per policy, not per problem. The base variables have the parameters ``a`` and ``b``:

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
``STABLE``     alpha-stable, S1, alpha > 1, scale 1, location 0   alpha                    beta tan(pi alpha/2)
``DISCRETE``   value j with probability p_j                       .                        .
``EMPIRICAL``  a recorded sample, drawn with replacement          .                        .
============== ================================================== ======================== ==================

A Lomax variable is a Pareto variable shifted by its scale. The pool holds the cumulative probabilities and then the values of
``DISCRETE``, and the sample of ``EMPIRICAL``. Two more codes return recorded rewards in order: :mod:`robandit.laws.in_order`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import normal, uniform
from robandit.kernel.types import Floats, Ints, UInts
from robandit.laws.base import Law, checked_law
from robandit.laws.in_order import MISSED, replayed
from robandit.validation import invalid, items_of

__all__ = ["Component", "LawTable", "draw", "fill", "missed", "tabulate", "with_missed"]

PARETO, CONSTANT, BERNOULLI, GAUSSIAN, STUDENT, POWER, LOGNORMAL, BURR, CAUCHY = range(9)
STABLE, DISCRETE, EMPIRICAL = range(9, 12)
# Columns of ``par``. The eighth column is 0: eight doubles are one cache line, so a draw reads one line of the table.
CUMULATIVE, LOC, SCALE, A, B, OFFSET, LENGTH = range(7)
# -log(U) at the middle of the last cell of the uniform grid, which replaces 0 if U rounds to 1.
LEAST_EXPONENTIAL = 2.0**-54
UNITS = 2**1074  # smallest doubles in 1


class Component(NamedTuple):
    """A component of a law. With probability ``weight`` the reward is ``loc + scale * Z``, where ``code`` selects Z."""

    weight: float
    loc: float
    scale: float
    code: int
    a: float = 0.0
    b: float = 0.0
    data: Floats | None = None


class LawTable(NamedTuple):
    """The components of several laws. The rows of law ``i`` are ``start[i] .. start[i + 1] - 1``."""

    code: Ints
    par: Floats
    start: Ints
    pool: Floats


def tabulate(laws: Sequence[Law]) -> LawTable:
    """Return laws as the arrays that ``draw`` reads.

    ``par`` has one row per component: the cumulative weight within its law, loc, scale, a, b, the offset and length of its part
    of the pool, and `MISSED`, which is 0 here. All arrays are C-contiguous and not empty.
    """
    checked = [checked_law(law, f"laws[{i}]") for i, law in enumerate(items_of(laws, "laws", "laws"))]
    if not checked:
        raise invalid("laws", laws, "at least one law", hint="pass [law]")
    codes: list[int] = []
    rows: list[list[float]] = []
    start = [0]
    pools: list[Floats] = []
    offsets: dict[int, int] = {}  # by the id of the data, because a sample that several arms share is stored once
    used = 0
    for law in checked:
        parts = [part for part in law.components() if part.weight > 0.0]
        total = math.fsum(part.weight for part in parts)
        # The sum of the weights so far, in units of the smallest double; fsum of each prefix would be quadratic.
        exact = 0
        for number, part in enumerate(parts, start=1):
            numerator, denominator = part.weight.as_integer_ratio()
            exact += numerator * (UNITS // denominator)
            offset = length = 0
            if part.data is not None:
                length = len(part.data)
                if id(part.data) not in offsets:
                    offsets[id(part.data)] = used
                    pools.append(part.data)
                    used += length
                offset = offsets[id(part.data)]
            # The last weight is exactly 1, so that a uniform of 1 finds a component despite rounding.
            cumulative = exact / UNITS / total if number < len(parts) else 1.0
            codes.append(part.code)
            # + 0.0 turns -0.0 into 0.0, so that loc + scale * 0 is never a negative zero.
            rows.append([cumulative, part.loc + 0.0, part.scale, part.a, part.b, float(offset), float(length), 0.0])
        start.append(len(codes))
    pool = np.ascontiguousarray(np.concatenate(pools) if pools else np.zeros(1), dtype=np.float64)
    return LawTable(np.array(codes, np.int64), np.array(rows, np.float64), np.array(start, np.int64), pool)


def draw(code: Ints, par: Floats, start: Ints, pool: Floats, arm: int, rng: UInts) -> float:
    """Return one reward of law ``arm`` and advance its stream ``rng``, which has four words."""
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
    """Return the regret that the sampler has measured so far, which is in the cell ``par[0, MISSED]``.

    The sampler of a replay knows the best arm's reward at each time. It adds up the differences in this cell of its own copy of
    the table (`robandit.laws.in_order`). For laws, whose regret follows from the gaps, the cell is 0.
    """
    return float(table.par[0, MISSED])


def with_missed(table: LawTable, regret: float) -> LawTable:
    """Return a table with its own parameters, whose sampler starts with this regret."""
    par = table.par.copy()
    par[0, MISSED] += regret
    return LawTable(table.code, par, table.start, table.pool)


def fill(code: Ints, par: Floats, start: Ints, pool: Floats, arm: int, rng: UInts, out: Floats) -> None:
    """Fill ``out`` with rewards of law ``arm``."""
    for i in range(out.shape[0]):
        out[i] = draw(code, par, start, pool, arm, rng)


@out_of_line
def draw_other(kind: int, row: int, par: Floats, pool: Floats, rng: UInts) -> float:
    """Draw one of the less common base variables or a recorded reward."""
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
    if kind == DISCRETE:
        return draw_discrete(pool, int(par[row, OFFSET]), int(par[row, LENGTH]) // 2, rng)
    if kind == EMPIRICAL:
        return draw_empirical(pool, int(par[row, OFFSET]), int(par[row, LENGTH]), rng)
    return replayed(kind, row, par, pool, rng)


def positive_exponential(rng: UInts) -> float:
    """Draw a standard exponential that is never 0, so that its log is finite."""
    value = -math.log(uniform(rng))
    return value if value > 0.0 else LEAST_EXPONENTIAL


def draw_student(dof: float, rng: UInts) -> float:
    """Draw Student's t by Bailey's exact method (1994): a radius and an angle from two uniforms, without rejection."""
    squared = dof * math.expm1(-2.0 * math.log(uniform(rng)) / dof)
    return math.sqrt(squared) * math.cos(2.0 * math.pi * uniform(rng))


def draw_stable(alpha: float, skew: float, rng: UInts) -> float:
    """Draw a stable variable with alpha > 1 (Chambers, Mallows and Stuck 1976), with ``skew`` = beta tan(pi alpha / 2).

    The angle of the second cosine uses the exact ``1 - alpha``. Near alpha = 1 its rounding error then enters with an exponent
    that is as small, so the result is accurate to a few units in its last place.
    """
    angle = math.pi * (uniform(rng) - 0.5)
    shift = math.atan(skew)
    inverse = 1.0 / alpha
    # Both cosines are positive, but at the ends of the interval they may round to 0 or below.
    first = max(math.cos(angle), LEAST_EXPONENTIAL)
    second = max(math.cos((1.0 - alpha) * angle - shift), LEAST_EXPONENTIAL)
    stretch = 0.5 * math.log1p(skew * skew) - math.log(first)
    tilt = (1.0 - alpha) * (math.log(second) - math.log(positive_exponential(rng)))
    return math.sin(alpha * angle + shift) * math.exp((stretch + tilt) * inverse)


def draw_discrete(pool: Floats, offset: int, count: int, rng: UInts) -> float:
    """Draw the first value whose cumulative probability reaches a uniform."""
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
    """Draw one recorded value; all are equally likely. The index is valid because 1 - U lies in [0, 1)."""
    return float(pool[offset + int((1.0 - uniform(rng)) * count)])

"""KLinf of an arm whose rewards have a known upper bound, with cheap bounds between exact evaluations.

For a sample x_1, ..., x_n with deficits y_j = u - x_j >= 0 and a mean m below the upper bound u, the least divergence from the
sample to a law on (-inf, u] with mean m (Honda, Takemura 2010), times n, is 0 if the sample mean is at least m, else the maximum
over b >= 0 of

    sum_j log((b + y_j) / (b + d)),  d = u - m.

**Bounds.** Any b gives a lower bound for every d. So an arm keeps b and d_0 of its last exact evaluation, and ``VALUE``, the sum
for them. A new reward adds one logarithm, and another d subtracts n log((b + d) / (b + d_0)) <= n (d - d_0) / (b + d_0). For the
upper bound, the sum is concave in 1/(b + d), so the derivative, which needs only ``INVERSES``, the sum of 1 / (b + y_j), bounds the
gain.

**Exact evaluation.** Newton's method in k = d / (b + d), in (0, 1], from the last solution, with a bisection if it leaves the
bracket. It ends if the total is within 1e-12 of its maximum, relative to 1 + total.
"""

from __future__ import annotations

import math

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

# A row of ``found``. EXACT: 2 if VALUE is n KLinf at the deficit AT for all rewards so far, 1 if it is a lower bound, 0 if unknown.
SHIFTED, AT, VALUE, INVERSES, EXACT = 0, 1, 2, 3, 4  # SHIFTED: b
FOUND_LENGTH = 5

PASSES = 100  # the most passes; from the last solution it takes 2 or 3
CLOSE = 1e-12
PRODUCT = 1e120  # factors are multiplied up to this size, to take fewer logarithms
FLOOR = 1e-100  # smallest factor
FARTHEST = 1e100  # largest deficit in units of d
NARROW = 1e-15
SLACK = 1e-12  # relative; far above the rounding of bounds


def learn_deficit(row: Floats, y: float) -> None:
    """Add a reward's deficit to the lower bound. It becomes unknown if b + y = 0, since the logarithm is infinite."""
    shifted = row[SHIFTED] + y
    if row[EXACT] == 0.0 or shifted <= 0.0:
        row[EXACT] = 0.0
        return
    row[EXACT] = 1.0
    row[VALUE] += math.log(shifted / (row[SHIFTED] + row[AT]))
    row[INVERSES] += 1.0 / shifted


def quick_floor(row: Floats, n: float, d: float) -> float:
    """Return a lower bound of n KLinf at the deficit d, without a logarithm."""
    if row[EXACT] == 0.0:
        return 0.0
    change = n * (d - row[AT]) / (row[SHIFTED] + row[AT])
    return row[VALUE] - change - SLACK * (n + abs(change) + abs(row[VALUE]))


def enclosed(row: Floats, n: float, d: float) -> tuple[float, float]:
    """Return a lower and an upper bound of n KLinf at the deficit d > 0."""
    if row[EXACT] == 0.0:
        return 0.0, math.inf
    if row[EXACT] == 2.0 and row[AT] == d:
        return row[VALUE], row[VALUE]
    before = row[SHIFTED] + row[AT]
    now = row[SHIFTED] + d
    value = row[VALUE] - n * math.log(now / before)
    rise = n - now * row[INVERSES]  # k times the derivative by k
    gain = rise * row[SHIFTED] / d if rise > 0.0 else -rise
    slack = SLACK * (n + abs(value) + abs(row[VALUE])) * (1.0 + row[SHIFTED] / d)
    return max(value - slack, 0.0), max(value, 0.0) + gain + slack


@out_of_line
def solve(pool: Floats, start: int, n: int, row: Floats, d: float) -> float:
    """Return n KLinf at the deficit d > 0, and keep the solution. ``pool`` has the deficits, whose mean is above d."""
    low = 0.0
    high = 1.0
    ended = False  # whether k = 1 was tried
    new = d / (row[SHIFTED] + d) if row[EXACT] > 0.0 else first_guess(pool, start, n, d)
    k = new
    total = 0.0
    inverses = 0.0
    for _ in range(PASSES):
        k = new
        logs = 0.0
        product = 1.0
        rise = 0.0
        bend = 0.0
        inverses = 0.0
        for j in range(start, start + n):
            excess = min(pool[0, j] / d, FARTHEST) - 1.0
            factor = max(1.0 + k * excess, FLOOR)
            product *= factor
            if product > PRODUCT or product < 1.0 / PRODUCT:
                logs += math.log(product)
                product = 1.0
            inverse = 1.0 / factor
            share = excess * inverse
            inverses += inverse
            rise += share
            bend += share * share
        total = logs + math.log(product)
        if k == 1.0:
            ended = True
            if rise >= 0.0:  # the end of the interval
                break
        if rise > 0.0:
            low = k
        else:
            high = k
        # The total can still grow by about half of the first product.
        if rise * rise <= CLOSE * (1.0 + abs(total)) * bend or high - low <= NARROW * high:
            break
        new = k + rise / bend
        if new >= 1.0 and not ended:
            new = 1.0
        elif not low < new < high:
            new = 0.5 * (low + high)
    row[SHIFTED] = d * (1.0 - k) / k
    row[AT] = d
    row[VALUE] = max(total, 0.0)
    row[INVERSES] = inverses * k / d
    row[EXACT] = 2.0
    return row[VALUE]


def first_guess(pool: Floats, start: int, n: int, d: float) -> float:
    """Return the maximum of the second-order expansion at k = 0, or 1/2 if that is larger."""
    first = 0.0
    second = 0.0
    for j in range(start, start + n):
        excess = min(pool[0, j] / d, FARTHEST) - 1.0
        first += excess
        second += excess * excess
    return min(first / second, 0.5) if 0.0 < first < 0.5 * second else 0.5

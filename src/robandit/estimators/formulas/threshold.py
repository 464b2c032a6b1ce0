"""The equation of the trimming threshold: ``sum_j min((x_j / M)^2, 1) = a`` with a = c log(1/delta).

Let z_0 >= z_1 >= ... be the sizes |x_j| and S_d the sum of squares from z_d on. The number d of sizes above the root is the least
d with ``S_d >= z_d^2 (a - d)``, and the root is ``M = sqrt(S_d / (a - d))``. As always d < a, M depends only on the sum of all
squares and on the ceil(a) largest sizes.
"""

from __future__ import annotations

import math
from typing import Any

from robandit.kernel.generate import out_of_line

C = (1.0 + math.sqrt(2.0)) ** 2
"""The constant c of the equation that Theorem 6 and the regret bounds need."""


def above_root(square: Any, rest: Any, a: Any, d: Any) -> bool:
    """Return whether z_d is above the root, for square = z_d^2 and rest = S_d."""
    return square * (a - d) > rest  # type: ignore[no-any-return]


def threshold_root(rest: float, a: float, d: float) -> float:
    """Return M for d sizes above it and rest = S_d."""
    return math.sqrt(rest / (a - d))


@out_of_line
def doubled(smallest: float, root: float) -> float:
    """Return the first of smallest, 2 smallest, 4 smallest, ... that is not below the root (the paper's Appendix C)."""
    guess = smallest
    while 0.0 < guess < root:  # without the 0, a senseless number of a file would be doubled for ever
        guess *= 2.0
    return guess

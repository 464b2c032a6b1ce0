"""AdaR-UCB's two regret bounds (Theorems 7 and 8), as printed and with repaired constants.

The paper's proof does not establish the printed constants (items 12, 13 and 15 of docs/explanation/reading-the-paper.md).
AdaR-UCB exceeds the printed bound of Theorem 7 if the worse arm varies much more than the best (`robandit verify theorem-7`). The
repaired bounds have the same rates, with constants that the proof gives. They come from a public audit of the paper. Their basis:

**Taken as given**: Lemma 2 (the index exceeds the best mean except with probability 2 / tau^3), Theorem 5 (the two bounds of the
threshold), Bernstein's inequality, and Maurer and Pontil's inequality for the root of an empirical variance.

**Re-checked here**, with H = floor(T/2) rounds, p = 1 + eps, q = eps / (1 + eps), L = 3 log tau, N pulls, threshold M, and the
unit of width w = u^(1/p) (L/N)^q:

- Forced rounds. An arm is forced while at most c L <= c L_H of its second rewards are non-zero. It needs r_H = floor(c L_H) + 1
  non-zero rewards, which takes r_H / P(X != 0) rounds on average.
- The constant 5.6. With M <= (u N/L)^(1/p) a mean is too high by at most sqrt(2) w + w/3 + (1 + 2 sqrt 2)^(2 q) w <= 5.58 w.
- The constant 22. A finite index needs N > c L > 12, so 1/(N - 1) <= 13/(12 N). Then the index exceeds the trimmed mean by at
  most (sqrt 2 + 4 sqrt(13/12) + 10) w. With 5.6 w the sum is 21.2 w. (With the paper's 1/(N - 1) <= 2/N the sum is 22.7 w, and
  with 3/(2 N) it is 21.9 w.) So an arm with a gap above 22 w is pulled only after an event of small probability.
- The constant 6. These probabilities are at most 6/tau^3 for each N, so 6 (tau - 1)/tau^3 in a round, and below 2.7 in total.
- The constant 88. Arms with gaps up to D cost at most 2 D H. The others cost 2 K L_H 22^(1/q) (u/D)^(1/eps), plus one round each
  for rounding up (hence 7). The best D gives 44 (1 + eps) eps^(-q) (K L_H)^q (u H)^(1/p), and (1 + eps) eps^(-q) is at most 2.
- An odd horizon adds one pull, which costs at most 2 u^(1/p).

The constants are derived by hand; the proof is not machine-checked. All bounds need truncated non-positivity of the best arm.
These functions do not check it, but ``problem.assumption()`` does.
"""

from __future__ import annotations

import math

import numpy as np

from robandit.estimators.formulas.threshold import C
from robandit.kernel.types import Floats
from robandit.problems import Problem
from robandit.theory.bound import check_problem, power, total
from robandit.validation import integer, invalid, order


def printed_instance(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 7 as printed: the sum of ``(120 (u/gap)^(1/eps) + 24 gap / P(X != 0)) log(T/2) + 20 gap`` over the worse arms.

    Label it "as printed, proof gap at (robust3)". A step of the proof has 20 but needs 20^((1+eps)/eps), and regret can exceed
    the bound by half. For eps = 1 and small gaps, the term with 120 can reach ``6 (10/sqrt c + sqrt 2)^2 = 185``.

    Parameters
    ----------
    problem
        The bound uses its gaps, E|X|^(1+eps) and P(X != 0).
    horizon, eps
        The horizon T, from 2 (one round) to 2^53, and an order in (0, 1] below the tail index minus 1.

    Examples
    --------
    >>> from robandit.problems import gaussian
    >>> from robandit.theory.adar_bounds import printed_instance
    >>> printed_instance(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    2451.6
    """
    terms = _Terms(problem, horizon, eps)
    explored = 120.0 * power(terms.u / terms.gaps, 1.0 / terms.eps) * terms.log
    return total(explored) + terms.printed_forced()


def printed_worst_case(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 8 as printed: ``46 (K log(T/2))^(eps/(1+eps)) (u T)^(1/(1+eps))`` plus the terms of Theorem 7 without 120.

    The proof has the same gap. The parameters are those of `printed_instance`.

    >>> from robandit.problems import gaussian
    >>> printed_worst_case(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    39726.8
    """
    terms = _Terms(problem, horizon, eps)
    main = 46.0 * (problem.arms * terms.log) ** terms.q * (terms.u * horizon) ** (1.0 / terms.p)
    return float(main + terms.printed_forced())


def repaired_instance(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 7 with the constants that its proof gives, and the guard c of the implementation.

    It is ``2 sum gap [ceil(L_H (22 u^(1/p) / gap)^(1/q)) + min(H, r_H / P(X != 0)) + 6]``, plus ``2 u^(1/p)`` if T is odd. Here
    H = floor(T/2), L_H = 3 log H, p = 1 + eps, q = eps / (1 + eps) and r_H = floor(c L_H) + 1. The parameters are those of
    `printed_instance`. The module's docstring has the derivation.

    >>> from robandit.problems import gaussian
    >>> repaired_instance(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    53830.0
    """
    terms = _Terms(problem, horizon, eps)
    with np.errstate(over="ignore"):
        explored = np.ceil(terms.level * power(22.0 * terms.size / terms.gaps, 1.0 / terms.q))
        return 2.0 * total(terms.gaps * (explored + terms.forced() + 6.0)) + terms.leftover


def repaired_worst_case(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 8 with the constants that its proof gives, and the guard c of the implementation.

    It is ``88 (K L_H)^q (u H)^(1/p) + 2 sum gap [min(H, r_H / P(X != 0)) + 7]``, plus ``2 u^(1/p)`` if T is odd. The names are
    those of `repaired_instance`.

    >>> from robandit.problems import gaussian
    >>> repaired_worst_case(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    92852.8
    """
    terms = _Terms(problem, horizon, eps)
    main = 88.0 * (problem.arms * terms.level) ** terms.q * (terms.u * terms.rounds) ** (1.0 / terms.p)
    return float(main + 2.0 * total(terms.gaps * (terms.forced() + 7.0)) + terms.leftover)


class _Terms:
    """The terms of the four bounds."""

    def __init__(self, problem: Problem, horizon: int, eps: float) -> None:
        check_problem(problem)
        horizon = integer(horizon, "horizon", 2)
        self.eps = order(eps)
        self.u = problem.u(self.eps)
        if not math.isfinite(self.u):
            limit = f"{problem.tail_index - 1.0:g}, the tail index minus 1"
            raise invalid("eps", eps, f"below {limit}", hint=f"an arm has an infinite E|X|^{1.0 + self.eps:g}")
        self.p = 1.0 + self.eps
        self.q = self.eps / self.p
        self.size = self.u ** (1.0 / self.p)
        worse = problem.gaps > 0.0
        self.gaps = problem.gaps[worse]
        self.nonzero = np.array([law.nonzero_probability for law in problem.laws])[worse]
        self.rounds, self.log = horizon // 2, math.log(horizon / 2.0)
        self.level = 3.0 * math.log(self.rounds)
        self.leftover = 2.0 * self.size if horizon % 2 else 0.0

    def forced(self) -> Floats:
        """Return the rounds of forced exploration of each worse arm. An arm whose rewards are always 0 is always forced."""
        with np.errstate(divide="ignore"):
            return np.minimum(self.rounds, (math.floor(C * self.level) + 1) / self.nonzero)

    def printed_forced(self) -> float:
        """Return the terms that the two printed bounds have in common."""
        if self.log == 0.0:
            return total(20.0 * self.gaps)
        with np.errstate(divide="ignore"):
            return total(24.0 * self.gaps / self.nonzero * self.log + 20.0 * self.gaps)

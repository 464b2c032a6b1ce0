"""AdaR-UCB's two regret bounds (Theorems 7 and 8): as the paper prints them, and with the constants that its proof gives.

The printed proof does not reach its own constants (items 12, 13 and 15 of docs/explanation/reading-the-paper.md), and AdaR-UCB
exceeds the printed bound of Theorem 7 where the worse arm varies much more than the best (`robandit verify theorem-7`); rates in
T, u and the gaps are the same. The repaired bounds come from a public audit of the paper. What stands behind them:

**Given**, not proved here: Lemma 2 (the index exceeds the best mean but for a probability 2 / tau^3), Theorem 5 (the two
bounds of the threshold), Bernstein's inequality, and the one of Maurer and Pontil for the root of an empirical variance.

**Re-checked here**, with H = floor(T/2) rounds, p = 1 + eps, q = eps / (1 + eps), L = 3 log tau, N pulls, threshold M, and the
unit of width w = u^(1/p) (L/N)^q:

- Forced rounds. An arm is forced while at most c L <= c L_H of its second rewards differ from 0: until the first r_H of them have
  come, which takes r_H / P(X != 0) rounds on average, where r_H = floor(c L_H) + 1.
- 5.6. With M <= (u N/L)^(1/p), a trimmed mean is too high by at most sqrt(2) w + w/3 + (1 + 2 sqrt 2)^(2 q) w <= 5.58 w.
- 22. A finite index needs N > c L > 12, so 1/(N - 1) <= 13/(12 N). Then the index exceeds the trimmed mean by at most
  (sqrt 2 + 4 sqrt(13/12) + 10) w, which with 5.6 makes 21.2 w. (With 1/(N - 1) <= 2/N, as in the paper, it is 22.7,
  and with 3/(2 N), 21.9.) So an arm with a gap above 22 w is pulled only if something with a small probability has happened.
- 6. These probabilities are at most 6/tau^3 for each N, thus 6 (tau - 1)/tau^3 in all: over all rounds, below 2.7.
- 88. Arms with gaps up to D cost 2 D H at most; the others 2 K L_H 22^(1/q) (u/D)^(1/eps), besides a round each for rounding up
  (hence 7). The best D gives 44 (1 + eps) eps^(-q) (K L_H)^q (u H)^(1/p), and (1 + eps) eps^(-q) grows with eps up to 2.
- An odd horizon adds one pull, at most 2 u^(1/p).

So the constants follow from what is given, on paper; no machine has checked the proof. All of it needs
truncated non-positivity of the best arm, which these functions do not ask for: ``problem.assumption()`` does.
"""

from __future__ import annotations

import math

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats
from robandit.policies.adar.adar_ucb import C
from robandit.problems import Problem
from robandit.theory.given import order, whole

__all__ = ["printed_instance", "printed_worst_case", "repaired_instance", "repaired_worst_case"]


def printed_instance(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 7 as printed: the sum of ``(120 (u/gap)^(1/eps) + 24 gap / P(X != 0)) log(T/2) + 20 gap`` over the worse arms.

    Draw it under the label "as printed, proof gap at (robust3)": a step of its proof needs 20^((1+eps)/eps) where it has 20, and
    regret can exceed it by half. For eps = 1 and small gaps the index of an arm costs up to ``6 (10/sqrt c + sqrt 2)^2 = 185``
    in place of 120.

    Parameters
    ----------
    problem
        Its gaps, E|X|^(1+eps) and P(X != 0) enter.
    horizon
        T, from 2, a round, to 2^53.
    eps
        In (0, 1], below the tail index minus 1.

    Examples
    --------
    >>> from robandit.problems import gaussian
    >>> from robandit.theory.adar_bounds import printed_instance
    >>> printed_instance(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    2451.6
    """
    known = _Known(problem, horizon, eps)
    log = math.log(horizon / 2.0)
    with np.errstate(over="ignore"):
        explored = 120.0 * np.float_power(known.u / known.gaps, 1.0 / known.eps) * log
    return _total(explored) + known.printed_forced(log)


def printed_worst_case(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 8 as printed: ``46 (K log(T/2))^(eps/(1+eps)) (u T)^(1/(1+eps))`` plus the terms of Theorem 7 without 120.

    The same gap in the proof concerns it. Parameters as in `printed_instance`.

    >>> from robandit.problems import gaussian
    >>> printed_worst_case(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    39726.8
    """
    known = _Known(problem, horizon, eps)
    log = math.log(horizon / 2.0)
    main = 46.0 * (problem.arms * log) ** known.q * (known.u * horizon) ** (1.0 / known.p)
    return float(main + known.printed_forced(log))


def repaired_instance(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 7 with the constants that its proof gives, and the guard c of the implementation.

    ``2 sum gap [ceil(L_H (22 u^(1/p) / gap)^(1/q)) + min(H, r_H / P(X != 0)) + 6]``, and ``2 u^(1/p)`` more for an odd T, where H =
    floor(T/2), L_H = 3 log H, p = 1 + eps, q = eps / (1 + eps), r_H = floor(c L_H) + 1. Parameters as in `printed_instance`;
    what is proved and what is not stands at the top of the module.

    >>> from robandit.problems import gaussian
    >>> repaired_instance(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    53830.0
    """
    known = _Known(problem, horizon, eps)
    with np.errstate(over="ignore"):
        explored = np.ceil(known.level * np.float_power(22.0 * known.size / known.gaps, 1.0 / known.q))
        return 2.0 * _total(known.gaps * (explored + known.forced() + 6.0)) + known.leftover


def repaired_worst_case(problem: Problem, horizon: int, eps: float) -> float:
    """Theorem 8 with the constants that its proof gives, and the guard c of the implementation.

    ``88 (K L_H)^q (u H)^(1/p) + 2 sum gap [min(H, r_H / P(X != 0)) + 7]``, and ``2 u^(1/p)`` more for an odd T; names as in
    `repaired_instance`.

    >>> from robandit.problems import gaussian
    >>> repaired_worst_case(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    92852.8
    """
    known = _Known(problem, horizon, eps)
    main = 88.0 * (problem.arms * known.level) ** known.q * (known.u * known.rounds) ** (1.0 / known.p)
    return float(main + 2.0 * _total(known.gaps * (known.forced() + 7.0)) + known.leftover)


class _Known:
    """What a bound is made of."""

    def __init__(self, problem: Problem, horizon: int, eps: float) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInput(f"problem is {problem!r}: it is not a problem; make one with Problem(laws)")
        horizon = whole(horizon, "horizon", 2)
        self.eps = order(eps)
        self.u = problem.u(self.eps)
        if not math.isfinite(self.u):
            raise InvalidInput(
                f"eps is {self.eps}, and an arm has an infinite E|X|^{1.0 + self.eps:g}: the bound says nothing; "
                f"take eps below {problem.tail_index - 1.0:g}, the tail index minus 1"
            )
        self.p = 1.0 + self.eps
        self.q = self.eps / self.p
        self.size = self.u ** (1.0 / self.p)
        worse = problem.gaps > 0.0
        self.gaps = problem.gaps[worse]
        self.nonzero = np.array([law.nonzero_probability for law in problem.laws])[worse]
        self.rounds = horizon // 2
        self.level = 3.0 * math.log(self.rounds)
        self.leftover = 2.0 * self.size if horizon % 2 else 0.0

    def forced(self) -> Floats:
        """Rounds of forced exploration, for each worse arm; an arm that is always 0 is explored for ever."""
        with np.errstate(divide="ignore"):
            return np.minimum(self.rounds, (math.floor(C * self.level) + 1) / self.nonzero)

    def printed_forced(self, log: float) -> float:
        """The terms that the two printed bounds share."""
        if log == 0.0:
            return _total(20.0 * self.gaps)
        with np.errstate(divide="ignore"):
            return _total(24.0 * self.gaps / self.nonzero * log + 20.0 * self.gaps)


def _total(terms: Floats) -> float:
    return float(np.sum(terms))

"""Regret bounds of AdaKL-UCB with the proved schedule and no centre: our own theorem, with its constants.

docs/explanation/adakl-theorem.md has the proof. The names here are those of the page: R rounds of g pulls, L = 3 log R,
p = 1 + eps, q = eps / (1 + eps), and for each worse arm u = E|X|^p and

    A = L (B u^(1/p) / gap)^(1/q),   B = 2.7 * 3.2^q + 9.6^q <= 7.93.

A worse arm is pulled at most 2 A + 5 g/4 times in expectation. The bounds need truncated non-positivity of the best arm. These
functions do not check it, but ``problem.assumption()`` does. The constants are derived by hand; `robandit verify adakl-theorem`
and its three lemmas check every step by experiment.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from robandit.kernel.types import Floats
from robandit.problems import Problem
from robandit.theory.bound import check_problem, power, total
from robandit.validation import choice, integer, invalid, order

Pulls = Literal["single", "double"]

SPREAD = 2.7  # factor of all terms of the index that depend on the threshold
BASE = 3.2  # M <= (u n' / (3.2 L))^(1/p), except with probability exp(-5 L/6)
TAIL = 9.6  # P(|X| > M) <= 9.6 L / n', except with probability exp(-5 L/6)
EXTRA = 1.25  # the first round of an arm, and the rounds after an event of small probability (below 0.2201 in total)


def width_constant(eps: float) -> float:
    """Return B: an index exceeds the mean of its arm by at most ``B u^(1/p) (L/n)^q``, except with a small probability."""
    q = eps / (1.0 + eps)
    return float(SPREAD * BASE**q + TAIL**q)


def adakl_instance(problem: Problem, horizon: int, eps: float, pulls: Pulls = "single") -> float:
    """Return the instance-dependent bound: the sum of ``gap (2 A + 5 g/4)`` over the worse arms, each with its own u.

    Parameters
    ----------
    problem
        The bound uses its gaps and each arm's E|X|^(1+eps).
    horizon, eps
        The horizon T, from 2 to 2^53, and an order in (0, 1] below the tail index minus 1.
    pulls
        The policy's parameter. ``"single"``: R = T rounds of g = 1 pull. ``"double"``: R = ceil(T/2) rounds of g = 2 pulls.

    Examples
    --------
    >>> from robandit.problems import gaussian
    >>> from robandit.theory.adakl_bounds import adakl_instance
    >>> adakl_instance(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    7471.4
    """
    terms = _Terms(problem, horizon, eps, pulls)
    needed = terms.level * power(terms.constant * terms.sizes / terms.gaps, 1.0 / terms.q)
    with np.errstate(over="ignore"):
        return total(terms.gaps * (2.0 * needed + EXTRA * terms.per_round))


def adakl_worst_case(problem: Problem, horizon: int, eps: float, pulls: Pulls = "single") -> float:
    """Return the worst-case bound ``B u^(1/p) (2 W L)^q (g R)^(1/p) + 5 g/4 sum gap`` for W worse arms, with their largest u.

    The parameters are those of `adakl_instance`.

    >>> from robandit.problems import gaussian
    >>> adakl_worst_case(gaussian([0.0, -1.0]), horizon=20_000, eps=1.0)
    12224.3
    """
    terms = _Terms(problem, horizon, eps, pulls)
    if not len(terms.gaps):
        return 0.0
    share = (2.0 * len(terms.gaps) * terms.level) ** terms.q
    main = terms.constant * float(terms.sizes.max()) * share * (terms.per_round * terms.rounds) ** (1.0 - terms.q)
    return float(main + EXTRA * terms.per_round * total(terms.gaps))


class _Terms:
    """The terms of both bounds."""

    def __init__(self, problem: Problem, horizon: int, eps: float, pulls: Pulls) -> None:
        check_problem(problem)
        horizon = integer(horizon, "horizon", 2)
        eps = order(eps)
        self.per_round = {"single": 1, "double": 2}[choice(pulls, "pulls", ("single", "double"))]
        self.rounds = -(-horizon // self.per_round)
        self.level = 3.0 * math.log(self.rounds)
        self.q = eps / (1.0 + eps)
        self.constant = width_constant(eps)
        worse = problem.gaps > 0.0
        self.gaps: Floats = problem.gaps[worse]
        moments = np.array([law.absolute_moment(1.0 + eps) for law in problem.laws])[worse]
        if not np.all(np.isfinite(moments)):
            limit = f"{problem.tail_index - 1.0:g}, the tail index minus 1"
            raise invalid("eps", eps, f"below {limit}", hint=f"a worse arm has an infinite E|X|^{1.0 + eps:g}")
        self.sizes: Floats = moments ** (1.0 - self.q)

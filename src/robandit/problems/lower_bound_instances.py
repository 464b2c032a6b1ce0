"""The instances behind the three lower bounds of the AdaR-UCB paper.

Each law puts a small mass on one far value and the rest on 0: ``Bernoulli(mass) * value``. The two problems of a pair differ
in one arm and have different best arms. An algorithm must pull that arm often to distinguish them.
"""

from __future__ import annotations

import math

from robandit.errors import InvalidInput, formatted
from robandit.hints import guided
from robandit.laws import Bernoulli, Constant, Law
from robandit.problems.problem import Problem
from robandit.validation import MOST_ITEMS, integer, invalid, order, positive, within


def _rare(mass: float, value: float, arm: str) -> Law:
    """Return the law of ``value`` with probability ``mass``, else exactly 0."""
    if mass > 1.0:
        raise InvalidInput(f"{arm} would need the mass {mass}, above 1; take a smaller delta")
    if not (mass > 0.0 and math.isfinite(value)):
        raise InvalidInput(f"{arm} would have the mass {mass} at {value}, beyond a double; take a larger delta or eps")
    return Bernoulli(mass) * value


def _far(u: float, mean: float, eps: float) -> float:
    """Return ``(u/mean)^(1/eps)``, the value that carries the mass."""
    try:
        value = float((u / mean) ** (1.0 / eps))
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if not 0.0 < value < math.inf:
        far = f"u = {u} with a mean of size {mean} and eps = {eps} puts mass at {value}, beyond a double"
        raise InvalidInput(f"{far}; take a larger eps, or a u and a delta that are closer")
    return value


@guided
def u_adaptive_pair(u: float, u_alternative: float, delta: float, eps: float) -> tuple[Problem, Problem]:
    """Return two problems that show the price of not knowing u (Theorem 2).

    In both, arm 1 has mean ``delta`` and E|X|^(1+eps) = u: mass ``delta^(1+1/eps) u^(-1/eps)`` at ``(u/delta)^(1/eps)``. Arm 0 is
    always 0 in the first problem. In the second it has the same form with ``u_alternative`` and mean ``2 delta``, and is the best
    arm. Requires delta^(1+eps) <= u, (2 delta)^(1+eps) <= u_alternative and u <= u_alternative.

    >>> first, second = u_adaptive_pair(u=1.0, u_alternative=100.0, delta=0.1, eps=1.0)
    >>> first.means.tolist(), second.means.tolist()
    ([0.0, 0.1], [0.2, 0.1])
    >>> first.u(1.0), second.u(1.0)
    (1.0, 100.0)
    """
    u = positive(u, "u")
    u_alternative = positive(u_alternative, "u_alternative")
    delta = positive(delta, "delta")
    eps = order(eps)
    if u_alternative < u:
        raise invalid("u_alternative", u_alternative, f"at least u = {u}", hint="exchange the two")

    def law(bound: float, mean: float, arm: str) -> Law:
        value = _far(bound, mean, eps)
        return _rare(mean / value, value, arm)

    common = law(u, delta, "arm 1")
    other = law(u_alternative, 2.0 * delta, "arm 0 of the alternative")
    return Problem([Constant(0.0), common]), Problem([other, common])


@guided
def eps_adaptive_pair(delta: float, eps: float = 1.0, eps_alternative: float = 1.0 / 3.0) -> tuple[Problem, Problem]:
    """Return two problems that show the price of not knowing eps (Theorem 3). Moments of order 1+eps are at most u = 1.

    In both, arm 1 has mean ``delta``: mass ``gamma^(1+eps) - delta gamma`` at ``1/gamma`` with gamma = (2 delta)^(1/eps), so that
    E|X|^(1+eps) = 1/2. Arm 0 is always 0 in the first problem. In the second it has mean ``2 delta``: mass ``gamma'^(1+eps')`` at
    ``1/gamma'`` with gamma' = (2 delta)^(1/eps'), so that E|X|^(1+eps') = 1. Requires 2 delta <= 1 and eps' < eps.

    >>> first, second = eps_adaptive_pair(delta=0.25)
    >>> first.means.tolist(), second.means.tolist()
    ([0.0, 0.25], [0.5, 0.25])
    >>> first.u(1.0), second.u(1 / 3)
    (0.5, 1.0)
    """
    delta = within(delta, "delta", 0.0, 0.5, open_low=True, hint="a larger delta needs a probability above 1")
    eps = order(eps)
    eps_alternative = order(eps_alternative, "eps_alternative")
    if eps_alternative >= eps:
        raise invalid("eps_alternative", eps_alternative, f"below eps = {eps}", hint="exchange the two")
    gamma = (2.0 * delta) ** (1.0 / eps)
    gamma_alternative = (2.0 * delta) ** (1.0 / eps_alternative)
    if gamma_alternative < 1e-300:
        rule = f"large enough that (2 delta)^(1/eps_alternative) >= 1e-300 (delta = {delta})"
        raise invalid("eps_alternative", eps_alternative, rule, hint="or take a larger delta")
    # gamma^(1+eps) - delta gamma = delta gamma, since gamma^eps = 2 delta
    common = _rare(delta * gamma, 1.0 / gamma, "arm 1")
    other = _rare(2.0 * delta * gamma_alternative, 1.0 / gamma_alternative, "arm 0 of the alternative")
    return Problem([Constant(0.0), common]), Problem([other, common])


@guided
def hard_gap(arms: int, eps: float, u: float, horizon: int) -> float:
    """Return the Delta at which Theorem 4's family is hardest: ``((K-1) u^(1/eps) / (T log 3))^(eps/(1+eps)) / 2``.

    >>> hard_gap(arms=2, eps=1.0, u=1.0, horizon=10_000)
    0.0047703
    """
    arms = integer(arms, "arms", 2)
    eps = order(eps)
    u = positive(u, "u")
    share = (arms - 1) / (integer(horizon, "horizon", 1) * math.log(3.0))
    return float(0.5 * share ** (eps / (1.0 + eps)) * u ** (1.0 / (1.0 + eps)))


@guided
def lower_bound_family(
    arms: int, eps: float, u: float, horizon: int | None = None, delta: float | None = None, best: int | None = None
) -> Problem:
    """Return a problem that is hard even under the assumption (Theorem 4), with rewards 0 or ``-(u/delta)^(1/eps)``.

    Arm 0 has mean ``-2 delta/3``, and the others ``-delta``. If ``best`` is one of the others, it has mean ``-delta/3`` and is the
    best arm. Pass the horizon for the hardest delta (``hard_gap``), or delta itself. E|X|^(1+eps) is u for arms with mean -delta
    and less for the others. P(X != 0) is tiny, so most of AdaR-UCB's regret is forced exploration. Requires delta^(1+eps) <= u.

    >>> problem = lower_bound_family(arms=3, eps=1.0, u=1.0, delta=0.3, best=2)
    >>> problem.means.tolist(), problem.u(1.0)
    ([-0.2, -0.3, -0.1], 1.0)
    """
    arms = integer(arms, "arms", 2, MOST_ITEMS)
    eps = order(eps)
    u = positive(u, "u")
    if (horizon is None) == (delta is None):
        raise InvalidInput(
            f"horizon = {formatted(horizon)} and delta = {formatted(delta)}: pass exactly one of the two"
        )
    gap = hard_gap(arms, eps, u, horizon) if horizon is not None else positive(delta, "delta")
    best_arm = 0 if best is None else integer(best, "best", 0, arms - 1)
    value = _far(u, gap, eps)
    shares = [2.0 / 3.0] + [1.0] * (arms - 1)
    if best_arm > 0:
        shares[best_arm] = 1.0 / 3.0
    return Problem([_rare(share * gap / value, -value, f"arm {i}") for i, share in enumerate(shares)])

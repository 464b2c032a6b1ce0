"""The AdaR-UCB paper's lower bounds on regret (Theorems 1 to 4), with their constants."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robandit.problems import Problem, eps_adaptive_pair, hard_gap, u_adaptive_pair
from robandit.validation import LARGEST_INTEGER, integer, invalid, order, positive

CURVATURE = 2.0 * math.log(2.0)
"""The constant c of the proofs, with log(1/(1-q)) <= c q for q <= 1/2: the left side is convex, and they are equal at 1/2."""


def minimax_lower_bound(horizon: int, arms: int, *, eps: float, u: float) -> float:
    """Return a lower bound on the worst-case regret of every algorithm, even of one that knows eps and u, if E|X|^(1+eps) <= u.

    The proof's rewards are never positive, so the bound holds with the paper's assumption (Theorem 4) and without it (Theorem 1).
    The problems are those of `robandit.problems.lower_bound_family` at the gap of `robandit.problems.hard_gap`.

    Parameters
    ----------
    horizon, arms
        Numbers of pulls, T, and arms, K >= 2.
    eps, u
        Order of the moments minus 1, in (0, 1], and their bound.

    Returns
    -------
    float
        ``Delta T / 24 * exp(-2^(-(1+eps)/eps))`` with Delta = `hard_gap`, which is
        ``minimax_constant(arms=K, eps=eps) * K^(eps/(1+eps)) * (u T)^(1/(1+eps))``.

    Guarantee
    ---------
    Let P be the base problem, and i the arm among 1..K-1 that the algorithm pulls least on P. Then E_P[N_i] <= T/(K-1). Let Q be
    the problem with best arm i. On P every pull of an arm other than 0 costs Delta/3; on Q every pull of arm 0 does. So

        R(P) + R(Q) >= Delta T/6 (P(N_0 <= T/2) + Q(N_0 > T/2)) >= Delta T/12 exp(-E_P[N_i] KL),

    by the inequality of Bretagnolle and Huber. The laws of arm i have KL <= log(3) Delta^(1+1/eps) u^(-1/eps). At the hard gap
    the exponent is at most 2^(-(1+eps)/eps), and the larger of the two regrets is at least half of the sum. The paper omits the
    inequality's 1/2, so its bound is twice as large. The construction needs Delta^(1+eps) <= u, which is equivalent to
    K - 1 <= 2^((1+eps)/eps) log(3) T.

    Examples
    --------
    >>> minimax_lower_bound(10_000, 2, eps=1.0, u=1.0)
    1.5480

    References
    ----------
    G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (eps, u)-adaptive regret minimization in heavy-tailed bandits. COLT 2024,
    Theorem 4. S. Bubeck, N. Cesa-Bianchi, G. Lugosi. Bandits with heavy tail. IEEE Transactions on Information Theory, 2013.
    """
    horizon, arms = integer(horizon, "horizon", 1), integer(arms, "arms", 2)
    eps, u = order(eps), positive(u, "u")
    gap = hard_gap(arms, eps, u, horizon)
    # This is equivalent to gap^(1+eps) > u, which would overflow for extreme u.
    if arms - 1 > 2.0 ** min(1.0 / _share(eps), 1000.0) * math.log(3.0) * horizon:
        hint = "their hard problems need a probability above 1"
        raise invalid("horizon", horizon, f"longer for {arms} arms", hint=hint)
    return gap * horizon / 24.0 * math.exp(-(2.0 ** (-1.0 / _share(eps))))


def minimax_constant(*, arms: int = 2, eps: float = 1.0) -> float:
    """Return the c in ``minimax_lower_bound = c K^(eps/(1+eps)) (uT)^(1/(1+eps))``.

    It is ``((K-1)/(K log 3))^(eps/(1+eps)) exp(-2^(-(1+eps)/eps)) / 48`` for K = ``arms`` >= 2 and ``eps`` in (0, 1]. It increases
    with K. For two arms it decreases with eps, since 1/log(3) < 1. The defaults give the smallest value.

    >>> minimax_constant()
    0.010946
    """
    arms = integer(arms, "arms", 2)
    # At T = K and u = 1 the powers of K and T multiply to K.
    return minimax_lower_bound(arms, arms, eps=eps, u=1.0) / arms


@dataclass(frozen=True)
class PairBound:
    """Two problems that an algorithm cannot distinguish in time, and a lower bound on the cost.

    Regret is divided by the rate of an algorithm that knows the moments. This gives the normalised regrets R/(uT)^(1/(1+eps)) on
    the first problem and R/(u'T)^(1/(1+eps')) on the second. An algorithm that adapts at no cost would keep both below a constant.
    """

    horizon: int
    value: float
    """Lower bound on the larger normalised regret of every algorithm: ``constant`` times a power of u'/u or T."""
    constant: float
    exponent: float
    """The exponent of u'/u (Theorem 2) or of T (Theorem 3)."""
    delta: float
    """The gap between the arms that the proof chooses."""
    mass: float
    """Probability that arm 0 pays in the second problem; in the first problem it never pays."""
    orders: tuple[float, float]
    """The orders minus 1 of the two problems' moments, eps and eps'."""
    moments: tuple[float, float]
    """The bounds on these moments, u and u'."""

    def problems(self) -> tuple[Problem, Problem]:
        """Return the pair at ``delta``: the better arm is 1 in the first and 0 in the second."""
        (eps, eps_alternative), (u, u_alternative) = self.orders, self.moments
        if eps != eps_alternative:
            return eps_adaptive_pair(self.delta, eps, eps_alternative)
        return u_adaptive_pair(u, u_alternative, self.delta, eps)

    @property
    def scales(self) -> tuple[float, float]:
        """The rates that divide the regrets on the two problems."""
        (u, v), (p, q) = self.moments, (1.0 / (1.0 + eps) for eps in self.orders)
        return (u * self.horizon) ** p, (v * self.horizon) ** q

    def optimum(self) -> float:
        """Return the larger normalised regret of the best algorithm for this pair, exactly.

        Only a non-zero reward of arm 0 distinguishes the problems. Until then an algorithm only chooses the number x of pulls of
        arm 0, and it is best to make them at the start. They cost delta x on the first problem and delta (T-x) (1-mass)^x on the
        second. The second cost is convex in x, so the optimum mixes two neighbouring x.

        >>> bound = lower_bound_u_adaptive(10_000, eps=1.0, u=1.0, u_alternative=100.0)
        >>> bound.optimum() / bound.value
        2.801
        """

        def costs(pulls: int) -> tuple[float, float]:
            blind = (self.horizon - pulls) * math.exp(pulls * math.log1p(-self.mass))
            return self.delta * pulls / self.scales[0], self.delta * blind / self.scales[1]

        low, high = 0, self.horizon  # the second cost is the larger one at low, but not at high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if costs(middle)[0] < costs(middle)[1] else (low, middle)
        (a, b), (c, d) = costs(low), costs(high)
        return a + (c - a) * (b - a) / ((b - a) + (c - d))


def lower_bound_u_adaptive(horizon: int, *, eps: float, u: float, u_alternative: float) -> PairBound:
    """Return the cost of not knowing u (Theorem 2), a factor of (u'/u)^(eps/(1+eps)^2) on one of two problems.

    Parameters
    ----------
    horizon
        Number of pulls, T.
    eps, u, u_alternative
        Order of the moments minus 1, in (0, 1], and their bounds in the two problems, u <= u'.

    Returns
    -------
    PairBound
        ``value = (1+eps) (4/(e log 2))^(eps/(1+eps)) / 32 * (u'/u)^(eps/(1+eps)^2)``.

    Guarantee
    ---------
    The bound holds for every algorithm. Let x = E[N_0] on the first problem, where R = Delta x. By the inequality of Bretagnolle
    and Huber the larger of the two normalised regrets is also at least (u'T)^(-1/(1+eps)) (Delta T/8) exp(-x KL). Here
    KL = log(1/(1-q)) <= 2 log(2) q for q = (2 Delta)^(1+1/eps) u'^(-1/eps) <= 1/2. So the larger regret is at least half of the
    sum of the two bounds; ``delta`` maximises the minimum of that sum over x.

    The first problem exists only if Delta^(1+eps) <= u, which needs T >= C (u'/u)^((1+2 eps)/(eps (1+eps))). The paper lets u'
    grow at a fixed T, but then regret cannot be infinite: it is at most 2 T u^(1/(1+eps)).

    Examples
    --------
    >>> bound = lower_bound_u_adaptive(10_000, eps=1.0, u=1.0, u_alternative=100.0)
    >>> bound.value, bound.exponent, bound.delta
    (0.28797, 0.25, 0.6262)

    References
    ----------
    G. Genalti et al. (eps, u)-adaptive regret minimization in heavy-tailed bandits. COLT 2024, Theorem 2.
    """
    horizon = integer(horizon, "horizon", 1)
    eps, u, u_alternative = order(eps), positive(u, "u"), positive(u_alternative, "u_alternative")
    if u_alternative < u:
        raise invalid("u_alternative", u_alternative, f"at least u = {u}", hint="exchange the two")
    share, ratio = _share(eps), u_alternative / u
    if ratio == math.inf:
        raise invalid("u_alternative", u_alternative, f"closer to u = {u}", hint="their ratio overflows")
    # The derivative by the gap is 0 at q T = 8 e^eps/c (u'/u)^(1/(1+eps)).
    mass = 8.0 * math.exp(eps) / CURVATURE * ratio ** (1.0 - share) / horizon
    relative = 0.5 * mass**share * ratio ** (1.0 - share)  # the gap over u^(1/(1+eps))
    if mass > 0.5 or relative > 1.0:
        log_shortest = math.log(horizon) + max(math.log(2.0 * mass), math.log(relative) / share)
        if log_shortest < math.log(LARGEST_INTEGER):
            shortest = math.ceil(max(2.0 * mass, relative ** (1.0 / share)) * horizon)
            hint = f"take at least {shortest} pulls, or a u_alternative closer to u"
        else:
            hint = "take a u_alternative closer to u; these two need more than 2^53 pulls"
        rule = f"longer for u_alternative/u = {ratio:g} at eps = {eps:g}, so that the two problems exist"
        raise invalid("horizon", horizon, rule, hint=hint)
    constant = (1.0 + eps) * (4.0 / (math.e * math.log(2.0))) ** share / 32.0
    exponent = eps / (1.0 + eps) ** 2
    value, delta = constant * ratio**exponent, relative * u ** (1.0 - share)
    return PairBound(horizon, value, constant, exponent, delta, mass, (eps, eps), (u, u_alternative))


def lower_bound_eps_adaptive(horizon: int, *, eps: float = 1.0, eps_alternative: float = 1.0 / 3.0) -> PairBound:
    """Return the cost of not knowing eps (Theorem 3), a factor of T^(eps'(eps-eps')/((1+eps)(1+eps')^2)) on one of two problems.

    All moments are at most u = 1. The default orders give the largest exponent, 1/16.

    Parameters
    ----------
    horizon
        Number of pulls, T.
    eps, eps_alternative
        Orders of the moments minus 1 in the two problems, 0 < eps' < eps <= 1.

    Returns
    -------
    PairBound
        ``value = (4/log 2)^(eps'/(1+eps')) / 32 * T^exponent``. The constant is above 1/32 for all orders.

    Guarantee
    ---------
    The bound holds for every algorithm. The proof is that of `lower_bound_u_adaptive` with q = (2 Delta)^(1+1/eps') <= 1/2. At
    the proof's gap the sum is smallest at x = 0. A gap with e^eps' in place of 1 would gain at most 21 %.

    Examples
    --------
    >>> bound = lower_bound_eps_adaptive(10_000)
    >>> bound.value, bound.exponent, bound.delta
    (0.08613, 0.0625, 0.1378)

    References
    ----------
    G. Genalti et al. (eps, u)-adaptive regret minimization in heavy-tailed bandits. COLT 2024, Theorem 3.
    """
    horizon = integer(horizon, "horizon", 1)
    eps, eps_alternative = order(eps), order(eps_alternative, "eps_alternative")
    if eps_alternative >= eps:
        raise invalid("eps_alternative", eps_alternative, f"below eps = {eps}", hint="exchange the two")
    share = _share(eps_alternative)
    power = 1.0 / (1.0 + eps) + share
    mass = 8.0 / CURVATURE * float(horizon) ** -power
    if mass > 0.5:
        shortest = math.ceil((16.0 / CURVATURE) ** (1.0 / power))
        raise invalid("horizon", horizon, f"at least {shortest}", hint="below that the two problems do not exist")
    constant = (4.0 / math.log(2.0)) ** share / 32.0
    exponent = eps_alternative * (eps - eps_alternative) / ((1.0 + eps) * (1.0 + eps_alternative) ** 2)
    value, delta = constant * float(horizon) ** exponent, 0.5 * mass**share
    return PairBound(horizon, value, constant, exponent, delta, mass, (eps, eps_alternative), (1.0, 1.0))


def _share(eps: float) -> float:
    return eps / (1.0 + eps)

"""Bounds of policies that pull the arm with the largest estimate plus width.

**Robust UCB.** The bound is derived here. (We did not have the source, Bubeck, Cesa-Bianchi and Lugosi 2013; the rates are theirs.)
At pull t an arm with n rewards has the width W (l(t)/n)^q, with q = eps/(1+eps) and p = 1/(1+eps). For each n, the error of an
estimate exceeds the width with probability at most t^-2 on either side:

- truncated: W = 4 u^p, l = 2 log t. In units of u^p (l/n)^q, Bernstein's inequality with raw second moments gives sqrt 2 + 1/3,
  and the bias is at most 1 + eps (1 with a common threshold). The sum is below 4.
- catoni: W = sqrt v, l = 8 log t, q = 1/2. With d = 2 log t, the error is at most Catoni's sqrt(2 v d / (n - 2 d)) if n >= 4 d.
  Until then the arm is forced, for ``least`` = 8 log T pulls.
- median_of_means: W = (12 v)^p, l = 2 + 32 log t. There are at least 8 log(t^2) blocks. The median is off only if half of them
  are, and each is off with probability at most 1/4. This needs n >= l, but the policy does not wait for it: see `few_rewards`.

Let A = l(T) (2 W / gap)^(1/q). A worse arm with n rewards is pulled at t > K only if the best arm's index is too low, its own
estimate is too high, or n < A. Over all n, each of the first two events has a probability of at most (t-1) t^-2 < 1/t. The sum
over all t is below log(T/K). The first event costs at most the largest gap, whichever arm is pulled. So

    regret <= sum gap (max(A, least) + 1 + log(T/K)) + max gap (log(T/K) + missed).

In the worst case, let P be the number of pulls of an arm with n < A. Then gap P = (gap P^q) P^p <= 2 W l(T)^q P^p. By Jensen's
inequality the sum over K - 1 arms is at most 2 W ((K-1) l(T))^q T^p. The other terms stay, with ``least`` in place of the maximum.

**UCB1.** The bound is Theorem 1 of Auer et al., times the square of the scale. The worst case follows in the same way. **UCB-V.**
Audibert et al. state the constant 10 for zeta = 1.2 and c = 1 (not checked against the paper).

**R-UCB** (Ashutosh et al. 2021). The theorems say "for T large enough". Let m be the number of pulls in the bound. The proofs need
that (1) the confidence bound holds at all pulls from m to T, and (2) no smaller T gives a larger m. (Before pull m there are at
most m pulls anyway.) Both are checked. If m >= T, the bound is true but says nothing.
"""

from __future__ import annotations

import math

import numpy as np

from robandit.policies.r_ucb.growth import decay, decay_number, growth, growth_kind
from robandit.theory.bound import Bound, BoundSet, Case, Kind, power, sub_gaussian, total

BUBECK = "Bubeck, Cesa-Bianchi, Lugosi 2013"
ASHUTOSH = "Ashutosh, Nair, Kagrecha, Jagannathan 2021"
RATIO = 1.25  # in `few_rewards`, the last pull of a block over the first


def robust_ucb(case: Case) -> BoundSet:
    """Return the bound of the module's docstring for the policy's estimator."""
    policy, problem, log = case.policy, case.problem, case.log
    if policy.estimator == "catoni":
        if case.requested_eps not in (None, 1.0):
            rule = "must be 1, since Catoni's estimator uses the variance; omit it"
            raise case.error(f"eps = {case.requested_eps:g} {rule}")
        v = float(policy.v)
        source = f"{BUBECK}, Catoni's estimator"
        return BoundSet(_optimistic(case, 1.0, math.sqrt(v), 8.0 * log, 8.0 * log, source), 1.0, v, problem.v(1.0))
    eps = float(policy.eps)
    p = 1.0 / (1.0 + eps)
    if policy.estimator == "truncated":
        u = float(policy.u)
        bounds = _optimistic(case, eps, 4.0 * u**p, 2.0 * log, 0.0, f"{BUBECK}, truncated mean")
        return BoundSet(bounds, eps, u, problem.u(eps))
    v, level = float(policy.v), 2.0 + 32.0 * log
    missed = few_rewards(problem.arms, case.horizon, eps)
    note = (
        f"includes {missed:.3g} pulls, growing faster than log T, for a best arm with fewer than 2 + 32 log t rewards"
    )
    bounds = _optimistic(case, eps, (12.0 * v) ** p, level, level, f"{BUBECK}, median of means", missed, note)
    return BoundSet(bounds, eps, v, problem.v(eps))


def _optimistic(
    case: Case, eps: float, width: float, level: float, least: float, source: str, missed: float = 0.0, note: str = ""
) -> tuple[Bound, ...]:
    """Return both bounds for the width ``width (level / n)^q``; see the module's docstring."""
    gaps, arms = case.gaps, case.problem.arms
    q, p = eps / (1.0 + eps), 1.0 / (1.0 + eps)
    failing = max(math.log(case.horizon / arms), 0.0)
    extra = max(gaps, default=0.0) * (failing + missed)
    needed = level * power(2.0 * width / gaps, 1.0 / q)
    instance = total(gaps * (np.maximum(needed, least) + 1.0 + failing)) + extra
    main = 2.0 * width * ((arms - 1) * level) ** q * case.horizon**p
    worst = main + total(gaps * (least + 1.0 + failing)) + extra
    values: tuple[tuple[Kind, float], ...] = (("instance", instance), ("worst-case", worst))
    return tuple(Bound(kind, float(value), source, "derived", note) for kind, value in values)


def few_rewards(arms: int, horizon: int, eps: float) -> float:
    """Bound the expected pulls at which the median of means of a best arm with fewer than 2 + 32 log t rewards is too low.

    With n < l = 2 + 32 log t rewards there are k = max(1, floor(n/2)) blocks of N = 1, 2 or 3 rewards. A block is low if its mean
    is below the true mean by at least the width (12 v)^p (l/n)^q. By the inequality of von Bahr and Esseen this has a probability
    of at most C N^-eps (n/l)^eps / 12, with C = 1 for N = 1 and C = 2 otherwise. The median is low only if half of the blocks are.
    These probabilities are summed over n and t, with pulls a to 1.25 a counted as if t were a. The term for n = 1 is of order
    (log t)^-eps, so the sum outgrows every power of log T. A logarithmic rate needs 2 + 32 log T rewards of each arm at the start.
    """
    from scipy.special import betainc  # scipy.stats.binom has the same values, and takes 0.8 s to import

    expected, first = 0.0, arms + 1
    while first <= horizon:
        last = min(int(first * RATIO), horizon)
        n = np.arange(1.0, min(last - 1, math.floor(2.0 + 32.0 * math.log(last))) + 1.0)
        blocks = np.maximum(np.floor(0.5 * n), 1.0)
        size = np.floor(n / blocks)
        off = np.where(n == 1.0, 1.0, 2.0) / 12.0 * (n / size / (2.0 + 32.0 * math.log(first))) ** eps
        half = np.ceil(0.5 * blocks)
        chances = betainc(half, blocks - half + 1.0, np.minimum(off, 1.0))  # of half of the blocks or more
        expected += (last - first + 1) * min(total(chances), 1.0)
        first = last + 1
    return expected


def ucb1(case: Case) -> BoundSet:
    """Return the sum of 8 scale^2 log T / gap + (1 + pi^2/3) gap, for rewards in an interval of length ``scale``."""
    gaps, scale = case.gaps, float(case.policy.scale)
    rest = (1.0 + math.pi**2 / 3.0) * total(gaps)
    instance = 8.0 * scale**2 * case.log * total(1.0 / gaps) + rest
    worst = scale * math.sqrt(8.0 * (case.problem.arms - 1) * case.horizon * case.log) + rest
    source = "Auer, Cesa-Bianchi, Fischer 2002, Theorem 1"
    return BoundSet((Bound("instance", instance, source, "proved"), Bound("worst-case", worst, source, "derived")))


def ucb_v(case: Case) -> BoundSet:
    """Return the sum of 10 (variance/gap + 2 range) log T, for zeta = 1.2 and c = 1."""
    policy = case.policy
    if policy.range == "observed":
        raise case.error("nothing is proved for an observed range; pass range=...")
    if (policy.zeta, policy.c) != (1.2, 1.0):
        others = f"{policy.zeta:g} and {policy.c:g}; for the rate see theory.rate(policy)"
        raise case.error(f"the bound's constant is known only for zeta = 1.2 and c = 1, not for {others}")
    variances = np.array([law.variance for law in case.problem.laws])[case.problem.gaps > 0.0]
    value = 10.0 * case.log * total(variances / case.gaps + 2.0 * float(policy.range))
    note = "the constant 10 is not checked against the paper"
    return BoundSet((Bound("instance", value, "Audibert, Munos, Szepesvari 2009", "proved", note),))


def r_ucb_tea(case: Case) -> BoundSet:
    """Return Theorem 3 of Ashutosh et al., the sum of 32 f(T) log T / (1 - 2/(gap log f(T))) + 4 gap."""
    eps, u = case.order_and_u()
    kind = growth_kind(case.policy.f)
    end = growth(kind, case.log)
    value = 0.0
    for gap in case.gaps.tolist():
        _need(case, f"log f(T) = {math.log(end):.4g} above 2/gap = {2.0 / gap:.4g}", math.log(end) > 2.0 / gap)
        pulls = _tea_pulls(gap, end, case.log)
        _bias_is_small(case, end, end, u, eps, case.horizon)
        if pulls < case.horizon:
            start = growth(kind, math.log(pulls))
            _bias_is_small(case, start, end, u, eps, math.ceil(pulls))
            fewer_before = math.log(start) > 2.0 / gap and _tea_pulls(gap, start, math.log(pulls)) <= pulls
            condition = f"that its number of pulls, {pulls:.4g}, is not larger for smaller T, from T = {pulls:.4g} on"
            _need(case, condition, fewer_before)
        value += gap * (pulls + 4.0)
    bound = Bound("instance", value, f"{ASHUTOSH}, Theorem 3", "proved", _vacuous(case, value))
    return BoundSet((bound,), eps, u, met=True)


def _tea_pulls(gap: float, f: float, level: float) -> float:
    return 32.0 * f * level / (gap - 2.0 / math.log(f))


def _bias_is_small(case: Case, low: float, high: float, u: float, eps: float, since: int) -> None:
    """Raise unless 3 u log f < 2 f^eps from low to high. The difference is convex in log f, smallest at f^eps = 3u / (2 eps)."""
    ends = (math.log(low), math.log(high))
    lowest = math.exp(min(max(math.log(1.5 * u / eps) / eps, ends[0]), ends[1]))
    left, right = 3.0 * u * math.log(lowest), 2.0 * lowest**eps
    _need(case, f"3 u log f = {left:.4g} below 2 f^eps = {right:.4g} from pull {since} on", left < right)


def r_ucb_mom(case: Case) -> BoundSet:
    """Return Theorem 4 of Ashutosh et al., the sum of gap (2 f(T)/gap)^(1/g(T)) 32 log T + 4 gap."""
    eps, u = case.order_and_u()
    kind, fixed = growth_kind(case.policy.f), decay_number(case.policy.g)
    end = growth(kind, case.log)
    value = 0.0
    for gap in case.gaps.tolist():
        _wide_enough(case, kind, fixed, u, eps, float(case.horizon))
        # The proof needs at least 32 log T pulls. This holds because f(T) > u^(1/(1+eps)) and gap <= 2 u^(1/(1+eps)).
        pulls = 32.0 * case.log * float(power(2.0 * end / gap, 1.0 / decay(fixed, case.log)))
        if pulls < case.horizon:
            _wide_enough(case, kind, fixed, u, eps, pulls)
        value += gap * (pulls + 4.0)
    note = "its proof assumes that every arm has more than 32 log t rewards at each t"
    if vacuous := _vacuous(case, value):
        note += f"; {vacuous}"
    return BoundSet((Bound("instance", value, f"{ASHUTOSH}, Theorem 4", "printed", note),), eps, u, met=True)


def _wide_enough(case: Case, kind: int, fixed: float, u: float, eps: float, t: float) -> None:
    f, g = growth(kind, math.log(t)), decay(fixed, math.log(t))
    q = eps / (1.0 + eps)
    _need(case, f"g = {g:.4g} below eps/(1+eps) = {q:.4g} from pull {math.ceil(t)} on", g < q)
    left = f ** (1.0 + eps)
    _need(case, f"f^(1+eps) = {left:.4g} above 12 u = {12.0 * u:.4g} from pull {math.ceil(t)} on", left > 12.0 * u)


def r_ucb_lt(case: Case) -> BoundSet:
    """Return Theorem 2 of Ashutosh et al. for sub-Gaussian rewards, the sum of 4 f(T) log T / gap + 4 gap, if f > 8 sigma^2."""
    proxies = [sub_gaussian(law) for law in case.problem.laws]
    if None in proxies:
        law = case.problem.laws[proxies.index(None)]
        raise case.error(f"its bound needs sub-Gaussian rewards, which {law!r} is not known to have")
    needed = 8.0 * max(proxy for proxy in proxies if proxy is not None)
    kind = growth_kind(case.policy.f)
    end = growth(kind, case.log)
    value = 0.0
    for gap in case.gaps.tolist():
        pulls = 4.0 * end * case.log * float(power(gap, -2.0))
        for t in (float(case.horizon), min(pulls, float(case.horizon))):
            f = growth(kind, math.log(t))
            _need(case, f"f = {f:.4g} above 8 sigma^2 = {needed:.4g} from pull {math.ceil(t)} on", f > needed)
        value += 4.0 * end * case.log / gap + 4.0 * gap
    return BoundSet((Bound("instance", value, f"{ASHUTOSH}, Theorem 2", "proved", _vacuous(case, value)),), met=True)


def _vacuous(case: Case, value: float) -> str:
    most = case.horizon * max(case.gaps, default=0.0)
    return "no better than T times the largest gap" if value >= most > 0.0 else ""


def _need(case: Case, condition: str, holds: bool) -> None:
    if not holds:
        raise case.error(f"at T = {case.horizon} its bound needs {condition}; take a larger T or larger gaps")

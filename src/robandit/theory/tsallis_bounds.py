"""The bounds of Huang, Dai and Huang (2022) with the constants of their appendices. alpha = 1 + eps, sigma = u^(1/alpha).

Three corrections are made. The proofs bound the sum of 1/t by log(T+1), but the sum is larger; so the instance-dependent bounds
are given as printed, and with 1 + log T. OptTINF's bound has a factor sigma that its source, Lemma B.3, does not have. Ada2TINF's
bound (Theorem D.1) omits AdaTINF's sqrt(K T), and uses 2 for a geometric sum over the starts. That sum can be
2^(1/alpha) / (1 - 2^(-1/alpha)), up to 4.9; here it is computed.
"""

from __future__ import annotations

import math

from robandit.theory.bound import Bound, BoundSet, Case, power, total

SOURCE = "Huang, Dai, Huang 2022"
SUM = "the proof bounds sum 1/t by log(T+1), but the sum is larger"


def htinf(case: Case) -> BoundSet:
    """Return Theorem A.1: 30 sigma K^(1-1/alpha) (T+1)^(1/alpha), and the instance-dependent bound if the best arm is unique."""
    eps, u = float(case.policy.eps), float(case.policy.u)
    alpha, sigma = 1.0 + eps, u ** (1.0 / (1.0 + eps))
    worst = 30.0 * sigma * case.problem.arms ** (1.0 - 1.0 / alpha) * (case.horizon + 1.0) ** (1.0 / alpha)
    bounds = [Bound("worst-case", worst, f"{SOURCE}, Theorem A.1", "proved", "also against adversaries")]
    if len(case.problem.best_arms) == 1:
        factor = 2.0 * eps / alpha * power(alpha / 2.0, -1.0 / eps) * power(30.0 * sigma / alpha, alpha / eps)
        leading = float(factor) * total(power(case.gaps, -1.0 / eps))
        bounds += _both(leading, case, "Theorem A.1", SUM)
    return BoundSet(tuple(bounds), eps, u, case.problem.u(eps))


def opt_tinf(case: Case) -> BoundSet:
    """Return Theorem B.1: 26 u K^(eps/2) (T+1)^(1-eps/2) + 4 sqrt(K (T+1)), and the instance-dependent bound as in `htinf`."""
    eps, u = case.order_and_u()
    arms, end = case.problem.arms, case.horizon + 1.0
    worst = 26.0 * u * arms ** (0.5 * eps) * end ** (1.0 - 0.5 * eps) + 4.0 * math.sqrt(arms * end)
    bounds = [Bound("worst-case", worst, f"{SOURCE}, Theorem B.1", "proved", "also against adversaries")]
    if len(case.problem.best_arms) == 1:
        far = float(power(4.0, (2.0 - eps) / eps) * (power(5.0, 2.0 / eps) + power(8.0, 2.0 / eps)))
        skipped = 2.0 * far * float(power(u, 2.0 / eps)) * total(power(case.gaps, (eps - 2.0) / eps))
        near = 32.0 / eps * total(1.0 / case.gaps)
        sigma = u ** (1.0 / (1.0 + eps))
        note = f"{SUM}; the factor sigma is not in Lemma B.3, the source"
        bounds += _both(skipped + near, case, "Theorem B.1", note, skipped + sigma * near)
    return BoundSet(tuple(bounds), eps, u)


def ada_tinf(case: Case) -> BoundSet:
    """Return Theorem C.1 at the policy's horizon. Regret at an earlier pull is not larger."""
    eps, u = case.order_and_u()
    value = _adaptive(case.problem.arms, int(case.policy.horizon), eps, u)
    bound = Bound("worst-case", value, f"{SOURCE}, Theorem C.1", "proved", "also against adversaries")
    return BoundSet((bound,), eps, u)


def ada2_tinf(case: Case) -> BoundSet:
    """Return Theorem D.1 as printed, and the sum of Theorem C.1 over the starts, which have horizons 2^j - 1."""
    eps, u = case.order_and_u()
    arms = case.problem.arms
    pulls, start, value = 0, 2, 0.0
    while pulls < case.horizon:  # if the last start is incomplete, its regret is at most that of the complete one
        value += _adaptive(arms, start - 1, eps, u)
        pulls += start - 1
        start *= 2
    q, p = eps / (1.0 + eps), 1.0 / (1.0 + eps)
    printed = 600.0 * arms**q * (u * (case.horizon + 1.0)) ** p
    note = "the proof omits AdaTINF's sqrt(K T), and uses 2 for a larger geometric sum"
    bounds = (
        Bound("worst-case", value, f"{SOURCE}, Theorem C.1 summed over the starts", "derived"),
        Bound("worst-case", printed, f"{SOURCE}, Theorem D.1", "printed", note),
    )
    return BoundSet(bounds, eps, u)


def _adaptive(arms: int, horizon: int, eps: float, u: float) -> float:
    """Return 3 sqrt(K (T+1)) + 204 sigma K^(1-1/alpha) (T+1)^(1/alpha) + 12 sigma T^(1/alpha) (Theorem C.1)."""
    q, p = eps / (1.0 + eps), 1.0 / (1.0 + eps)
    end = horizon + 1.0
    return float(3.0 * math.sqrt(arms * end) + 204.0 * arms**q * (u * end) ** p + 12.0 * (u * horizon) ** p)


def _both(leading: float, case: Case, where: str, note: str, printed: float | None = None) -> list[Bound]:
    """Return an instance-dependent bound, corrected and as printed; ``leading`` is the factor of the logarithm."""
    if math.isnan(leading):
        raise case.error("the bound's terms overflow; take a larger eps")
    source = f"{SOURCE}, {where}"
    as_printed = (leading if printed is None else printed) * math.log(case.horizon + 1.0)
    return [
        Bound("instance", leading * (1.0 + case.log), source, "derived", "with 1 + log T for sum 1/t"),
        Bound("instance", as_printed, source, "printed", note),
    ]

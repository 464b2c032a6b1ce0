"""Slow, obvious versions of every estimator, at 50 digits; they share no code with the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mpmath import mp, mpf

mp.dps = 50
Numbers = Sequence[float]
C = (1 + mp.sqrt(2)) ** 2


def exact(x: Numbers) -> list[mpf]:
    return [mpf(float(v)) for v in x]


def falling_root(f: Callable[[mpf], mpf], low: mpf, high: mpf) -> mpf:
    """Where a falling function changes sign, to 25 digits of the bracket's upper end."""
    for _ in range(2000):
        if abs(high - low) <= mpf(10) ** -25 * max(abs(high), abs(low)):
            break
        both = low > 0 and high / low > 4  # halve the exponent while it is wide
        middle = mp.sqrt(low * high) if both else (low + high) / 2
        if f(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def threshold(x: Numbers, a: mpf) -> mpf:
    sizes = [abs(v) for v in exact(x) if v != 0]
    assert a < len(sizes)
    return falling_root(
        lambda m: sum(min((z / m) ** 2, mpf(1)) for z in sizes) - a,
        min(sizes) / 2,
        2 * max(sizes) * mp.sqrt(len(sizes) / a),
    )


def trimmed(x: Numbers, m: mpf) -> list[mpf]:
    return [v if abs(v) <= m else mpf(0) for v in exact(x)]


def mean(x: Sequence[mpf]) -> mpf:
    return mp.fsum(x) / len(x)


def variance(x: Sequence[mpf]) -> mpf:
    middle = mean(x)
    return mp.fsum((v - middle) ** 2 for v in x) / (len(x) - 1)


def median(x: Sequence[mpf]) -> mpf:
    ordered = sorted(x)
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def likelihood(z: Sequence[mpf], m: mpf, c: mpf) -> mpf:
    def value(shift: mpf) -> mpf:
        top = m + shift
        return top - mp.exp(-c + mean([mp.log(top - v) for v in z]))

    # Golden section in log(l - M).
    low, high = mpf(-60), mpf(60)
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(70):
        p, q = high - ratio * (high - low), low + ratio * (high - low)
        if value(m * mp.exp(p)) < value(m * mp.exp(q)):
            high = q
        else:
            low = p
    return value(m * mp.exp((low + high) / 2))


def adaptive(x: Numbers, delta: float, bonus: str, center: str | None) -> tuple[mpf, mpf, mpf]:
    """Value, upper bound and threshold with alternate values as X and X'."""
    body, other = exact(x[0::2]), exact(x[1::2])
    middle = median(other) if center else mpf(0)
    body, other = [v - middle for v in body], [v - middle for v in other]
    level = mp.log((1 if bonus == "likelihood" else 2) / mpf(delta))
    sizes = [abs(v) for v in other if v != 0]
    a = C * level
    m = falling_root(
        lambda t: sum(min((z / t) ** 2, mpf(1)) for z in sizes) - a,
        min(sizes) / 2,
        2 * max(sizes) * mp.sqrt(len(sizes) / a),
    )
    kept = [v if abs(v) <= m else mpf(0) for v in body]
    n = len(body)
    value = mean(kept)
    if bonus == "likelihood":
        return middle + value, middle + likelihood(kept, m, (level + 1 + mp.log(n + 2)) / n), m
    factor = mpf(10) / n if bonus == "paper" else mpf(14) / (3 * (n - 1))
    return middle + value, middle + value + mp.sqrt(2 * variance(kept) * level / n) + factor * m * level, m


def truncated(x: Numbers, eps: float, u: float, delta: float, common: bool) -> mpf:
    level = mp.log(2 / mpf(delta))
    n = len(x)
    bounds = [(mpf(u) * (n if common else j) / level) ** (1 / (1 + mpf(eps))) for j in range(1, n + 1)]
    return mean([v if abs(v) <= b else mpf(0) for v, b in zip(exact(x), bounds, strict=True)])


def median_of_means(x: Numbers, delta: float) -> mpf:
    n = len(x)
    k = max(1, math.floor(min(8 * mp.log(mp.exp(mpf(1) / 8) * 2 / mpf(delta)), mpf(n) / 2)))
    size = n // k
    values = exact(x)
    return median([mean(values[b * size : (b + 1) * size]) for b in range(k)])


def psi(z: mpf, p: mpf, b: mpf) -> mpf:
    out = mp.log(1 + abs(z) + b * abs(z) ** p)
    return out if z >= 0 else -out


def holds_catoni_root(
    x: Numbers, alpha: mpf | float, root: float, error: mpf | float, p: mpf | float = 2, b: mpf | None = None
) -> bool:
    """Is the root of sum psi(alpha (x - theta)) within ``error`` of this number? The sum falls, so two signs tell."""
    values = exact(x)
    b = mpf(1) / 2 if b is None else b

    def total(theta: mpf) -> mpf:
        return mp.fsum(psi(mpf(alpha) * (v - theta), mpf(p), b) for v in values)

    return bool(total(mpf(root) - mpf(error)) >= 0 >= total(mpf(root) + mpf(error)))


def b_p(p: float) -> mpf:
    if p == 2:
        return mpf(1) / 2
    r = (2 - mpf(p)) / (mpf(p) - 1)
    return (2 * r ** (1 - 2 / mpf(p)) + r ** (2 - 2 / mpf(p))) ** (-mpf(p) / 2)


def p_robust(x: Numbers, p: float, c: float) -> mpf:
    n = mpf(len(x))
    power = mpf(p)
    terms = [psi(v / (mpf(c) * n ** (1 / power)), power, b_p(p)) for v in exact(x)]
    return mpf(c) / n ** (1 - 1 / power) * mp.fsum(terms)

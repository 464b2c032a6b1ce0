"""The checks that every law must pass. Run them on your own laws."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np

import robandit.laws
from robandit.errors import InvalidInput
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.laws.base import checked_law, known_laws
from robandit.validation import integer

POINTS = 2000  # largest number of points for comparing the sample with the cdf, since some cdfs are slow quadratures
FAILURE = 1e-6  # the probability that a statistical check rejects a correct law


def check_law(law: Law, *, size: int = 20_000, seed: int = 0) -> None:
    """Run every check that a law must pass; raise AssertionError with the reason if one fails.

    ``size`` and ``seed`` describe the sample. Over the choice of the seed, each of the two statistical checks rejects a correct
    law with probability at most 1e-6, by the inequalities of Dvoretzky-Kiefer-Wolfowitz-Massart and Bernstein.

    >>> from robandit.laws import Pareto
    >>> check_law(-Pareto(tail=1.5))
    """
    checked_law(law, "law")
    size, seed = integer(size, "size", 1), integer(seed, "seed", 0)
    checks = (_check_value, _check_support, _check_moments, _check_cdf, _check_quantiles, _check_partial_means)
    for check in (*checks, _check_verdict):
        check(law)
    check_law_sampler(law, size=size, seed=seed)


def check_law_sampler(law: Law, *, size: int = 20_000, seed: int = 0) -> None:
    """Check that the compiled sampler is reproducible, stays inside the support, and agrees with the cdf."""
    first, again = law.sample(size, seed), law.sample(size, seed)
    assert first.tobytes() == again.tobytes(), f"{law!r}: the same seed gave different values"
    if law.support[0] != law.support[1]:
        other = law.sample(size, seed + 1)
        assert first.tobytes() != other.tobytes(), f"{law!r}: another seed gave the same values"
    assert not np.isnan(first).any(), f"{law!r}: the sampler gave NaN"
    assert not np.any(np.signbit(first) & (first == 0.0)), f"{law!r}: the sampler gave a negative zero"
    low, high = law.support
    slack = 1e-12 * (1.0 + sum(abs(end) for end in (low, high) if math.isfinite(end)))
    assert first.min() >= low - slack, f"{law!r}: the sampler gave {first.min()}, below the support {law.support}"
    assert first.max() <= high + slack, f"{law!r}: the sampler gave {first.max()}, above the support {law.support}"
    _check_distribution(law, first)
    _check_zeros(law, first)


def _close(value: float, expected: float, scale: float, tolerance: float = 1e-8) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return value == expected or (math.isnan(value) and math.isnan(expected))
    return abs(value - expected) <= tolerance * scale


def _check_value(law: Law) -> None:
    assert hash(law) == hash(law), f"{law!r}: the hash changes"
    back = Law.from_dict(json.loads(json.dumps(law.to_dict(), allow_nan=False)))
    assert back == law, f"{law!r}: JSON gave {back!r}"
    assert hash(back) == hash(law), f"{law!r}: an equal law has a different hash"
    if "<" not in repr(law):  # the repr of a long recorded sample does not evaluate
        names = {name: getattr(robandit.laws, name) for name in robandit.laws.__all__}
        evaluated = eval(repr(law), {**known_laws(), **names})
        assert evaluated == law, f"{law!r}: the repr evaluates to {evaluated!r}"
    assert law != object(), f"{law!r}: equals everything"


def _check_support(law: Law) -> None:
    low, high = law.support
    assert low <= high, f"{law!r}: the support {law.support} is empty"
    assert law.left_tail > 0.0, f"{law!r}: the left tail index {law.left_tail} is not positive"
    assert law.right_tail > 0.0, f"{law!r}: the right tail index {law.right_tail} is not positive"
    assert math.isinf(low) or law.left_tail == math.inf, f"{law!r}: bounded below, but left_tail is {law.left_tail}"
    assert math.isinf(high) or law.right_tail == math.inf, f"{law!r}: bounded above, but right_tail is {law.right_tail}"
    assert law.tail_index == min(law.left_tail, law.right_tail), f"{law!r}: tail_index is not the smaller of the two"
    mean = law.mean
    if math.isfinite(mean):
        assert low <= mean <= high, f"{law!r}: the mean {mean} lies outside the support {law.support}"
        assert law.tail_index >= 1.0, f"{law!r}: the mean {mean} is finite, but the tail index is {law.tail_index}"
        centre = law.symmetric_about
        centred = centre is None or _close(mean, centre, 1.0 + abs(mean), 1e-12)
        assert centred, f"{law!r}: symmetric about {centre}, but the mean is {mean}"
    share = law.nonzero_probability
    assert 0.0 <= share <= 1.0, f"{law!r}: P(X != 0) is {share}"


def _check_moments(law: Law) -> None:
    assert law.absolute_moment(0.0) == 1.0, f"{law!r}: the moment of order 0 is not 1"
    if math.isfinite(law.tail_index):
        for order in (law.tail_index, law.tail_index + 0.5):
            assert law.absolute_moment(order) == math.inf, f"{law!r}: the moment of order {order} is not infinite"
    mean, top = law.mean, min(law.tail_index, 3.0)
    orders = [top * share for share in (0.2, 0.4, 0.6, 0.8, 0.95)]
    for about in {0.0, 0.7, mean if math.isfinite(mean) else -1.3}:
        moments = [law.absolute_moment(order, about) for order in orders]
        what = f"{law!r}: moments {moments} of orders {orders} about {about}"
        assert all(math.isfinite(moment) and moment >= 0.0 for moment in moments), f"{what} are not all finite"
        if moments[0] == 0.0:
            continue
        norms = [moment ** (1.0 / order) for moment, order in zip(moments, orders, strict=True)]
        for smaller, larger in pairwise(norms):
            assert smaller <= larger * (1.0 + 1e-8), f"{what}: the norms {norms} decrease"
        logs = [math.log(moment) for moment in moments]
        for i in range(1, len(orders) - 1):
            right = (orders[i] - orders[i - 1]) / (orders[i + 1] - orders[i - 1])
            chord = (1.0 - right) * logs[i - 1] + right * logs[i + 1]
            assert logs[i] <= chord + 1e-8 * (1.0 + abs(chord)), f"{what} are not log-convex (Lyapunov)"
    if math.isfinite(mean) and law.tail_index > 1.0:
        first = law.absolute_moment(1.0, mean)
        upper, lower = law.partial_means(0.0, mean)
        scale = first + 1e-7 * abs(mean)  # if the mean is large, both sides are differences of large numbers
        assert _close(upper - lower, first, scale), f"{law!r}: E|X - mean| is {first} and {upper - lower}"
        assert _close(law.central_moment(1.0), first, scale), f"{law!r}: central_moment(1) is not {first}"
    if math.isfinite(mean):
        variance = law.variance
        assert _close(variance, law.central_moment(2.0), abs(variance)), f"{law!r}: variance {variance}"
        if math.isfinite(variance):
            second = law.absolute_moment(2.0)
            assert _close(second, variance + mean**2, second), f"{law!r}: E X^2 = {second}, not variance + mean^2"


def _grid(law: Law) -> Floats:
    """Return points in the bulk and the tails of the components, and the finite ends of the support."""
    points = [0.0]
    for part in law.components():
        sizes = [part.scale * math.exp(k / 2.0) for k in range(-12, 24)]
        points += [
            part.loc,
            *(part.loc + s for s in sizes),
            *(part.loc - s for s in sizes),
            part.loc + 1e9 * abs(part.scale),
        ]
    points += [end for end in law.support if math.isfinite(end)]
    return np.unique(np.array(points))


def _check_cdf(law: Law) -> None:
    grid = _grid(law)
    values = law.cdf(grid)
    assert values.shape == grid.shape, f"{law!r}: cdf of {grid.shape} points has shape {values.shape}"
    assert np.all((values >= -1e-12) & (values <= 1.0 + 1e-12)), f"{law!r}: cdf leaves [0, 1]"
    drops = np.flatnonzero(np.diff(values) < -1e-9)
    assert drops.size == 0, f"{law!r}: cdf decreases near {grid[drops[:1]]}"
    low, high = law.support
    ends = law.cdf(np.array([np.nextafter(low, -math.inf) if math.isfinite(low) else -1e300, min(high, 1e300)]))
    if law.tail_index > 0.05:  # otherwise the tails extend beyond the range of doubles
        assert ends[0] <= 1e-9, f"{law!r}: cdf starts at {ends[0]}"
        assert ends[1] >= 1.0 - 1e-9, f"{law!r}: cdf ends at {ends[1]}"


def _check_quantiles(law: Law) -> None:
    """Compare ppf and isf with the cdf, if the law has them."""
    q = np.array([0.0137, 0.2113, 0.4871, 0.7873, 0.9839])  # not at a step of a likely law, where rounding decides
    try:
        lower, upper = law.ppf(q), law.isf(1.0 - q)
    except InvalidInput:
        return
    spread = 1e-9 * np.abs(lower) + 1e-300
    below, above = law.cdf(lower - spread), law.cdf(lower + spread)
    fine = np.all((below <= q + 1e-8) & (q - 1e-8 <= above))
    assert fine, f"{law!r}: the cdf next to the quantiles {lower} of {q} is {below} and {above}"
    assert np.allclose(lower, upper, rtol=1e-6, atol=1e-300), f"{law!r}: isf gives {upper}, and ppf {lower}"
    ends = law.ppf([0.0, 1.0])
    assert tuple(ends) == law.support, f"{law!r}: ppf at 0 and 1 is {ends}, not the support {law.support}"


def _levels(law: Law) -> list[float]:
    sizes = {abs(size) for part in law.components() for size in (part.scale, part.loc)}
    return sorted({0.0, *(size * math.exp(k / 2.0) for size in sizes if size > 0.0 for k in range(-8, 16))})


def _check_partial_means(law: Law) -> None:
    mean = law.mean
    for about in (0.0, 0.7, mean if math.isfinite(mean) else 0.0):
        start = law.partial_mean(0.0, about)
        scale = law.absolute_moment(1.0, about)
        assert _close(start, mean - about, scale), f"{law!r}: partial_mean(0, {about}) is {start}, not {mean} - {about}"
        if not math.isfinite(mean):
            continue
        previous = (math.inf, -math.inf)
        for m in _levels(law):
            upper, lower = law.partial_means(m, about)
            assert upper >= -1e-9 * scale, f"{law!r}: the upper part {upper} at m = {m} about {about} is negative"
            assert lower <= 1e-9 * scale, f"{law!r}: the lower part {lower} at m = {m} about {about} is positive"
            fine = upper <= previous[0] + 1e-9 * scale and lower >= previous[1] - 1e-9 * scale
            assert fine, f"{law!r}: a partial mean about {about} grows with m at {m}"
            previous = (upper, lower)


def _check_verdict(law: Law) -> None:
    mean = law.mean
    for about in (0.0, mean) if math.isfinite(mean) else (0.0,):
        verdict = law.truncated_nonpositivity(about)
        assert verdict.how in ("exact", "numeric"), f"{law!r}: verdict {verdict}"
        assert bool(verdict) == verdict.holds, f"{law!r}: verdict {verdict}"
        if not math.isfinite(mean):
            continue
        if verdict.holds:
            for m in _levels(law):
                upper, lower = law.partial_means(m, about)
                fine = upper + lower <= 1e-8 * max(upper, -lower)
                assert fine, f"{law!r}: {verdict}, but the partial mean at {m} about {about} is {upper + lower}"
        elif verdict.worst is not None:
            excess = law.partial_mean(verdict.worst, about)
            assert excess > 0.0, f"{law!r}: {verdict}, but the partial mean there is {excess}"


def _check_distribution(law: Law, sample: Floats) -> None:
    """Compare the largest distance between the cdfs of the sample and of the law with the bound of Massart (1990)."""
    values, counts = np.unique(sample, return_counts=True)
    upto = np.cumsum(counts) / sample.size
    before = upto - counts / sample.size
    if values.size > POINTS:  # the supremum over fewer points is smaller, so correct laws still pass
        subset = np.linspace(0, values.size - 1, POINTS).astype(np.int64)
        values, upto, before = values[subset], upto[subset], before[subset]
    just_below = law.cdf(np.nextafter(values, -math.inf))
    distance = float(max(np.max(np.abs(upto - law.cdf(values))), np.max(np.abs(before - just_below))))
    bound = math.sqrt(math.log(2.0 / FAILURE) / (2.0 * sample.size))
    assert distance <= bound, f"{law!r}: the sample is {distance:.4g} away from the cdf; {bound:.4g} is allowed"


def _check_zeros(law: Law, sample: Floats) -> None:
    """Compare the share of values other than 0 with P(X != 0), by Bernstein's bound."""
    p = law.nonzero_probability
    share = float(np.mean(sample != 0.0))
    level = math.log(2.0 / FAILURE) / sample.size
    bound = math.sqrt(2.0 * p * (1.0 - p) * level) + 2.0 * level / 3.0
    assert abs(share - p) <= bound, f"{law!r}: the share of values other than 0 is {share}, P(X != 0) is {p}"
    if p in (0.0, 1.0):
        # A continuous value can be rounded to 0, but the probability that a sample contains one is negligible.
        assert share == p, f"{law!r}: the share of values other than 0 is {share}, P(X != 0) is exactly {p}"

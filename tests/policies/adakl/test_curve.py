"""The likelihood bound as it follows a growing sample, against its definition at fifty digits."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from robandit.policies.adakl import curve as module
from robandit.policies.adakl.clusters import CLUSTER, TERMS, add_near
from robandit.policies.adakl.curve import (
    AT,
    CURVE,
    GAP,
    RADIUS,
    READY,
    STEP,
    Sample,
    add_value,
    add_zero,
    distance,
    follow,
    minimiser,
    remake,
    value_at,
)

NOTHING = np.zeros(TERMS)
NO_CLUSTERS = np.zeros((0, CLUSTER))
UNCLIPPED = (0.0, 0.0, 0.0)


def sample(kept, first=0, near=NOTHING, cut=0.0, n_near=0, clip=UNCLIPPED):
    """Values by descending size; the first ones count as 0, or as +-edge."""
    zeros, n = first if clip == UNCLIPPED else 0, float(len(kept) + n_near)
    return Sample(kept, first, len(kept), near, cut, float(n_near), NO_CLUSTERS, zeros, n, *clip)


def made(z, level, floor=0.0, first=0, near=NOTHING, cut=0.0, n_near=0, curve=None, clip=UNCLIPPED):
    """A curve made from the values as they are kept: by descending size, the first ones count as 0, or as +-edge."""
    kept = z[np.argsort(-np.abs(z), kind="stable")]
    curve = np.zeros(CURVE) if curve is None else curve
    remake(curve, sample(kept, first, near, cut, n_near, clip), level, floor)
    return curve


def bound(curve, n, level, clip=UNCLIPPED):
    return value_at(curve, float(n), level / n, curve[STEP], *clip)


def precise(z, level, floor=0.0):
    """The minimiser and the bound with fifty digits, by bisection on D(l) = level."""
    with mpmath.workdps(50):
        values = [mpmath.mpf(float(x)) for x in z]
        n, top = len(values), max(*values, mpmath.mpf(0))
        scale = max(abs(x) for x in values)
        low, high = mpmath.log(scale) - 100, mpmath.log(scale) + 60
        for _ in range(90):
            middle = (low + high) / 2
            at = top + mpmath.exp(middle)
            d = mpmath.log(mpmath.fprod(at - x for x in values)) + n * mpmath.log(sum(1 / (at - x) for x in values) / n)
            low, high = (middle, high) if d > level else (low, middle)
        at = max(top + mpmath.exp(low), mpmath.mpf(floor))
        gm = mpmath.exp(mpmath.log(mpmath.fprod(at - x for x in values)) / n - mpmath.mpf(level) / n)
        return float(at - top), float(at - gm)


def seen(z, level):
    """A floor with which l never comes too close to the largest value for doubles."""
    return max(z.max(), 0.0) * math.exp(level / (len(z) - 1))


def close(found, wanted, z):
    """To 1e-12 of the width, and to the rounding that a mean of the values has."""
    assert abs(found - wanted) <= 1e-12 * abs(wanted - z.mean()) + 1e-15 * np.abs(z).mean()


def values(kind, n, rng):
    """Samples about their median, as the policy has them."""
    z = {
        "losses": lambda: -rng.pareto(1.1, n),
        "gains": lambda: rng.pareto(1.2, n),
        "student": lambda: rng.standard_t(1.5, n),
        "narrow": lambda: rng.standard_normal(n),
        "zeros": lambda: np.where(rng.random(n) < 0.8, 0.0, -rng.pareto(1.5, n)),
        "sizes": lambda: rng.standard_normal(n) * 10.0 ** rng.uniform(-140, 140, n),
    }[kind]()
    return z - np.median(z)


KINDS = ["losses", "gains", "student", "narrow", "zeros", "sizes"]


@pytest.mark.parametrize("level", [0.05, 3.0, 37.0])
@pytest.mark.parametrize("kind", KINDS)
def test_minimiser_and_bound_are_the_definitions(kind, level):
    rng = np.random.default_rng(KINDS.index(kind))
    for n, factor in ((2, 0.0), (3, 1.5), (24, 0.0), (24, 2.0), (24, 1e3)):
        z = values(kind, n, rng)
        if kind == "zeros":
            z[0] = -3.0  # something to see
        floor = max(factor * np.abs(z).max(), seen(z, level))
        gap, wanted = precise(z, level, floor)
        curve = made(z, level, floor)
        assert curve[AT] - max(z.max(), 0.0) == pytest.approx(gap, rel=1e-6)
        close(bound(curve, n, level), wanted, z)


def test_the_first_values_count_as_zeros():
    rng = np.random.default_rng(7)
    z = rng.standard_t(1.5, 20)
    z = z[np.argsort(-np.abs(z))]
    trimmed = np.where(np.arange(20) < 6, 0.0, z)
    curve = made(z, 3.0, floor=abs(z[6]), first=6)
    close(bound(curve, 20, 3.0), precise(trimmed, 3.0, abs(z[6]))[1], trimmed)
    np.testing.assert_allclose(curve, made(trimmed, 3.0, floor=abs(z[6])), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["losses", "gains", "student", "narrow"])
def test_clipped_values_count_as_the_edge(kind):
    z = values(kind, 40, np.random.default_rng([9, KINDS.index(kind)]))
    z = z[np.argsort(-np.abs(z))]
    for first, level in ((1, 0.5), (6, 3.0), (20, 9.0)):
        edge = 0.5 * float(abs(z[first - 1]) + abs(z[first]))
        clip = (float((z > edge).sum()), float((z < -edge).sum()), edge)
        shown = np.clip(z, -edge, edge)
        found = bound(made(z, level, edge, first=first, clip=clip), 40, level, clip)
        close(found, precise(shown, level, edge)[1], shown)
        other = bound(made(z, level, edge, first=first), 40, level)  # the negative control: as zeros
        assert abs(found - other) > 1e-6 * edge


@pytest.mark.parametrize("kind", ["losses", "gains", "student"])
def test_following_a_moving_edge_is_making_anew(kind):
    """The edge falls with every value; the values beyond the first one are never in the sums."""
    rng = np.random.default_rng([10, KINDS.index(kind)])
    z = values(kind, 1500, rng)
    limit = float(np.quantile(np.abs(z), 0.97))
    inside = np.abs(z) <= limit
    curve, remade = np.zeros(CURVE), 0
    for n in range(600, len(z) + 1):
        edge = limit * (1.2 - n / 20_000)
        clip = (float((z[:n] > limit).sum()), float((z[:n] < -limit).sum()), edge)
        level = 2.0 + n / 1000
        if curve[READY] != 0.0 and inside[n - 1]:
            add_value(curve, float(z[n - 1]))
        if curve[READY] == 0.0 or not follow(curve, float(n), level / n, edge, *clip):
            remade += 1
            made(z[:n], level, edge, first=int(sum(clip[:2])), curve=curve, clip=clip)
        if n % 100 == 0:
            anew = made(z[:n], level, edge, first=int(sum(clip[:2])), clip=clip)
            shown = np.where(inside[:n], z[:n], np.sign(z[:n]) * edge)
            close(bound(curve, n, level, clip), bound(anew, n, level, clip), shown)
    assert remade <= 60


@pytest.mark.parametrize("kind", ["losses", "gains", "student", "narrow", "zeros"])
def test_following_is_making_anew(kind):
    """One value at a time, some of them as zeros, at a rising level: always what a new curve would say, and rarely made."""
    rng = np.random.default_rng([1, KINDS.index(kind)])
    z = values(kind, 2400, rng)
    # Values of more than this size count as 0.
    limit = np.quantile(np.abs(z), 0.97)
    shown = np.where(np.abs(z) > limit, 0.0, z)
    trimmed = int((np.abs(z[:800]) > limit).sum())
    curve = made(z[:800], 2.0, floor=limit, first=trimmed)
    remade = 0
    for n in range(801, len(z) + 1):
        if shown[n - 1] == z[n - 1]:
            add_value(curve, float(z[n - 1]))
        else:
            trimmed += 1
            add_zero(curve)
        level = 2.0 + n / 1000
        floor = limit * (1.0 if n % 500 else 3.0)
        if curve[READY] == 0.0 or not follow(curve, float(n), level / n, floor, *UNCLIPPED):
            remade += 1
            made(z[:n], level, floor, first=trimmed, curve=curve)
        if n % 100 == 0 or n % 100 == 99:
            anew = made(z[:n], level, floor, first=trimmed)
            # The minimum is flat: l itself is only known to the square root of the bound's accuracy.
            assert curve[AT] + curve[STEP] * curve[GAP] == pytest.approx(anew[AT], rel=1e-6)
            close(bound(curve, n, level), bound(anew, n, level), shown[:n])
    assert remade <= 50  # of 1600; a value that is left out makes it twice as many


def test_a_new_largest_value_narrows_the_curve():
    """The sums in units of the smaller gap are those of a curve made with the value."""
    z = np.array([-3.0, -1.0, 0.0, 1.0])
    curve = made(z, 1.0)
    above = 1.0 + 0.4 * curve[GAP]
    curve[STEP] = 0.002
    at = curve[AT] + 0.002 * curve[GAP]
    add_value(curve, above)
    assert curve[READY] == 1.0
    assert curve[GAP] == pytest.approx(curve[AT] - above, rel=1e-15)
    assert curve[AT] + curve[STEP] * curve[GAP] == pytest.approx(at, rel=1e-15)
    for step in (-0.01, 0.0, 0.01):
        at = curve[AT] + step * curve[GAP]
        wanted = at - math.exp(-0.2 + np.log(at - np.append(z, above)).mean())
        assert value_at(curve, 5.0, 0.2, step, *UNCLIPPED) == pytest.approx(wanted, rel=1e-13)
    add_value(curve, curve[AT])  # no l up to here is allowed any more
    assert curve[READY] == 0.0


def test_it_says_when_the_minimiser_is_too_far():
    z = np.random.default_rng(3).standard_normal(50)
    curve = made(z, 3.0)
    assert follow(curve, 50.0, 3.0 / 50, 0.0, *UNCLIPPED)
    assert abs(curve[STEP]) < 1e-6
    assert not follow(curve.copy(), 50.0, 2.5 / 50, 0.0, *UNCLIPPED)
    assert not follow(curve.copy(), 50.0, 3.5 / 50, 0.0, *UNCLIPPED)
    assert not follow(curve.copy(), 50.0, 3.0 / 50, 1.1 * curve[AT], *UNCLIPPED)
    near = curve.copy()  # a floor within reach: the minimum is there
    floor = curve[AT] + 0.5 * RADIUS * curve[GAP]
    assert follow(near, 50.0, 3.0 / 50, floor, *UNCLIPPED)
    assert near[AT] + near[STEP] * near[GAP] == pytest.approx(floor, rel=1e-15)


def powers(z, cut):
    near = np.zeros(TERMS)
    for x in z:
        add_near(near, x / cut)
    return near


@pytest.mark.parametrize("kind", ["uniform", "coins", "losses", "few above"])
def test_a_cut_at_a_quarter_of_l_costs_less_than_1e_9_of_the_width(kind):
    """The worst case: l is four times the cut, and all values are at the cut."""
    rng = np.random.default_rng(5)
    n = 500
    z = {
        "uniform": rng.uniform(-1.0, 1.0, n),
        "coins": np.where(rng.random(n) < 0.5, -1.0, 1.0),
        "losses": np.where(rng.random(n) < 0.9, 0.0, -1.0),
        "few above": np.where(rng.random(n) < 0.98, rng.uniform(-1.0, 1.0, n), -9.0),
    }[kind]
    level = distance(sample(z), 4.0)[0]
    below = np.abs(z) <= 1.0
    rest, near = z[~below], powers(z[below], 1.0)
    exact = made(z, level)
    short = made(rest, level, near=near, cut=1.0, n_near=below.sum())
    assert exact[AT] == pytest.approx(4.0, rel=1e-6)
    width = bound(exact, n, level) - z.mean()
    assert 0.0 < width < 1.0
    assert abs(bound(short, n, level) - bound(exact, n, level)) < 1e-9 * width
    # The sums about l0 are the same too, though the gap is to the cut, not to the largest value.
    for step in (-0.01, 0.004):
        at = short[AT] + step * short[GAP]
        there = (at - exact[AT]) / exact[GAP]
        one, two = (value_at(c, float(n), level / n, e, *UNCLIPPED) for c, e in ((short, step), (exact, there)))
        assert abs(one - two) < 1e-9 * width
    # Nearer than that it would not do.
    near_by = (
        distance(sample(z), 1.2)[2],
        distance(sample(rest, near=near, cut=1.0, n_near=below.sum()), 1.2)[2],
    )
    assert abs(near_by[0] - near_by[1]) > 1e-6


def test_l_keeps_away_from_the_cut():
    """A minimiser closer to the cut than the power sums allow is not looked for."""
    z = np.random.default_rng(6).uniform(-1.0, 1.0, 100)
    near = powers(z, 1.0)
    found = minimiser(sample(z[:0], near=near, cut=1.0, n_near=100), 60.0, 0.0, 0.0)
    assert found == pytest.approx(module.LEAST_RATIO)
    assert made(z, 60.0)[AT] < 2.0


@pytest.mark.parametrize("scale", [1e-140, 1e-9, 1e9, 1e140])
@pytest.mark.parametrize("kind", ["losses", "gains", "zeros", "narrow"])
def test_extreme_scales_change_nothing(kind, scale):
    z = values(kind, 60, np.random.default_rng(8))
    for level in (1e-3, 5.0, 100.0):
        for floor in (seen(z, level), np.abs(z).max()):
            one, two = made(z, level, floor), made(scale * z, level, scale * floor)
            assert np.isfinite(two).all()
            width = bound(one, 60, level) - z.mean()
            assert bound(two, 60, level) / scale == pytest.approx(bound(one, 60, level), rel=1e-12, abs=1e-12 * width)
            add_value(two, float(scale * z[3]))
            follow(two, 61.0, level / 61, scale * floor, *UNCLIPPED)
            assert np.isfinite(two).all()
            assert math.isfinite(bound(two, 61, level))


NUMBERS = st.floats(-1e9, 1e9).filter(lambda x: x == 0.0 or abs(x) > 1e-9)
SAMPLES = st.lists(NUMBERS, min_size=1, max_size=30)


@settings(max_examples=amount(100, 200), deadline=None, derandomize=True)
@given(SAMPLES, SAMPLES, st.floats(0.01, 10.0), st.floats(1.0, 10.0))
def test_d_grows_with_data_and_falls_with_l(first, more, above, farther):
    """What the cut rests on: today's minimiser at the largest level to come is below every later one."""
    z = np.array(first + more)
    scale = float(np.abs(z).max()) or 1.0
    l1 = max(z.max(), 0.0) + above * scale
    l2 = l1 * farther

    def d(count, at):
        return distance(sample(z[:count]), at)[0]

    rounding = 1e-13 * len(z)
    assert d(len(first), l1) >= -rounding
    assert d(len(z), l1) >= d(len(first), l1) - rounding
    assert d(len(z), l2) <= d(len(z), l1) + rounding


@settings(max_examples=amount(50, 100), deadline=None, derandomize=True)
@given(SAMPLES, st.floats(0.01, 50.0), st.floats(0.0, 3.0), st.floats(-2.0, 2.0))
def test_no_other_l_gives_less(values, level, factor, elsewhere):
    z = np.array([*values, 0.0, -1.0])
    floor = max(factor * float(np.abs(z).max()), seen(z, level))
    curve = made(z, level, floor)
    found = bound(curve, len(z), level)
    at = max(floor, max(z.max(), 0.0) + curve[GAP] * math.exp(elsewhere))
    if at > z.max():
        other = -at * math.expm1(-level / len(z) + np.mean(np.log1p(-z / at)))
        assert found <= other + 1e-12 * np.abs(z).max()
    assert found >= z.mean() - 1e-12 * np.abs(z).max()

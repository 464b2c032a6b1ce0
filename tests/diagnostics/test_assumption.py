"""Truncated non-positivity of samples: an obvious slow version, error rates with negative controls, and invalid input."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import assert_invalid
from helpers.samples_of import ALL, LEFT, RIGHT, SYMMETRIC, drawn
from robandit.diagnostics import truncated_nonpositivity
from robandit.diagnostics.assumption import judge
from robandit.errors import InvalidInput

SAMPLES = 200


def slow(values, about, level):
    """The definition, set by set."""
    offset = sorted((v - about for v in values if v != about), key=abs, reverse=True)
    sizes = []
    k = len(offset)
    while k >= 8:
        sizes.append(k)
        k //= 2
    limit = math.sqrt(2 * math.log(2 * max(len(sizes), 1) / level))
    found = []
    for k in sizes or [len(offset)]:
        those = [d for d in offset if abs(d) >= abs(offset[k - 1])]
        z = sum(those) / math.sqrt(sum(d * d for d in those))
        if min(those) > 0:
            z = max(z, math.sqrt(2 * math.log(2) * len(those)))
        nearer = [abs(d) for d in offset if abs(d) < abs(offset[k - 1])]
        found.append((z, len(those), max(nearer, default=0.0), sum(those) / len(values)))
    return limit, max(found, key=lambda f: f[0])


@cases("name", ALL)
def test_it_agrees_with_the_definition(name):
    for n in (30, 301):
        x = np.round(4 * drawn(name, n)) / 4  # with ties
        found = truncated_nonpositivity(x, 0.25, 0.95)
        limit, (z, count, worst, mean) = slow(x.tolist(), 0.25, 0.05)
        assert (found.n, found.about, found.center, found.confidence) == (n, 0.25, "given", pytest.approx(0.95))
        assert found.limit == pytest.approx(limit)
        assert found.statistic == pytest.approx(z, rel=1e-9, abs=1e-12)
        assert found.count == count
        assert found.worst == pytest.approx(worst)
        assert found.mean == pytest.approx(mean, abs=1e-12)
        assert found.verdict == ("contradicted" if z > limit else "not contradicted")


def halves(x):
    """The positions, counted from 1, in the order of their hashes (SplitMix64 in Python integers): first half and rest."""

    def mixed(z):
        z = z * 0x9E3779B97F4A7C15 % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    order = sorted(range(len(x)), key=lambda i: mixed(i + 1))
    half = math.ceil(len(x) / 2)
    return x[order[:half]], x[order[half:]]


@cases("name", ALL)
def test_about_the_median_one_half_gives_the_centre_and_the_other_is_tested(name):
    x = drawn(name, 501)
    found = truncated_nonpositivity(x, "median")
    first, rest = halves(x)
    first = np.sort(first)
    rank = math.ceil(len(first) / 2 + math.sqrt(len(first) * math.log(200) / 2))
    assert found.about == first[rank - 1] >= np.median(first)
    limit, (z, count, _, _) = slow(rest.tolist(), found.about, 0.005)
    assert found.differ == np.count_nonzero(rest != found.about)
    assert (found.limit, found.statistic) == (pytest.approx(limit), pytest.approx(z, rel=1e-9))
    assert (found.count, found.center, found.n) == (count, "median", 501)


def rate(name, about, n, confidence=0.99, samples=SAMPLES):
    rng = np.random.default_rng(7)
    return sum(not truncated_nonpositivity(ALL[name](rng, n), about, confidence) for _ in range(samples)) / samples


@pytest.mark.parametrize("n", [100, 700])
@pytest.mark.parametrize("name", SYMMETRIC | LEFT)
def test_false_contradictions_are_rare(name, n):
    """The level is 0.2, and the union bound is not sharp: 0.2 plus four standard deviations is never reached."""
    for about in (0.0, "median"):
        assert rate(name, about, n, confidence=0.8) <= 0.2 + 4 * math.sqrt(0.16 / SAMPLES)
        assert rate(name, about, n) <= 0.01 + 4 * math.sqrt(0.0099 / SAMPLES)


@pytest.mark.parametrize("name", RIGHT)
def test_right_skewed_rewards_are_contradicted(name):
    """The negative control: also with the confidence of a live bandit's alarm."""
    for about in (0.0, "median"):
        assert rate(name, about, 1024, confidence=1 - 1e-4, samples=50) >= 0.95


def test_an_estimated_centre_does_not_pass_for_skewness():
    """A test about the plain median of the other half has this many errors on Gaussian rewards; ours has few."""
    rng = np.random.default_rng(3)
    naive = ours = 0
    for _ in range(400):
        x = rng.normal(size=1000)
        naive += not truncated_nonpositivity(x[1::2], float(np.median(x[0::2])), 0.5)
        ours += not truncated_nonpositivity(x, "median", 0.5)
    assert naive > 30
    assert ours <= 4


@pytest.mark.parametrize("pattern", [[1.0, 2.0], [2.0, 1.0], [0.0, 0.0, 1.0, 1.0], [-1.0, 5.0, 2.0, 2.0]])
def test_a_pattern_in_the_order_does_not_pass_for_skewness(pattern):
    """Even against odd positions called the first of these right-skewed."""
    assert truncated_nonpositivity(pattern * 300, "median").verdict == "not contradicted"


@cases("name", ALL)
def test_symmetry_is_judged_to_both_sides_with_half_the_risk_each(name):
    x = drawn(name, 1500) + 4.0
    found = judge(x, "symmetric", 0.02)
    right, left = judge(x, "median", 0.01), judge(-x, "median", 0.01)
    assert bool(found) == (bool(right) and bool(left)) == (name in SYMMETRIC)
    assert found.mirrored == (name in LEFT) or name in SYMMETRIC
    assert found.confidence == pytest.approx(0.98)
    if name in LEFT:
        assert (found.about, found.mean) == (-left.about, -left.mean)
        assert (found.limit, found.statistic) == (left.limit, left.statistic)
        assert f"about the median (at least {found.about:.4g}): CONTRADICTED" in str(found)
        assert "add up to less than 0" in str(found)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_rewards_are_rarely_called_asymmetric(name):
    rng = np.random.default_rng(11)
    wrong = sum(not judge(SYMMETRIC[name](rng, 400) - 3.0, "symmetric", 0.2) for _ in range(SAMPLES)) / SAMPLES
    assert wrong <= 0.2 + 4 * math.sqrt(0.16 / SAMPLES)


def test_laws_whose_mean_is_0_thanks_to_rare_losses_are_the_known_weakness():
    """Stated in the module: the bulk of c - Pareto lies above 0, and a sample may have missed what makes its mean 0."""
    rng = np.random.default_rng(5)
    wrong = {}
    for tail in (1.2, 2.5):
        centre = tail / (tail - 1)
        draws = (centre - rng.pareto(tail, 500) - 1.0 for _ in range(200))
        wrong[tail] = sum(not truncated_nonpositivity(x) for x in draws) / 200
    assert 0.2 < wrong[1.2] < 0.5
    assert wrong[2.5] < 0.05


@given(
    st.lists(st.floats(-100.0, 100.0, width=32), min_size=1, max_size=60),
    st.sampled_from([1e-200, 0.25, 8.0, 2.0**900]),
)
@settings(max_examples=amount(30, 60), deadline=None)
def test_units_do_not_matter(values, unit):
    x = np.array(values)
    one, other = truncated_nonpositivity(x, 1.0), truncated_nonpositivity(x * unit, unit)
    assert (one.verdict, one.count) == (other.verdict, other.count)
    np.testing.assert_allclose(one.statistic, other.statistic, rtol=1e-9, atol=1e-12)


def test_words():
    few = truncated_nonpositivity([1.0, 2.0])
    assert (few.verdict, bool(few)) == ("too few values", True)
    assert str(few) == "about 0: too few values (2) to tell"
    assert str(truncated_nonpositivity([1.0] * 5, "median")) == "about the median: too few values (5) to tell"
    clear = truncated_nonpositivity([1.0] * 100)
    assert not clear
    assert str(clear) == "about 0: CONTRADICTED (values add up to more than 0, z = 11.8 against 3.66)"
    assert truncated_nonpositivity([0.0] * 100).verdict == "not contradicted"
    assert str(truncated_nonpositivity([3.0] * 100, "median")).endswith("not contradicted (no value differs from it)")
    far = truncated_nonpositivity(np.append(np.full(40, 5.0), np.full(200, -1.0)), 0.0)
    assert "the 40 values farther than 1 from it" in str(far)
    assert truncated_nonpositivity([1e308, -1e308] * 50).verdict == "not contradicted"


@cases(
    ("x", "given", "match"),
    [
        ([], {}, "at least one number"),
        ([1.0, math.nan], {}, r"x\[1\] = nan"),
        ([math.inf], {}, r"x\[0\] = inf"),
        ("abc", {}, "x = 'abc'"),
        (["a"], {}, "an array of numbers"),
        ([[1.0]], {}, "one row"),
        (3.0, {}, "one row"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), {}, "masked"),
        ([1.0], {"about": "mean"}, "about = 'mean'"),
        ([1.0], {"about": math.inf}, "about = inf"),
        ([1.0], {"about": None}, "about = None"),
        ([1.0], {"confidence": 1.0}, r"confidence = 1.0 must be"),
        ([1.0], {"confidence": "high"}, "confidence = 'high'"),
    ],
)
def test_invalid_input(x, given, match):
    with pytest.raises(InvalidInput, match=match):
        truncated_nonpositivity(x, **given)


def test_costs_are_tested_in_their_own_sign():
    losses = drawn("negated_pareto_1.5", 2000)
    for about in (0.0, 2.0, "median"):
        plain = truncated_nonpositivity(losses, about)
        costs = truncated_nonpositivity(-losses, about if about == "median" else -about, minimize=True)
        assert costs.mirrored
        assert costs.mirror() == plain
    assert str(truncated_nonpositivity(-losses, minimize=True)).startswith("about 0: not contradicted")
    assert not truncated_nonpositivity(losses, minimize=True), "the negative control"
    for value in (1, "yes", None):
        assert_invalid(lambda value=value: truncated_nonpositivity(losses, minimize=value), "minimize", "True or False")

"""Published and independently computed reference values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robandit import estimators as est
from robandit.errors import InvalidInput
from robandit.estimators.infinite_variance import tuning

X = [0.3, -1.2, 2.5, 0.1, -4, 1.1, 0.7, 3.3]
SECOND = [(-1) ** j * j for j in range(1, 31)] + [0, 0]
FIRST = [-0.5 * j for j in range(1, 33)]


def at(time: int) -> float:
    """The delta for which log(1/delta') = 2 log t with half of delta on each side."""
    return 2.0 * time**-2.0


@pytest.mark.parametrize(
    ("tau", "threshold", "kept", "mean", "variance", "index", "tight"),
    [
        (2, 27.565902165889, 32, -8.25, 22.0, 11.353952064260, 2.069996832050),
        (5, 3.502118706314, 7, -0.4375, 0.931451612903, 5.376838313206, 2.638163572543),
    ],
)
def test_adar_ucb(tau, threshold, kept, mean, variance, index, tight):
    assert est.trimming_threshold(SECOND, tau**-3.0) == pytest.approx(threshold, abs=1e-9)
    assert est.trimmed_mean(FIRST, threshold=threshold) == pytest.approx(mean, abs=1e-12)
    assert est.trimmed_variance(FIRST, threshold=threshold) == pytest.approx(variance, abs=1e-9)
    both = np.empty(64)
    both[0::2], both[1::2] = FIRST, SECOND
    for bonus, upper in (("paper", index), ("tight", tight)):
        estimate = est.adaptive_trimmed_mean(both, delta=2.0 * tau**-3.0, bonus=bonus)
        assert estimate.upper == pytest.approx(upper, abs=1e-9)
        assert estimate.lower == -math.inf
        assert estimate.value == pytest.approx(mean, abs=1e-12)
        assert estimate.threshold == pytest.approx(threshold, abs=1e-9)
        assert estimate.share_trimmed == 1 - kept / 32
        assert estimate.n == 64
        assert "Lemma 2" in estimate.assumed


def test_truncated_mean():
    estimate = est.truncated_mean(X, eps=0.5, u=2.0, delta=at(10))
    assert estimate.value == pytest.approx(0.275, abs=1e-12)
    assert estimate.upper - estimate.value == pytest.approx(5.282001913815, abs=1e-9)
    assert estimate.value - estimate.lower == pytest.approx(5.282001913815, abs=1e-9)


def test_median_of_means():
    assert est.median_of_means_blocks(8, at(10)) == 4
    assert est.median_of_means(X, delta=at(10)).value == pytest.approx(0.425, abs=1e-12)
    assert est.median_of_means_width(8, eps=0.5, v=2.0, delta=at(10)) == pytest.approx(17.597180219589, abs=1e-9)


def test_median_of_means_gives_its_bounds_only_where_its_lemma_holds():
    short = est.median_of_means(X, delta=at(10), eps=0.5, v=2.0)
    assert (short.lower, short.upper) == (-math.inf, math.inf)
    assert short.value == pytest.approx(0.425)
    assert "needs n >= 74" in short.assumed
    enough = est.median_of_means(X * 10, delta=at(10), eps=0.5, v=2.0)
    width = est.median_of_means_width(80, eps=0.5, v=2.0, delta=at(10))
    assert enough.upper - enough.value == pytest.approx(width)
    assert enough.delta == at(10)
    assert est.median_of_means(X, delta=at(10)).delta is None


def test_why_median_of_means_needs_enough_values():
    """Two values, delta = 1e-5: the printed formula fails ten times as often as it says."""
    delta, odd = 1e-5, 1 / 6000
    # x = +-a with probability odd, else 0, scaled to v = 1: the mean of two is beyond the width if any is not zero.
    a = odd**-0.5
    width = est.median_of_means_width(2, eps=1.0, v=1.0, delta=delta)
    assert width < a / 2
    assert 2 * odd - odd**2 > 10 * delta


def test_catoni():
    x = [3 * math.sin(7 * j) + 10 * (j == 5) for j in range(1, 41)]
    estimate = est.catoni_mean(x, v=2.0, delta=at(10))
    assert estimate.value == pytest.approx(0.405941004912, abs=1e-9)
    assert estimate.upper - estimate.value == pytest.approx(0.959705182438, abs=1e-9)
    assert est.catoni_root(x, 0.297690718863) == pytest.approx(0.405941004912, abs=1e-9)
    tight = est.catoni_mean(x, v=2.0, delta=at(10), bonus="tight")
    assert tight.value == estimate.value
    assert tight.upper - tight.value == pytest.approx(math.sqrt(4 * 2 * math.log(10) / (40 - 4 * math.log(10))))


def test_p_robust():
    assert est.p_robust_mean(X[:5], p=1.5, c=1.0).value == pytest.approx(-0.355483912972, abs=1e-9)
    for p, b in [(1.1, 0.718858069766), (1.3, 0.518629852667), (1.5, 0.438691337651), (1.9, 0.440557234800), (2, 0.5)]:
        assert est.b_p(p) == pytest.approx(b, abs=1e-12)


def test_theorem_6_uses_the_smaller_half():
    x = np.random.default_rng(0).normal(size=201)
    estimate = est.adaptive_trimmed_mean(x, delta=0.1, eps=0.5, u=3.0)
    width = 5.6 * 3 ** (2 / 3) * (math.log(40) / 100) ** (1 / 3)
    assert estimate.upper - estimate.value == pytest.approx(width)
    assert estimate.value - estimate.lower == pytest.approx(width)
    assert "Theorem 6" in estimate.assumed


def test_order_two_is_catoni():
    """With eps = 1 the influence function is Catoni's own."""
    x = np.random.default_rng(1).standard_t(2.5, 500)
    estimate = est.infinite_variance_catoni(x, eps=1.0, v=5.0, delta=0.05, tau0=1.0)
    share = math.log(40) / 500
    assert estimate.upper - estimate.value == pytest.approx(2 * math.sqrt(2 * 5 * share / (1 - 4 * share)))
    alpha = math.sqrt(2 * share * (1 - 4 * share) / 5)
    assert estimate.value == pytest.approx(est.catoni_root(x, alpha), abs=1e-12)


def test_the_chosen_tau0_is_the_narrowest():
    for eps in (0.1, 0.5, 1.0):
        for n in (2_000, 100_000):
            best = tuning(n, math.log(40), eps)
            tried = 0
            for tau0 in best.tau0 * np.geomspace(0.5, 2, 41):
                try:
                    assert best.width <= tuning(n, math.log(40), eps, tau0).width * (1 + 1e-12)
                    tried += 1
                except InvalidInput:
                    continue
            assert tried > 20


def test_sample_mean():
    estimate = est.sample_mean([1.0, 2.0, 3.0, 6.0], delta=0.25, v=4.0)
    assert (estimate.value, estimate.lower, estimate.upper) == (3.0, 1.0, 5.0)
    assert est.sample_mean([1.0, 2.0]).upper == math.inf


def test_split():
    """Alternate values unless a seed shuffles; X has one more when the number is odd."""
    x = np.concatenate([np.full(60, -1.0), np.full(61, -3.0)])
    plain = est.adaptive_trimmed_mean(x, delta=0.5)
    assert plain.value == pytest.approx((30 * -1.0 + 31 * -3.0) / 61)
    once, again = (est.adaptive_trimmed_mean(x, delta=0.5, seed=7) for _ in range(2))
    assert (once.value, once.upper) == (again.value, again.upper)
    assert len({est.adaptive_trimmed_mean(x, delta=0.5, seed=s).value for s in range(5)}) > 1
    assert est.adaptive_trimmed_mean(x, delta=0.5, seed=np.int64(7)).value == once.value


def test_constant_and_single_samples():
    assert est.sample_mean([4.0]).value == 4.0
    assert est.catoni_root([4.0], 1.0) == 4.0
    assert est.catoni_root([0.1] * 9, 3.0) == 0.1
    assert est.median_of_means([4.0], delta=0.1).value == 4.0
    assert est.trimmed_mean([4.0], threshold=4.0) == 4.0
    assert est.trimmed_mean([4.0], threshold=3.9) == 0.0
    assert est.trimmed_mean([4.0], threshold=math.inf) == 4.0
    assert est.trimmed_variance([3.0, 3.0, 3.0], threshold=5.0) == 0.0
    constant = est.adaptive_trimmed_mean([-2.0] * 200, delta=0.1)
    assert constant.value == -2.0
    # Every value is equal, so the root is above it: M^2 a = n x^2.
    a = (1 + math.sqrt(2)) ** 2 * math.log(20)
    assert constant.threshold == pytest.approx(2.0 * math.sqrt(100 / a))

"""KLinf against closed forms, another solver, its own inverse, and a brute-force search over laws."""

import math
from itertools import pairwise

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import raises
from robandit import laws
from robandit.errors import InvalidInput, NotApplicable
from robandit.problems import negated_pareto, student_t
from robandit.theory import klinf as module_function
from robandit.theory import klinf_upper, law_nodes, regret_bound
from robandit.theory.divergence import is_resolved, klinf

SAMPLE = [-1.0, 0.0, 0.5, 2.0]


def test_values_computed_by_other_means():
    # algorithms.md 13: from the dual as Agrawal et al. print it
    assert klinf(SAMPLE, 1.0, eps=0.5, u=3.0) == pytest.approx(0.04210888, abs=1e-8)
    assert klinf(SAMPLE, 1.5, eps=0.5, u=3.0) == pytest.approx(0.24634225, abs=1e-8)
    assert klinf_upper(SAMPLE, eps=0.5, u=3.0, budget=0.1) == pytest.approx(1.21817448, abs=1e-8)
    assert klinf_upper(SAMPLE, eps=0.5, u=3.0, budget=0.4) == pytest.approx(1.66280543, abs=1e-8)
    assert module_function is klinf


@cases("eps", [0.01, 0.3, 0.5, 1.0])
@cases("m", [1e-3, 0.4, 0.99])
def test_closed_form_of_a_constant(eps, m):
    # The best law keeps as much at 0 as it can: the rest, m / y, is at the y with m y^eps = bound.
    bound = 2.5
    mean = m * bound ** (1.0 / (1.0 + eps))
    moved = (mean ** (1.0 + eps) / bound) ** (1.0 / eps)
    assert klinf([0.0], mean, eps=eps, u=bound) == pytest.approx(-math.log1p(-moved), rel=1e-9, abs=1e-14)


def test_closed_form_of_a_distance_to_the_class():
    # 0 or 3 with equal chances, E X^2 <= 1, any mean. The moment goes down to 9 q = 1 by moving mass from 3 to 0.
    q = 1.0 / 9.0
    distance = 0.5 * math.log(0.5 / q) + 0.5 * math.log(0.5 / (1.0 - q))
    for mean in (-5.0, -1.0, 0.0, 1.0 / 3.0):
        assert klinf([0.0, 3.0], mean, eps=1.0, u=1.0) == pytest.approx(distance, rel=1e-12)
    assert klinf([0.0, 3.0], 0.34, eps=1.0, u=1.0) > distance


def test_no_law_on_a_grid_is_nearer():
    """Primal search: weights on the sample and on a grid of other places, by minimising the divergence under constraints."""
    optimize = pytest.importorskip("scipy.optimize")
    x, eps, bound, m = np.array(SAMPLE), 0.5, 3.0, 1.0
    places = np.concatenate([x, np.geomspace(2.1, 60.0, 60)])
    count, power = len(x), np.abs(places) ** (1.0 + eps)
    start = np.full(len(places), 1e-3)
    start[:count] = (1.0 - 1e-3 * 60) / count
    result = optimize.minimize(
        lambda w: -np.log(np.maximum(count * w[:count], 1e-9)).mean(),
        start,
        jac=lambda w: np.concatenate([-1.0 / (count * np.maximum(w[:count], 1e-9)), np.zeros(len(places) - count)]),
        bounds=[(0.0, 1.0)] * len(places),
        constraints=[
            {"type": "eq", "fun": lambda w: w.sum() - 1.0},
            {"type": "ineq", "fun": lambda w: w @ places - m},
            {"type": "ineq", "fun": lambda w: bound - w @ power},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success
    value = klinf(x, m, eps=eps, u=bound)
    assert value - 1e-6 <= result.fun <= value * 1.01  # the grid is a subset of all laws, and a fine one


def cases(count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        eps = rng.uniform(0.02, 1.0)
        x = rng.standard_t(1.5, rng.integers(1, 50)) * rng.uniform(0.2, 3.0)
        bound = float((np.abs(x) ** (1.0 + eps)).mean() * rng.uniform(0.5, 3.0))
        yield x, float(eps), bound, float(10.0 ** rng.uniform(-3.0, 1.0))


def test_it_inverts_the_index_of_klinf_ucb():
    outside = 0
    for x, eps, bound, budget in cases(60):
        upper = klinf_upper(x, eps=eps, u=bound, budget=budget)
        if math.isinf(upper):
            outside += 1
            assert klinf(x, -1e9, eps=eps, u=bound) > budget
        else:
            assert klinf(x, upper, eps=eps, u=bound) == pytest.approx(budget, rel=1e-8)
    assert 0 < outside < 30


def test_scale_and_order():
    for x, eps, bound, budget in cases(15, seed=1):
        m = 0.7 * bound ** (1.0 / (1.0 + eps))
        value = klinf(x, m, eps=eps, u=bound)
        for s in (1e-6, 1e6):
            scaled = klinf(s * x, s * m, eps=eps, u=s ** (1.0 + eps) * bound)
            assert scaled == pytest.approx(value, rel=1e-7, abs=1e-12)
        assert klinf(np.concatenate([x, x]), m, eps=eps, u=bound) == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert klinf(x[::-1], m, eps=eps, u=bound) == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert klinf(x, 0.8 * m, eps=eps, u=bound) <= value + 1e-12
        assert klinf(x, m, eps=eps, u=1.2 * bound) <= value + 1e-12
        assert klinf_upper(x, eps=eps, u=bound, budget=budget) <= klinf_upper(x, eps=eps, u=bound, budget=1.1 * budget)


def test_ends():
    assert klinf(SAMPLE, 0.3, eps=0.5, u=3.0) == 0.0  # in the class, with a mean of 0.375
    assert klinf(laws.Gaussian(1.0, 1.0), 1.0, eps=1.0, u=2.0) == 0.0
    assert klinf(laws.Gaussian(1.0, 1.0), 1.0, eps=1.0, u=1.9) > 1e-4  # outside, though the mean is there
    assert klinf(SAMPLE, 3.0, eps=0.5, u=3.0) == math.inf
    assert klinf([2.0, 2.0], 2.0, eps=1.0, u=4.0) == 0.0
    assert klinf([2.0, 1.0], 2.0, eps=1.0, u=4.0) == math.inf
    assert klinf([1.9], 2.0, eps=1.0, u=3.9) == math.inf
    near = [klinf(SAMPLE, (1.0 - d) * 3.0 ** (1 / 1.5), eps=0.5, u=3.0) for d in (1e-3, 1e-6, 1e-9)]
    assert near == sorted(near)
    assert near[-1] < 40.0  # finite as long as some law has the mean
    # an outlier that the class cannot believe: of 10 values one is 1e50
    far = klinf([0.0] * 9 + [1e50], 0.1, eps=1.0, u=1.0)
    assert far == pytest.approx(0.1 * math.log(0.1 * 1e100) + 0.9 * math.log(0.9), rel=1e-2)


def test_atoms_count_with_their_weights():
    law = laws.Discrete(values=(-1.0, 2.0), probabilities=(0.75, 0.25))
    for given in ([-1.0, -1.0, -1.0, 2.0], laws.Empirical([-1.0, 2.0, -1.0, -1.0]), law):
        assert klinf(given, 0.5, eps=0.5, u=3.0) == pytest.approx(klinf(law, 0.5, eps=0.5, u=3.0), rel=1e-10)


CONTINUOUS = [
    (-laws.Pareto(tail=2.0, scale=0.5), -0.5, 0.5, 2.0),
    (laws.StudentT(dof=1.8), 0.5, 0.5, 3.0),
    (laws.Gaussian(0.0, 1.0), 0.5, 1.0, 1.5),
    (laws.Gaussian(0.0, 1.0), -5.0, 1.0, 0.5),
    (laws.ZeroInflated(laws.StudentT(dof=1.5), 0.3), 0.8, 0.2, 3.0),
    (3.0 - laws.Lomax(tail=1.6), 2.4, 0.3, 4.5),
    (laws.Mixture([laws.Gaussian(-1.0, 0.3), laws.Constant(0.5)], [0.4, 0.6]), 0.4, 0.7, 1.2),
]


@pytest.mark.parametrize(("law", "m", "eps", "bound"), CONTINUOUS, ids=[repr(case[0])[:30] for case in CONTINUOUS])
def test_laws_with_twice_the_nodes_and_as_fine_samples(law, m, eps, bound, monkeypatch):
    value = klinf(law, m, eps=eps, u=bound)
    assert value > 1e-3
    sampled = [klinf(law.sample(20_000, seed=seed), m, eps=eps, u=bound) for seed in range(6)]
    spread = float(np.std(sampled, ddof=1)) / math.sqrt(6)
    assert abs(value - np.mean(sampled)) < 6.0 * spread + 1e-3 * value  # t with 5 degrees: 2e-3 beyond 6, less the bias
    for nodes in (801, 1601):
        monkeypatch.setattr(law_nodes, "NODES", nodes)
        assert klinf(law, m, eps=eps, u=bound) == pytest.approx(value, rel=1e-5)


SMALL = [
    (negated_pareto, -1.0, 1.5, 0.45),
    (student_t, 0.0, 1.5, 0.45),
    (student_t, 0.0, 1.8, 0.3),
]


@pytest.mark.parametrize(("family", "best", "tail", "eps"), SMALL)
def test_small_gaps_under_heavy_tails(family, best, tail, eps, monkeypatch):
    """The value falls like gap^((1+eps)/eps) or slower, and has its digits all the way down."""
    values = []
    for gap in (1e-2, 1e-3, 1e-4, *amount((), (1e-6,))):
        problem = family([best, best - gap], tail)
        law, u = problem.laws[1], problem.u(eps)
        values.append(klinf(law, best, eps=eps, u=u))
        for name, other in (("NODES", 1600), ("DEPTH", 200.0), ("OUT", 30.0)):
            with monkeypatch.context() as changed:
                changed.setattr(law_nodes, name, other)
                assert klinf(law, best, eps=eps, u=u) == pytest.approx(values[-1], rel=1e-5, abs=0.0)
        assert is_resolved(values[-1], law, best, eps=eps, u=u)
    steps = [10.0 * a / b for a, b in pairwise(values[:3])]
    assert 10.0**2 < steps[0] < 10.0 ** (1.0 + (1.0 + eps) / eps)
    assert steps[1] == pytest.approx(steps[0], rel=0.1)


def test_negated_pareto_by_its_quantiles():
    """x = -scale exp(s / tail), s exponential: Gauss's rule on panels up to probabilities of exp(-120), and a plain search."""
    optimize = pytest.importorskip("scipy.optimize")
    problem, eps = negated_pareto([-1.0, -1.001], 1.5), 0.45
    u = problem.u(eps)
    unit = u ** (1.0 / (1.0 + eps))
    t, w = np.polynomial.legendre.leggauss(30)
    s = (np.arange(60)[:, None] * 2.0 + 1.0 + t).ravel()
    far = 1.001 / 3.0 / unit * np.exp(s / 1.5)
    weight = np.tile(w, 60) * np.exp(-s)

    def dual(l1, l2):
        return 1e11 * np.sum(weight * np.log1p(l1 * (far - 1.0 / unit) + l2 * (far**1.45 - 1.0)))

    def pair(y):  # the logarithm's argument is zero at y, and nowhere negative
        l1 = 1.0 / (y + 1.0 / unit - y**-eps * (y**1.45 - 1.0) / 1.45)
        return l1, l1 * y**-eps / 1.45

    result = optimize.minimize_scalar(lambda s: -dual(*pair(math.exp(s))), bounds=(10.0, 40.0), options={"xatol": 1e-9})
    l1, l2 = pair(math.exp(result.x))
    assert dual(l1, 1.001 * l2) < dual(l1, l2)  # it is best to be at that end
    assert klinf(problem.laws[1], -1.0, eps=eps, u=u) == pytest.approx(-1e-11 * result.fun, rel=1e-6)


def test_values_that_are_too_small():
    problem = student_t([0.0, -1e-12], 1.8)
    law, u = problem.laws[1], problem.u(0.5)
    assert not is_resolved(klinf(law, 0.0, eps=0.5, u=u), law, 0.0, eps=0.5, u=u)
    stable = laws.Stable(alpha=1.8, loc=-0.1)  # its tails are cut
    assert not is_resolved(1e-4, stable, 0.0, eps=0.5, u=2.0)
    assert is_resolved(1e-2, stable, 0.0, eps=0.5, u=2.0)
    assert not is_resolved(1e-60, law, 1.0, eps=0.01, u=u)
    assert is_resolved(1e-12, laws.Bernoulli(0.5), 0.6, eps=0.5, u=1.0)
    with pytest.raises(NotApplicable, match="too small to be accurate"):
        regret_bound(rb.KLinfUCB(), problem, 1000, eps=0.5)
    result = regret_bound(rb.KLinfUCB(), negated_pareto([-1.0, -1.0001], 1.5), 1000, eps=0.45)
    assert result.instance == pytest.approx(
        (1.0 + result.policy.batch) * 1e-4 * math.log(1000) / 1.6585681e-14, rel=1e-5
    )


def test_a_law_is_its_quantiles():
    # Pareto's quantiles are explicit; the midpoint rule with n of them is off by O(1/n).
    n = 200_000
    x = -0.5 * ((np.arange(n) + 0.5) / n) ** (-0.5)
    value = klinf(-laws.Pareto(tail=2.0, scale=0.5), -0.5, eps=0.5, u=2.0)
    assert klinf(x, -0.5, eps=0.5, u=2.0) == pytest.approx(value, abs=5.0 / n)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"x": []}, "at least one number"),
        ({"x": [1.0, math.nan]}, r"x\[1\] = nan"),
        ({"mean": math.inf}, "mean = inf"),
        ({"eps": 0.0}, "eps = 0.0"),
        ({"eps": 1.5}, "eps = 1.5"),
        ({"eps": None}, "eps = None"),
        ({"u": 0.0}, "u = 0.0"),
    ],
)
def test_invalid_arguments(change, match):
    given = {"x": SAMPLE, "mean": 1.0, "eps": 0.5, "u": 3.0} | change
    with pytest.raises(InvalidInput, match=match):
        klinf(given.pop("x"), given.pop("mean"), **given)
    if "mean" not in change:
        given = {"x": SAMPLE, "eps": 0.5, "u": 3.0, "budget": 1.0} | change
        with pytest.raises(InvalidInput, match=match):
            klinf_upper(given.pop("x"), **given)
    with raises(InvalidInput, parameter="budget", rule="a finite number >= 1e-12"):
        klinf_upper(SAMPLE, eps=0.5, u=3.0, budget=0.0)


def test_budgets_that_rounding_would_hide():
    mean = float(np.mean(SAMPLE))
    unit = 3.0 ** (1 / 1.5)
    uppers = [klinf_upper(SAMPLE, eps=0.5, u=3.0, budget=b) for b in (1e-12, 2e-12, 1e-11, 1e-9)]
    assert uppers == sorted(uppers)
    for budget, upper in zip((1e-12, 1e-9), (uppers[0], uppers[-1]), strict=True):
        # the best law of this class moves a mass of about the budget: to a relative 1e-4 of what it gains
        assert klinf(SAMPLE, upper - 1e-3 * (upper - mean), eps=0.5, u=3.0) < budget
        assert klinf(SAMPLE, upper + 1e-3 * (upper - mean), eps=0.5, u=3.0) > budget
        assert upper - mean < 2.0 * unit * budget ** (1 / 3)
    for budget in (9e-13, 1e-17, 1e-100, 1e-300):
        with pytest.raises(InvalidInput, match=rf"budget = {budget!r} must be a finite number >= 1e-12; a smaller"):
            klinf_upper(SAMPLE, eps=0.5, u=3.0, budget=budget)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numpy_scalars(kind):
    value = klinf(SAMPLE, kind(1.0), eps=kind(0.5), u=kind(3.0))
    assert value == klinf(SAMPLE, 1.0, eps=0.5, u=3.0)
    upper = klinf_upper(SAMPLE, eps=kind(0.5), u=kind(3.0), budget=kind(0.5))
    assert upper == klinf_upper(SAMPLE, eps=0.5, u=3.0, budget=0.5)


def test_values_whose_moment_overflows():
    # They count as 1e75 units. Nearly all goes to 1/2, and what is left of the moment says how much may stay.
    value = klinf([1e300] * 3, 0.5, eps=0.5, u=1.0)
    left = 1.5 * math.log(1e75) - math.log(1.0 - 0.5**1.5)
    assert value == klinf([1e75] * 3, 0.5, eps=0.5, u=1.0) == pytest.approx(left, rel=1e-12)


@pytest.mark.parametrize(("tail", "mean"), [(2.5, 0.5), (3.0, 1.0)])
def test_a_law_with_only_a_cdf(tail, mean, monkeypatch):
    """As stable laws are; here laws whose density gives the same number in another way."""
    law = laws.StudentT(dof=tail)
    by_density = klinf(law, mean, eps=0.5, u=4.0)
    monkeypatch.setattr(law_nodes, "has_density", lambda leaf: False)
    assert klinf(law, mean, eps=0.5, u=4.0) == pytest.approx(by_density, rel=1e-4)
    monkeypatch.setattr(law_nodes, "TAIL", 1e-3)  # cuts off so much that the value changes
    assert klinf(law, mean, eps=0.5, u=4.0) != pytest.approx(by_density, rel=1e-4)

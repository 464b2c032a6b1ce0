"""Quantile-UCB against the reference values of the research, and against sorted lists."""

import math

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.invalid import assert_invalid
from references.slow_quantile_ucb import SlowQuantileUCB, largest_probability, least_rank
from robandit import objectives
from robandit.checks import check_policy
from robandit.kernel.bins import edge
from robandit.policies._parts import binary_kl
from robandit.policies.quantile import quantile_ucb


# Reference values k(n, q, l) of the research.
@pytest.mark.parametrize(
    ("n", "q", "level", "k"),
    [(10, 0.5, 1, 3), (10, 0.5, 2, 2), (20, 0.95, 1, 18), (100, 0.95, 2, 91), (1000, 0.9, 4, 873)],
)
def test_reference_ranks(n, q, level, k):
    assert least_rank(n, q, level) == k
    assert [quantile_ucb.excluded(j, n, q, level) for j in (k - 1, k)] == [True, False]
    tree = quantile_ucb._fenwick(np.ones((1, n), dtype=np.int64))[0]  # one cost in each bin
    assert quantile_ucb.find(tree, n, q, level) == (k - 1, k - 1)


def test_the_bound_of_a_probability_is_that_of_the_slow_one():
    for share, n, level in [(0.0, 1, 1.0), (0.3, 10, 2.0), (0.95, 200, 0.5), (1.0, 5, 3.0)]:
        found = binary_kl.largest_probability(share, n, level)
        assert found == pytest.approx(largest_probability(share, n, level), abs=1e-12)


def costs_of(kind, rng):
    """Costs at edges of bins, which bins of any origin represent exactly."""
    size = edge(int(rng.integers(-300, 300)) if kind == "wide" else int(rng.integers(-12, 12)))
    sign = {"positive": 1, "negative": -1}.get(kind, int(rng.integers(-1, 2)))
    return sign * size


@pytest.mark.independent("QuantileUCB")
@pytest.mark.parametrize("kind", ["positive", "negative", "mixed", "wide"])
@pytest.mark.parametrize("q", [0.5, 0.95])
def test_decisions_are_those_of_sorted_lists(kind, q):
    """Also with rewards that come late or never, and with ties, which are common."""
    arms, rng = 4, np.random.default_rng(len(kind))
    live, slow = Live(rb.QuantileUCB(q=q, costs=True), arms), SlowQuantileUCB(arms, q)
    waiting = []
    for _ in range(400):
        arm = live.ask()
        expected = slow.ask()
        assert expected is None or arm == expected
        mark = live.issue(arm)
        slow.pulls[arm] += 1
        slow.open[arm] += 1
        waiting.append((arm, mark))
        for i in sorted(rng.choice(len(waiting), int(rng.integers(0, min(3, len(waiting)) + 1)), replace=False))[::-1]:
            arm, mark = waiting.pop(i)
            cost = costs_of(kind, rng)
            live.late(arm, -cost, mark)
            slow.costs[arm].append(cost)
            slow.open[arm] -= 1
    bounds = [-bound if slow.costs[arm] else math.nan for arm, bound in enumerate(map(slow.index, range(arms)))]
    np.testing.assert_allclose(live.describe()["index"], bounds, rtol=1e-15)
    assert max(map(slow.rank, range(arms))) > 5  # the bound was in use


def test_costs_and_rewards_are_mirrored():
    """The p5 of rewards is minus the p95 of costs."""
    rng = np.random.default_rng(3)
    costs, rewards = (
        rb.Bandit(["a", "b", "c"], rb.QuantileUCB(q=q), minimize=minimize, compile="now")
        for q, minimize in ((0.95, True), (0.05, False))
    )
    assert (costs.policy.costs, rewards.policy.costs) == (True, False)
    for _ in range(300):
        arm = costs.select()
        assert rewards.select() == arm
        cost = float(rng.lognormal())
        costs.update(arm, cost)
        rewards.update(arm, -cost)
    for one, other in zip(costs.estimates(), rewards.estimates(), strict=True):
        assert (one["quantile"], one["index"]) == (-other["quantile"], -other["index"])


def test_the_quantile_is_known_to_one_per_cent():
    rng = np.random.default_rng(1)
    values = rng.lognormal(size=1_001) * rng.choice([-1.0, 1.0], 1_001)
    for q in (0.05, 0.5, 0.9):
        live = Plain(rb.QuantileUCB(q=q, costs=True), 1)
        for value in values:
            live.tell(0, -value)
        exact = np.quantile(values, q, method="inverted_cdf")
        assert live.describe()["quantile"][0] == pytest.approx(-exact, rel=0.0101)


def test_nine_decades_take_8_kilobytes():
    live = Plain(rb.QuantileUCB(), 1)
    for exponent in np.linspace(-3, 6, 50):
        live.tell(0, -float(10.0**exponent))
    assert live.s.tree.nbytes < 8.3 * 1024 + 2 * 8 * quantile_ucb.MARGIN
    assert live.s.tree.dtype == np.int64


def test_the_largest_range_of_rewards():
    live, slow = Live(rb.QuantileUCB(q=0.5, costs=True), 1), []
    for cost in (0.0, 1e150, -1e-130, -1e150, 1e-130, 0.0, 5.0):
        live.tell(0, -cost)
        slow.append(cost)
    assert live.s.tree[0, 1:].any()
    assert quantile_ucb._cumulated(live.s.tree)[0, -1] == len(slow)
    assert live.describe()["quantile"][0] == 0.0


def coverage(law, q, n):
    rng = np.random.default_rng(7)
    low, high = objectives.ranks(n, q)
    samples = np.sort(law(rng, (amount(4_000, 40_000), n)), axis=1)
    ends = np.pad(samples, ((0, 0), (1, 1)), constant_values=((0, 0), (-math.inf, math.inf)))
    truth = np.quantile(law(rng, 4_000_000), q)
    return ((ends[:, low] <= truth) & (truth <= ends[:, high])).mean()


@pytest.mark.parametrize(("q", "n"), [(0.5, 25), (0.95, 40), (0.95, 300), (0.99, 100)])
def test_limits_cover_the_quantile(q, n):
    """At least 95 %, less 4 standard errors of 4,000 samples."""
    assert coverage(lambda rng, size: rng.pareto(1.2, size), q, n) > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 4_000)


def test_narrower_limits_do_not():
    """The negative control: the order statistics one rank closer."""
    low, high = objectives.ranks(40, 0.95)
    assert (low, high) == (35, 41)
    rng = np.random.default_rng(7)
    samples = np.sort(rng.pareto(1.2, (4_000, 40)), axis=1)
    truth = 0.05 ** (-1.0 / 1.2) - 1.0
    covered = ((samples[:, low + 1] <= truth) & (truth <= samples[:, 39])).mean()
    assert covered < 0.95 - 4 * math.sqrt(0.05 * 0.95 / 4_000)


def test_limits_of_an_arm_contain_the_exact_ones():
    """They are edges of bins, so they are wider by at most a bin."""
    rng = np.random.default_rng(5)
    for sign in (1.0, -1.0):
        policy = rb.QuantileUCB(q=0.9, costs=True)
        live = Plain(policy, 1)
        values = sign * rng.lognormal(size=500)
        for value in values:
            live.tell(0, -value)
        ordered, (low, high) = np.sort(values), objectives.ranks(500, 0.9)
        found = quantile_ucb.limits(policy, live.s, 0)
        exact = ordered[low - 1], ordered[high - 1]
        assert found[0] <= exact[0]
        assert exact[1] <= found[1]
        assert found == pytest.approx(exact, rel=0.0205)
    assert quantile_ucb.limits(policy, Plain(policy, 1).s, 0) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("count", "n", "limits"), [(0, 10, (0.0, 0.3085)), (3, 20, (0.0321, 0.3789)), (10, 10, (0.6915, 1.0))]
)
def test_limits_of_a_share_are_those_of_clopper_and_pearson(count, n, limits):
    assert objectives.share_limits(count, n) == pytest.approx(limits, abs=5e-5)


def test_it_learns_the_quantile_and_the_mean_does_not():
    """Arm "a" has the smaller p95 and the larger mean, by rare huge costs."""
    tail = rb.laws.Pareto(tail=1.5, scale=400.0)
    laws = [
        rb.laws.Mixture([rb.laws.Gaussian(mean=1.0, sd=0.1), tail], [0.97, 0.03]),
        rb.laws.Gaussian(mean=2.0, sd=0.1),
    ]
    problem = rb.Problem(laws, minimize=True)
    result = rb.simulate([rb.QuantileUCB(q=0.95), rb.AdaKLUCB()], problem, 2_000, 10, seed=0, progress=False)
    assert (result.pulls[0, :, 0] > 1_500).all()
    assert (result.pulls[1, :, 0] < 500).all()


@pytest.mark.parametrize("policy", [rb.QuantileUCB(q=0.95), rb.QuantileUCB(q=0.05, costs=False)], ids=repr)
def test_it_passes_the_checks_of_every_policy(policy):
    assert check_policy(policy) == []


@pytest.mark.parametrize("q", [0.0, 0.005, 0.9991, 1.0, 95, math.nan, True, "p95", None])
def test_a_level_out_of_range_is_refused(q):
    assert_invalid(lambda: rb.QuantileUCB(q=q), "q", "")

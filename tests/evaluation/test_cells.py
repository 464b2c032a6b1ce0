"""Draws of a cell's mean: their coverage for heavy tails, where Wald's interval fails, and small, tied and huge cells."""

import numpy as np
import pytest

from robandit.evaluation.cells import SMALL, cell_mean
from robandit.laws import Gaussian, LogNormal, Pareto


def drawn(values, weights=None, count=2000, seed=0):
    values = np.asarray(values, dtype=float)
    weights = None if weights is None else np.asarray(weights, dtype=float)
    return cell_mean(values, weights, count=count, rng=np.random.default_rng(seed))


def covers(found, mean):
    low, high = np.quantile(found.draws, [0.025, 0.975])
    return low <= mean <= high


@pytest.mark.parametrize("law", [Gaussian(mean=3.0, sd=1.0), LogNormal(mu=0.0, sigma=1.0), Pareto(tail=1.5)])
def test_intervals_cover_the_mean(law):
    # 200 samples: the standard error of a coverage of 95 % is 1.5 points.
    hits = [covers(drawn(law.sample(500, seed=seed), seed=seed), law.mean) for seed in range(200)]
    assert np.mean(hits) >= 0.95 - 3 * 0.0154


def test_wald_does_not_cover_the_mean_of_a_heavy_tail():
    """The control: the samples of the test above are hard."""
    law = Pareto(tail=1.5)
    samples = [law.sample(500, seed=seed) for seed in range(200)]
    hits = [abs(x.mean() - law.mean) <= 1.96 * x.std(ddof=1) / np.sqrt(500) for x in samples]
    assert np.mean(hits) < 0.88


def test_weights_remove_the_bias_of_choices_that_depend_on_the_reward():
    rng = np.random.default_rng(2)
    rewards = rng.standard_exponential(40_000)
    chance = np.where(rewards > 1.0, 0.8, 0.1)
    chosen = rng.random(rewards.size) < chance
    found, naive = drawn(rewards[chosen], 1.0 / chance[chosen]), drawn(rewards[chosen])
    assert covers(found, 1.0)
    assert not covers(naive, 1.0)
    assert found.effective < naive.effective == found.n


def test_equal_weights_are_no_weights():
    values = Pareto(tail=2.0).sample(300, seed=4)
    plain, weighted = drawn(values), drawn(values, np.full(300, 7.0))
    assert weighted.mean == pytest.approx(plain.mean)
    assert weighted.draws == pytest.approx(plain.draws)
    assert weighted.effective == pytest.approx(300.0)


def test_small_cells_get_a_student_law():
    values = np.arange(SMALL, dtype=float)
    draws = drawn(values, count=100_000).draws
    error = values.std(ddof=1) / np.sqrt(SMALL) * np.sqrt(SMALL / (SMALL - 1))
    assert (draws.mean(), draws.std()) == pytest.approx((12.0, error * np.sqrt(24 / 22)), rel=0.02)


def test_the_same_seed_gives_the_same_draws():
    values = Pareto(tail=1.5).sample(100, seed=0)
    assert drawn(values, seed=5).draws.tobytes() == drawn(values, seed=5).draws.tobytes()
    assert drawn(values, seed=5).draws.tobytes() != drawn(values, seed=6).draws.tobytes()


@pytest.mark.parametrize("values", [[2.0] * 40, [2.0, 2.0], [0.0] * 30])
def test_constant_cells_have_constant_draws(values):
    assert drawn(values).draws == pytest.approx(values[0])


def test_ties_at_a_threshold_belong_to_the_body():
    found = drawn([0.0] * 900 + [1.0] * 100)
    assert np.isnan([found.left, found.right]).all()
    assert found.draws.std() == pytest.approx(np.sqrt(0.09 / 1000), rel=0.1)


def test_the_heavier_tail_is_on_its_side():
    found = drawn(Pareto(tail=1.5).sample(5000, seed=1))
    assert found.right > 0.4 > found.left
    mirrored = drawn(-Pareto(tail=1.5).sample(5000, seed=1))
    assert mirrored.left > 0.4 > mirrored.right


@pytest.mark.parametrize("factor", [2.0**500, 2.0**-500])
def test_the_unit_does_not_matter(factor):
    values = Pareto(tail=1.5).sample(200, seed=0)
    assert drawn(values * factor).draws / factor == pytest.approx(drawn(values).draws)

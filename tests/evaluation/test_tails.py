"""The posterior of a tail: reference values (mpmath), and a grid that is fine enough near shape 1."""

import numpy as np
import pytest
from scipy.stats import genpareto

from robandit.evaluation.tails import log_likelihood, tail_posterior

EXCESSES = np.array([0.1, 0.5, 0.75, 2.0, 9.5])


def test_the_log_likelihood_has_its_reference_value():
    assert log_likelihood(EXCESSES, 0.4, 1.25) == pytest.approx(-9.11661620618419, rel=1e-14)


@pytest.mark.parametrize("xi", [-0.4, -1e-9, 0.0, 1e-3, 0.9])
def test_the_log_likelihood_is_that_of_scipy(xi):
    expected = genpareto.logpdf(EXCESSES, xi, scale=6.0).sum()
    assert log_likelihood(EXCESSES, xi, 6.0) == pytest.approx(expected, rel=1e-6)


def test_an_excess_beyond_the_end_is_impossible():
    assert log_likelihood(EXCESSES, -0.4, 1.0) == -np.inf


def test_posterior_means_have_their_reference_values():
    found = tail_posterior(EXCESSES)
    assert found.probability.sum() == pytest.approx(1.0)
    assert found.probability @ found.u**2 == pytest.approx(0.579939953106, rel=1e-4)  # E[1 - xi]
    assert found.probability @ found.mean_excess() == pytest.approx(3.99172043982, rel=2e-4)


def test_draws_have_the_mean_of_the_posterior():
    draws = tail_posterior(EXCESSES).draws(400_000, np.random.default_rng(1))
    assert draws.mean() == pytest.approx(3.99172, abs=4.0 * draws.std() / np.sqrt(draws.size))
    assert draws.std() > 1.0  # so that the tolerance is one


@pytest.mark.parametrize("xi", [-0.3, 0.2, 0.7])
def test_many_excesses_show_their_law(xi):
    sample = genpareto.rvs(xi, scale=2.0, size=4000, random_state=3)
    found = tail_posterior(sample)
    mean = found.probability @ (1.0 - found.u**2)
    assert mean == pytest.approx(xi, abs=4.0 * (1.0 + xi) / np.sqrt(4000))
    assert found.shape() == pytest.approx(mean, abs=0.05)


def test_the_scale_of_the_excesses_does_not_matter():
    one, other = tail_posterior(EXCESSES), tail_posterior(EXCESSES * 2.0**-600)
    assert one.probability == pytest.approx(other.probability, rel=1e-9, abs=1e-300)

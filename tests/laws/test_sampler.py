from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.law_examples import LAWS
from robandit.checks.laws import check_law, check_law_sampler
from robandit.kernel import compiled
from robandit.kernel.random import streams
from robandit.laws import (
    Constant,
    Discrete,
    Empirical,
    Gaussian,
    Law,
    Lomax,
    Mixture,
    Pareto,
    Stable,
    ZeroInflated,
    tabulate,
)
from robandit.laws.table import CONSTANT, EMPIRICAL, PARETO, fill


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_every_law_passes_its_checks(law: Law) -> None:
    check_law(law)


def test_the_table_of_a_negated_pareto() -> None:
    table = tabulate([-Pareto(1.5, scale=2.0), Constant(-3.0)])
    assert table.code.tolist() == [PARETO, CONSTANT]
    assert table.start.tolist() == [0, 1, 2]
    assert table.par[0].tolist() == [1.0, 0.0, -2.0, 1.0 / 1.5, 0.0, 0.0, 0.0, 0.0]
    assert table.par[1, 1] == -3.0
    assert [a.dtype for a in table] == [np.int64, np.float64, np.int64, np.float64]
    assert all(a.flags.c_contiguous and a.size for a in table)


def test_the_table_of_mixtures() -> None:
    inner = ZeroInflated(-Lomax(1.5), 0.5)
    table = tabulate([Mixture((inner, Gaussian()), (0.5, 0.5)) + 1.0, Mixture((Gaussian(), Pareto(1.5)), (0.0, 1.0))])
    assert table.start.tolist() == [0, 3, 4]
    assert table.par[:3, 0].tolist() == [0.25, 0.5, 1.0]
    assert table.par[:3, 1].tolist() == [1.0, 2.0, 1.0]
    assert table.code[3] == PARETO


def test_a_sample_that_arms_share_is_kept_once() -> None:
    recorded = Empirical(np.arange(100.0))
    table = tabulate([recorded, -recorded, Discrete((1.0, 2.0), (0.5, 0.5)), recorded + 1.0])
    assert table.pool.size == 104
    assert table.par[:, 5].tolist() == [0.0, 0.0, 100.0, 0.0]
    assert table.code[1] == EMPIRICAL


def test_one_stream_serves_every_arm_of_a_table() -> None:
    laws: list[Law] = [-Pareto(1.5), Gaussian(), Empirical([1.0, 2.0])]
    table = tabulate(laws)
    for arm, law in enumerate(laws):
        out = np.empty(100)
        args = (*table, arm, streams(np.random.SeedSequence(5), 1)[0], out)
        compiled(fill, label="the law sampler", args=args)(*args)
        np.testing.assert_array_equal(out, law.sample(100, 5))


def test_seeds() -> None:
    law = Gaussian()
    assert law.sample(5, 1).tobytes() == law.sample(5, np.random.SeedSequence(1)).tobytes()
    assert law.sample(5, 1).tobytes() == law.sample(10, 1)[:5].tobytes()
    assert law.sample(5, 1).tobytes() != law.sample(5, 2).tobytes()
    assert law.sample(0, 1).size == 0


def test_zeros_are_exact_and_positive() -> None:
    for law in (ZeroInflated(-Pareto(1.5), 0.5), -ZeroInflated(Pareto(1.5), 0.5), Constant(-0.0), -Constant(0.0)):
        sample = law.sample(1000, 0)
        zeros = sample[sample == 0.0]
        assert zeros.size > 400
        assert not np.signbit(zeros).any()


@pytest.mark.parametrize("tail", [1.45, 1.55])
def test_a_slightly_wrong_law_is_rejected(tail: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the sample of another tail, 0.05 away."""
    sample = Pareto(tail).sample
    monkeypatch.setattr(Pareto, "sample", lambda self, size, seed: sample(size, seed))
    with pytest.raises(AssertionError, match="away from the cdf"):
        check_law_sampler(Pareto(1.5), size=200_000)


def test_the_right_law_is_accepted_at_that_size() -> None:
    check_law_sampler(Pareto(1.5), size=200_000)


@pytest.mark.parametrize("law", [Stable(1.5, 0.5), Stable(1.01, 1.0)], ids=repr)
def test_stable_samples(law: Law) -> None:
    sample = law.sample(50_000, 3)
    points = np.quantile(sample, np.linspace(0.02, 0.98, 25))
    share = np.searchsorted(np.sort(sample), points, side="right") / sample.size
    bound = math.sqrt(math.log(2.0 / 1e-6) / (2.0 * sample.size))
    assert np.max(np.abs(share - law.cdf(points))) < bound
    # negative control: a shift by a tenth of the interquartile range is seen
    shift = 0.1 * float(np.quantile(sample, 0.75) - np.quantile(sample, 0.25))
    assert np.max(np.abs(share - law.cdf(points + shift))) > bound


def test_a_mean_within_chebyshev() -> None:
    law = -Pareto(4.0)
    sample = law.sample(100_000, 1)
    assert abs(sample.mean() - law.mean) < math.sqrt(law.variance / 1e5 / 1e-4)
    assert abs(sample.mean() - (law.mean - 0.5)) > math.sqrt(law.variance / 1e5 / 1e-4)

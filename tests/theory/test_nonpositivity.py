"""One question for laws and samples: each gets the answer of the part that knows."""

import pytest

from helpers.invalid import raises
from robandit import diagnostics, laws
from robandit.errors import InvalidInput
from robandit.theory import truncated_nonpositivity


@pytest.mark.parametrize(
    ("law", "zero", "median"),
    [
        (-laws.Pareto(tail=1.5), True, True),
        (laws.Pareto(tail=1.5), False, False),
        (laws.StudentT(dof=2.0, loc=1.0), False, True),
        (laws.StudentT(dof=2.0, loc=-1.0), True, True),
    ],
)
def test_laws(law, zero, median):
    assert truncated_nonpositivity(law) == law.truncated_nonpositivity()
    assert truncated_nonpositivity(law).holds is zero
    assert truncated_nonpositivity(law, "median").holds is median
    sample = law.sample(4000, seed=3)
    assert bool(truncated_nonpositivity(sample)) is zero
    assert bool(truncated_nonpositivity(sample, "median")) is median


def test_samples_carry_their_confidence():
    sample = laws.StudentT(dof=2.0).sample(500, seed=1)
    assert truncated_nonpositivity(sample) == diagnostics.truncated_nonpositivity(sample)
    result = truncated_nonpositivity(sample, 0.1, confidence=0.9)
    assert result == diagnostics.truncated_nonpositivity(sample, 0.1, confidence=0.9)
    assert result.confidence == pytest.approx(0.9)


def test_invalid_arguments():
    law = laws.Gaussian(0.0, 1.0)
    with raises(InvalidInput, parameter="confidence", rule="None for a law"):
        truncated_nonpositivity(law, confidence=0.9)
    with raises(InvalidInput, parameter="about"):
        truncated_nonpositivity(law, "mean")
    with raises(InvalidInput, parameter="about"):
        truncated_nonpositivity([1.0], "mean")
    with pytest.raises(InvalidInput):
        truncated_nonpositivity(law, float("nan"))

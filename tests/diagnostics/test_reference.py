"""What a record cost: the mean of a log or of random arms, and limits that hold for all arms at once."""

import math

import numpy as np
import pytest

from helpers.amount import amount
from robandit.diagnostics import arm_values
from robandit.diagnostics.reference import Reference, log_reference, random_reference


@pytest.fixture
def quick(monkeypatch):
    """Fewer resamples, for tests that repeat them."""
    monkeypatch.setattr(arm_values, "RESAMPLES", 500)


RUNS = amount(80, 2_000)
LAWS = {
    "Gaussian": lambda rng, n: rng.normal(size=n) + 1.0,
    "exponential": lambda rng, n: rng.exponential(size=n),
    "log-normal": lambda rng, n: rng.lognormal(sigma=1.0, size=n) / math.exp(0.5),
}
SHARES = {"a": 300, "b": 150, "c": 50}


def coverage(law, runs=RUNS):
    """Return how often the limits, and limits half as wide, hold the advantage of an arm that the same rows chose; in truth 0."""
    rng = np.random.default_rng(5)
    held = np.zeros(2)
    for _ in range(runs):
        log = {arm: LAWS[law](rng, n) for arm, n in SHARES.items()}
        reference = log_reference(log)
        best = int(np.argmin([values.mean() for values in log.values()]))  # the lowest cost: the winner's curse
        off = list(log.values())[best].mean() - reference.mean
        held += [-width * reference.above[best] <= off <= width * reference.below[best] for width in (1.0, 0.5)]
    return held / runs


@pytest.mark.parametrize("law", LAWS)
def test_the_advantage_of_a_chosen_arm_is_within_its_limits(law, quick):
    """At least 95 %, within four standard deviations; half as wide, and the limits fail."""
    whole, half = coverage(law)
    assert whole >= 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / RUNS)
    assert half < 0.85, "the negative control"


def test_the_mean_of_a_log_is_that_of_its_rows():
    rng = np.random.default_rng(0)
    log = {arm: rng.normal(size=n) for arm, n in SHARES.items()}
    reference = log_reference(log, column="cost")
    everything = np.concatenate(list(log.values()))
    assert (reference.kind, reference.rows, reference.column) == ("log", 500, "cost")
    assert reference.mean == pytest.approx(everything.mean())
    part = log_reference({arm: x[: len(x) // 2] for arm, x in log.items()}, counts={"a": 3_000, "b": 100, "c": 100})
    assert part.rows == 3_200
    shares = np.array([3_000, 100, 100]) / 3_200
    assert part.mean == pytest.approx(shares @ [x[: len(x) // 2].mean() for x in log.values()])


def test_an_arm_that_is_most_of_the_log_moves_with_it():
    rng = np.random.default_rng(1)
    log = {"a": rng.normal(size=5_000), "b": rng.normal(size=50)}
    reference = log_reference(log)
    assert reference.below[0] < 0.1 * reference.below[1]
    assert reference.below[0] < 3.0 / math.sqrt(5_000) / 10.0, "far less than the error of its mean"


def test_weights_count_for_the_arms_and_not_for_the_log():
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=400), np.repeat([1.0, 9.0], 200)
    x[200:] += 1.0
    log = {"a": x, "b": rng.normal(size=400)}
    reference = log_reference(log, weights={"a": weights, "b": np.ones(400)})
    assert reference.mean == pytest.approx(np.concatenate(list(log.values())).mean())
    plain = log_reference(log)
    assert reference.below[0] > plain.below[0], "two errors that are taken as independent, and unequal weights"


def test_rows_of_a_table_stay_paired():
    rng = np.random.default_rng(3)
    shared = 100.0 * rng.normal(size=(600, 1))  # a bad hour hits all arms
    table = shared + rng.normal(size=(600, 3)) + [0.0, 0.5, 1.0]
    reference = random_reference(table, ["a", "b", "c"])
    assert (reference.kind, reference.rows) == ("random", 600)
    assert reference.mean == pytest.approx(table.mean())
    assert max(*reference.below, *reference.above) < 0.25
    unpaired = log_reference({name: table[:, i] for i, name in enumerate("abc")})
    assert min(unpaired.below) > 5.0, "the negative control"


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ({"a": np.zeros(5), "b": np.arange(50.0)}, "'a' has 5 values, 20 are needed"),
        ({"a": np.arange(50.0), "b": np.zeros(30)}, "'b' has 30 values that are all equal"),
    ],
)
def test_with_too_few_values_the_limits_are_unknown(log, why):
    reference = log_reference(log)
    assert (reference.below, reference.above) == (None, None)
    assert reference.why.startswith(why)
    assert random_reference(np.arange(30.0).reshape(10, 3), ["a", "b", "c"]).below is None


@pytest.mark.parametrize("scale", [2.0**-400, 2.0**400])
def test_the_unit_does_not_matter(scale):
    rng = np.random.default_rng(4)
    log = {arm: rng.normal(size=n) for arm, n in SHARES.items()}
    one, other = log_reference(log), log_reference({arm: scale * x for arm, x in log.items()})
    assert other.mean == scale * one.mean
    assert other.below == tuple(scale * each for each in one.below)


def test_it_is_read_back_from_json():
    rng = np.random.default_rng(6)
    for reference in (
        log_reference({"a": rng.normal(size=30), "b": rng.normal(size=30)}, column="x"),
        log_reference({"a": np.zeros(3), "b": np.zeros(3)}),
    ):
        assert Reference.from_dict(reference.to_dict()) == reference

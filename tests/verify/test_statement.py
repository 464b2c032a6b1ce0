"""Verdicts, intervals and names: what all checks share."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.invalid import raises
from robandit.errors import InvalidInput
from robandit.intervals import mean_interval, share
from robandit.verify import Effort, Finding, Outcome, Statement, checked
from robandit.verify.interval_arithmetic import slope
from robandit.verify.statement import Evidence, arithmetic, find_statements, number, worst


def finding(low, high, **more):
    return Finding(claim="c", measured=(low + high) / 2.0, low=low, high=high, **more)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.0, 2.0, "holds"),  # the ends count
        (1.2, 1.3, "holds"),
        (0.9, 1.5, "inconclusive"),
        (1.5, 2.1, "inconclusive"),
        (0.0, 3.0, "inconclusive"),
        (0.1, 0.99, "fails"),
        (2.01, 5.0, "fails"),
    ],
)
def test_the_verdict_compares_the_interval_with_the_range(low, high, verdict):
    assert finding(low, high, least=1.0, most=2.0).verdict == verdict
    softer = finding(low, high, least=1.0, most=2.0, asymptotic=True).verdict
    assert softer == ("inconclusive" if verdict == "fails" else verdict)


def test_a_number_outside_its_interval_is_rejected():
    with raises(InvalidInput, parameter="measured", rule="inside its own interval, 1.0 to 2.0"):
        Finding(claim="c", measured=3.0, low=1.0, high=2.0)
    with raises(InvalidInput, parameter="measured", rule="a finite number"):
        finding(math.nan, math.nan)
    with raises(InvalidInput, parameter="least", rule="at most most = 1.0"):
        finding(1.0, 2.0, least=2.0, most=1.0)


def test_words():
    assert finding(1.0, 2.0, most=2.0).predicted == "at most 2"
    assert finding(1.0, 2.0, least=2.0).predicted == "at least 2"
    assert finding(1.0, 2.0, least=1.0, most=2.0).predicted == "1 to 2"
    assert finding(1.0, 1.0, least=1.0, most=1.0).predicted == "1"
    assert finding(1.0, 1.0).predicted == "anything"
    assert finding(1.0, 2.0).seen == "1.5 (1 to 2)"
    assert finding(1.0, 1.0).seen == "1"
    assert [number(x) for x in (0.0, 1234.5, 1e-9, 0.12345, math.inf)] == ["0", "1,234", "1.00e-09", "0.123", "inf"]


def test_remarks():
    assert finding(1.0, 1.0).remarks == ""
    assert finding(1.0, 1.0, note="Why.", must=False, misprints=("1", "2")).remarks == (
        "Why; for information; misprint 1, 2"
    )
    computed = arithmetic("1 + 1", 2.0).at_most(2.0)
    assert (computed.claim, computed.must, computed.verdict, computed.remarks) == (
        "arithmetic: 1 + 1",
        False,
        "holds",
        "",
    )


def outcome(*findings):
    evidence = Evidence(ran="r", findings=findings)
    return checked(Statement(key="lemma-9", name="Lemma 9", says="s", run=lambda effort, track: evidence), Effort())


def test_only_claims_that_must_hold_decide_the_verdict():
    good, bad = finding(1.0, 1.0, most=2.0), finding(3.0, 3.0, most=2.0)
    shown = finding(3.0, 3.0, most=2.0, must=False)
    open_ = finding(1.0, 3.0, most=2.0)
    assert (outcome(good, shown).verdict, outcome(good, shown).failed) == ("holds", False)
    assert (outcome(good, bad).verdict, outcome(good, bad).failed) == ("fails", True)
    assert (outcome(good, open_).verdict, outcome(good, open_).failed) == ("inconclusive", False)
    assert (outcome(shown).verdict, outcome(shown).failed) == ("fails", False)
    assert worst([]) == "holds"


def test_a_headline_is_used_only_if_its_claim_holds():
    good, bad = finding(1.0, 1.0, most=2.0, headline="Good."), finding(3.0, 3.0, most=2.0, headline="Bad.")
    assert outcome(good, bad, finding(1.0, 1.0)).headline == "Good."


def test_json_has_no_infinities():
    written = json.dumps(outcome(finding(1.0, 2.0, most=2.0)).to_dict(), allow_nan=False)
    assert (
        json.loads(written)["findings"][0] | {"least": None, "most": 2.0, "verdict": "holds"}
        == json.loads(written)["findings"][0]
    )


def test_statements_are_found_by_key_name_and_alias():
    def stated(key, *aliases):
        return Statement(key=key, name=key.title(), says="", run=lambda effort, track: None, aliases=aliases)

    known = (stated("theorem-4", "theorem-1"), stated("lemma-2"))
    assert find_statements([], known) == known
    for name in ("theorem-1", "Theorem 4", "THEOREM4"):
        assert find_statements([name], known) == known[:1]
    assert find_statements(["lemma-2", "theorem-1", "theorem-4"], known) == known  # in the paper's order, once
    with raises(InvalidInput, parameter="statement", rule="one of theorem-4, theorem-1, lemma-2"):
        find_statements(["theorem-9"], known)
    for name, meant in (("lema 2", "lemma-2"), ("lemma-22", "lemma-2"), ("teorem-1", "theorem-1")):
        with pytest.raises(InvalidInput, match=rf"; did you mean {meant}\?$"):
            find_statements([name], known)
    with raises(InvalidInput, parameter="statement", rule="one of theorem-4, theorem-1, lemma-2"):
        find_statements(["nothing like it"], known)
    for names in ("lemma-2", 3, [3]):
        with pytest.raises(InvalidInput, match="such as"):
            find_statements(names, known)


@pytest.mark.parametrize("bad", [{"seed": -1}, {"seed": 1.5}, {"seed": True}, {"threads": 0}, {"threads": "2"}])
def test_effort_is_rejected_by_name(bad):
    with pytest.raises(InvalidInput, match="must be an integer") as error:
        Effort(**bad)
    assert error.value.parameter == next(iter(bad))


def test_effort_accepts_numpy_integers():
    assert Effort(seed=np.int64(3), threads=np.int32(2)) == Effort(seed=3, threads=2)
    assert type(Effort(seed=np.int64(3)).seed) is int


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_the_share_s_interval_is_clopper_and_pearson_s(counts, confidence):
    """Its ends are where the observed count becomes as unlikely as the level allows (summed here, by binomials)."""
    k, n = counts
    measured, low, high = share(k, n, confidence)
    assert low <= measured <= high
    tail = (1.0 - confidence) / 2.0

    def chance(counts, p):
        return math.fsum(math.comb(n, j) * p**j * (1.0 - p) ** (n - j) for j in counts)

    if k > 0:
        assert chance(range(k, n + 1), low) == pytest.approx(tail, rel=1e-6)
    if k < n:
        assert chance(range(k + 1), high) == pytest.approx(tail, rel=1e-6)


# How often the interval covers for exponential values, by 400,000 samples of n (100,000 for slopes): a normal law would have
# 0.95 and 0.999. Skewness costs as much as 1/n at both ends together. A slope's two means are alike, so that theirs cancels.
COVERS = {
    (10, 0.95): (0.9006, 0.9427),
    (10, 0.999): (0.9838, 0.9981),
    (20, 0.95): (0.9192, 0.9456),
    (20, 0.999): (0.9883, 0.9985),
    (40, 0.95): (0.9317, 0.9489),
    (40, 0.999): (0.9923, 0.9986),
}


@pytest.mark.parametrize(("n", "confidence"), COVERS)
def test_nominal_intervals_of_skewed_values_have_the_known_coverage(n, confidence):
    rng = np.random.default_rng(n)
    trials = 2000
    x = np.array([1.0, 10.0])
    mean = wrong = exponent = half = 0
    for y in rng.exponential(size=(trials, n, 2)):
        seen, power = mean_interval(y[:, 0], confidence), slope(x, y, confidence)
        mean += seen.low <= 1.0 <= seen.high
        wrong += seen.low <= 3.0 <= seen.high
        half += abs(seen.measured - 1.0) <= 0.5 * (seen.high - seen.measured)
        exponent += power.low <= 0.0 <= power.high
    for covered, expected in zip((mean, exponent), COVERS[n, confidence], strict=True):
        assert abs(covered / trials - expected) < 4.0 * math.sqrt(expected * (1.0 - expected) / trials) + 1e-3
    # the controls: half the width covers less, and a wrong mean is not covered, except by the wide intervals of n = 10
    assert half / trials < COVERS[n, confidence][0] - 0.05
    assert n == 10 or wrong / trials < 0.05


def test_intervals_by_hand():
    # 1, 2, 3: s = 1, and Student's 95 % quantile with two degrees of freedom is 2.919986
    assert mean_interval(np.array([1.0, 2.0, 3.0]), 0.9) == pytest.approx(
        (2.0, 2.0 - 1.685854, 2.0 + 1.685854), abs=1e-6
    )
    # two rows: leaving one out gives the other's exponent, 0 or 2; half their difference is the standard error; t is 6.313752
    exponent = slope(np.array([1.0, 10.0]), np.array([[1.0, 1.0], [1.0, 100.0]]), 0.9)
    middle = math.log10(50.5)
    assert exponent == pytest.approx((middle, middle - 6.313752, middle + 6.313752), rel=1e-6)
    assert slope(np.array([1.0, 10.0]), np.array([[1.0, 10.0]]))[1:] == (-math.inf, math.inf)  # one row says nothing
    with pytest.raises(InvalidInput, match="the measured number is inf"):
        mean_interval(np.array([1.0, math.inf]))


def test_the_slope_is_the_exponent():
    x = np.array([1.0, 10.0, 100.0])
    exact = np.tile(3.0 * x**0.7, (5, 1))
    assert slope(x, exact) == pytest.approx((0.7, 0.7, 0.7))
    noisy = exact[0] * np.random.default_rng(0).exponential(size=(400, 3))
    _, low, high = slope(x, noisy)
    assert low < 0.7 < high
    assert high - low < 0.2
    assert not low < 1.0 < high
    with pytest.raises(InvalidInput, match="a column for each of 3 x"):
        slope(x, exact[:, :2])
    with pytest.raises(InvalidInput, match="0 <= successes <= trials"):
        share(3, 2)


def test_an_outcome_has_its_seconds():
    assert isinstance(outcome(finding(1.0, 1.0)), Outcome)
    assert 0.0 <= outcome(finding(1.0, 1.0)).seconds < 5.0

"""Rates against formulas written by hand, in the paper's order; every policy's formula can be parsed; units; invalid input."""

import math
from pathlib import Path

import numpy as np
import pytest

import robandit as rb
from helpers.cases import cases
from helpers.invalid import raises
from robandit.errors import InvalidInput, NotApplicable
from robandit.policies import all_policies
from robandit.policies.formula import parsed
from robandit.theory import rate
from robandit.theory.rates import KEYWORDS, OTHERS

ROWS = {policy.facts.row: policy for policy in all_policies() if policy.facts.row}
log, e = np.log, math.e


def f_squared(T):
    return max(log(T), log(3.0)) ** 2


# row -> instance-dependent term per arm (T, K, u, eps, d); the sum over arms is taken below
INSTANCE = {
    1: lambda T, K, u, eps, d: (u / d) ** (1 / eps) * log(T),
    2: lambda T, K, u, eps, d: (u / d) ** (1 / eps) * log(T),
    3: lambda T, K, u, eps, d: (u / d + d) * log(T),
    4: lambda T, K, u, eps, d: log(T * d ** ((1 + eps) / eps) / K) / d ** (1 / eps),
    5: lambda T, K, u, eps, d: log(T) / 0.3,
    6: lambda T, K, u, eps, d: (
        (e**u + (T * d ** ((1 + eps) / eps) * log(K)) ** ((1 + eps) / (eps * log(K)))) / d ** (1 / eps)
    ),
    7: lambda T, K, u, eps, d: (K * e**u + log(T * d ** ((1 + eps) / eps) / K) ** ((1 + eps) / eps)) / d ** (1 / eps),
    8: lambda T, K, u, eps, d: (u / d) ** (1 / eps) * log(T),
    9: lambda T, K, u, eps, d: (u**2 / d ** (2 - eps)) ** (1 / eps) * log(T),
    11: lambda T, K, u, eps, d: f_squared(T) / (1 - 2 / (d * log(f_squared(T)))) * log(T),
    12: lambda T, K, u, eps, d: d * (2 * log(T) / d) ** (1 / 0.45) * log(T),
    13: lambda T, K, u, eps, d: ((u / d) ** (1 / eps) + d / 0.8) * log(T),
}
WORST = {
    1: lambda T, K, u, eps: K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)) * log(T) ** (eps / (1 + eps)),
    2: lambda T, K, u, eps: K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)) * log(T) ** (eps / (1 + eps)),
    3: lambda T, K, u, eps: (u * K * T * log(T)) ** 0.5 + (K - 1) * u**0.5 * log(T),
    4: lambda T, K, u, eps: K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)),
    6: lambda T, K, u, eps: K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)) * log(T) * e**u,
    7: lambda T, K, u, eps: K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)) * e**u,
    8: lambda T, K, u, eps: K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)),
    9: lambda T, K, u, eps: K ** (eps / 2) * u * T ** ((2 - eps) / 2) + (K * T) ** 0.5,
    10: lambda T, K, u, eps: K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)) + (K * T) ** 0.5,
    13: lambda T, K, u, eps: (
        K ** (eps / (1 + eps)) * (u * T) ** (1 / (1 + eps)) * log(T) ** (eps / (1 + eps))
        + (K - 1) * u ** (1 / (1 + eps)) / 0.8 * log(T)
    ),
}
EXTRA = {5: {"klinf": 0.3}, 13: {"nonzero": 0.8}}


def points(count=20):
    rng = np.random.default_rng(0)
    for _ in range(count):
        K = int(rng.integers(2, 12))
        gaps = rng.uniform(1.0, 3.0, K - 1)
        yield 10.0 ** rng.uniform(3, 7), K, rng.uniform(0.2, 5.0), rng.uniform(0.1, 1.0), gaps


@pytest.mark.parametrize("row", range(1, 14))
def test_each_row_of_the_table_is_the_formula_written_by_hand(row):
    growth, extra = rate(ROWS[row]), EXTRA.get(row, {})
    for T, K, u, eps, gaps in points():
        if row in INSTANCE:
            terms = [INSTANCE[row](T, K, u, eps, d) for d in gaps]
            assert growth(T, K, u, eps, [0.0, *gaps], **extra) == pytest.approx(sum(terms), rel=1e-12)
        else:
            with pytest.raises(NotApplicable, match="omit the gaps"):
                growth(T, K, u, eps, gaps)
        if row in WORST:
            assert growth(T, K, u, eps, **extra) == pytest.approx(WORST[row](T, K, u, eps), rel=1e-12)
        else:
            with pytest.raises(NotApplicable, match="no worst-case bound: pass the gaps"):
                growth(T, K, u, eps)


def test_rows_without_gaps_and_without_worst_case_are_the_papers():
    assert set(range(1, 14)) - set(INSTANCE) == {10}
    assert set(range(1, 14)) - set(WORST) == {5, 11, 12}


def test_every_formula_can_be_parsed():
    read = 0
    for policy in [*all_policies(), rb.UCBV(range=1.0)]:
        for text in (policy.facts.instance, policy.facts.worst):
            if text:
                read += 1
                assert parsed(text).text == text
    assert read > 35


def test_those_that_are_not_in_the_paper():
    T, K, u, eps, gaps = 1e5, 3, 2.0, 0.5, [0.0, 0.5, 1.0]
    given = (T, K, u, eps, gaps)
    L = math.log(T)
    assert rate(rb.Uniform())(*given) == pytest.approx(1.5 / 3 * T)
    assert rate(rb.Oracle())(*given) == 0.0
    assert rate(rb.UCB1(scale=3.0))(*given) == pytest.approx(9 * (2 + 1) * L)
    assert rate(rb.IMED(scale=3.0))(*given) == rate(rb.MaillardSampling(scale=3.0))(*given) == pytest.approx(27 * L)
    assert rate(rb.IMED(family="bounded"))(*given, klinf=[1.0, 0.2, 0.5]) == pytest.approx((2.5 + 2.0) * L)
    assert rate(rb.MaillardSampling(scale=3.0))(T, K) == pytest.approx(3 * math.sqrt(K * T * L))
    assert rate(rb.UniINF())(*given) == pytest.approx(3 * (2 / 0.5) ** 2 * L**2)
    assert rate(rb.NormalUCB())(*given, variance=[9.0, 1.0, 2.0]) == pytest.approx(
        (0.5 / math.log(1.25) + 1.0 / math.log(1.5)) * L
    )
    assert rate(rb.GaussianTS())(*given, variance=2.0) == rate(rb.NormalUCB())(*given, variance=2.0)
    assert rate(rb.KurtosisUCB(kappa=4.0))(*given, variance=2.0) == pytest.approx(((3 + 8) * 0.5 + (3 + 2)) * L)
    assert rate(rb.UCBV(range=7.0))(*given, variance=2.0) == pytest.approx((4 + 7 + 2 + 7) * L)
    assert rate(rb.MARS())(*given, tau=0.5) == pytest.approx(3.0 * L)
    assert rate(rb.RMMUCB())(*given) == pytest.approx((16 + 4) * L**2)
    assert rate(rb.ForceMoM(rho=0.5))(*given) == pytest.approx(1.5 * (T / 3) ** 0.5)
    worst = 3 * math.log(3) + (3 * T) ** 0.5 + 3 ** (1 / 6) * T ** (5 / 6) * (math.log(3) + math.log(L)) ** (1 / 3)
    assert rate(rb.ForceMoM(rho=0.5))(T, K, u, eps) == pytest.approx(2 ** (2 / 3) * worst)


def test_arrays_of_T_and_u():
    T, u = np.array([1e3, 1e4, 1e5]), np.array([[0.5], [2.0]])
    for policy in (rb.AdaRUCB(), rb.RobustUCB(estimator="catoni"), rb.OptTINF(), rb.UniINF()):
        for gaps in (None, [0.1, 0.2, 0.3, 0.4, 0.5]):
            table = rate(policy)(T, 6, u, 0.7, gaps)
            assert table.shape == (2, 3)
            for i in range(2):
                for j in range(3):
                    assert table[i, j] == pytest.approx(rate(policy)(T[j], 6, u[i, 0], 0.7, gaps), rel=1e-13)
    assert rate(rb.Uniform())(T, 2, None, None, [1.0]).tolist() == [500.0, 5000.0, 50000.0]
    assert rate(rb.RUCBTEA())(T, 2, None, None, [3.0]).shape == (3,)
    assert rate(rb.Oracle())(T, 2).tolist() == [0.0, 0.0, 0.0]


# Rewards and gaps times s: regret times s, and u times s^(1+eps). APE^2, MR-APE, the medians of R-UCB and OptTINF are known not to
# be of that kind; Robust MOSS's text leaves u out; KLinf-UCB's has no gap.
@pytest.mark.parametrize("row", [1, 2, 3, 8, 13])
def test_units(row):
    for T, K, u, eps, gaps in points(5):
        order = 2.0 if row == 3 else 1.0 + eps
        for s in (0.01, 30.0):
            known = EXTRA.get(row, {})
            value = rate(ROWS[row])(T, K, u, eps, gaps, **known)
            assert rate(ROWS[row])(T, K, s**order * u, eps, s * gaps, **known) == pytest.approx(s * value, rel=1e-10)
            worst = rate(ROWS[row])(T, K, u, eps, **known)
            eps_used = 1.0 if row == 3 else eps
            assert rate(ROWS[row])(T, K, s**order * u, eps_used, **known) == pytest.approx(s * worst, rel=1e-10)


def test_exponents():
    growth, given = rate(rb.RobustUCB()), (1e5, 4, 3.0, 0.5)
    gaps = [0.0, 0.3, 0.5, 1.0]
    assert growth.exponent("T", *given, gaps) == pytest.approx(1.0 / math.log(1e5), abs=1e-7)
    assert growth.exponent("u", *given, gaps) == pytest.approx(2.0, abs=1e-7)
    assert growth.exponent("gap", *given, gaps) == pytest.approx(-2.0, abs=1e-7)
    assert growth.exponent("K", *given, gaps) == 0.0
    assert growth.exponent("T", *given) == pytest.approx(2 / 3 + 1 / 3 / math.log(1e5), abs=1e-7)
    assert growth.exponent("K", *given) == pytest.approx(1 / 3, abs=1e-7)
    assert growth.exponent("u", *given) == pytest.approx(2 / 3, abs=1e-7)
    many = growth.exponent("T", np.array([1e3, 1e6]), 4, 3.0, 0.5, gaps)
    assert many == pytest.approx(1.0 / np.log([1e3, 1e6]), abs=1e-7)
    # K counts in the worst-case sum over gaps, too
    T, K, u = 10.0, 8.0, 2.0
    roots = math.sqrt(u * K * T * math.log(T)), math.sqrt(u) * math.log(T)
    by_hand = (0.5 * roots[0] + K * roots[1]) / (roots[0] + (K - 1) * roots[1])
    assert rate(rb.RobustUCB(estimator="catoni")).exponent("K", T, K, u) == pytest.approx(by_hand, abs=1e-7)


def test_the_policys_own_numbers_are_used():
    told = rb.RobustUCB(eps=0.5, u=3.0)
    assert rate(told)(1000, 2, gaps=[1.0]) == rate(rb.RobustUCB())(1000, 2, 3.0, 0.5, [1.0])
    told = rb.RobustUCB(estimator="median_of_means", eps=0.5, v=3.0)
    assert rate(told)(1000, 2, gaps=[1.0]) == rate(rb.RobustUCB())(1000, 2, 3.0, 0.5, [1.0])
    values = {f: rate(rb.RUCBLT(f=f))(1e6, 2, gaps=[1.0]) for f in ("log", "log_squared")}
    assert values["log_squared"] / values["log"] == pytest.approx(math.log(1e6))


def test_the_rate_is_nan_where_the_bound_does_not_apply():
    assert math.isnan(rate(rb.RUCBTEA())(1000, 2, gaps=[2.0 / math.log(math.log(1000) ** 2) * 0.9]))
    assert rate(rb.RUCBTEA())(1000, 2, gaps=[2.0 / math.log(math.log(1000) ** 2) * 1.1]) > 0.0
    assert math.isnan(rate(rb.RobustMOSS())(1000, 2, 1.0, 0.5, [1e-3, 1.0]))


def test_repr_is_the_text():
    assert repr(rate(rb.HTINF())) == (
        "<Rate of HTINF: sum (u/gap)^(1/eps) log T; worst case K^(eps/(1+eps)) (u T)^(1/(1+eps))>"
    )
    assert repr(rate(rb.AdaKLUCB())) == "<Rate of AdaKL-UCB: none; worst case none>"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "end"),
        ("T +", "end"),
        ("(T", "not closed"),
        ("T )", "not expected"),
        ("T ? K", "'\\?'"),
        ("T sum K", "'sum'"),
    ],
)
def test_formulas_that_cannot_be_parsed(text, match):
    with pytest.raises(InvalidInput, match=match):
        parsed(text)


@cases(
    ("text", "value"),
    [
        ("2 + 3 T", 32.0),
        ("T/2 K", 20.0),
        ("T/(2 K)", 1.25),
        ("6 - 2 - 1", 3.0),
        ("2^3 / 4", 2.0),
        ("log e^2", 1.0),
        ("log(e^2)", 2.0),
        ("sqrt(K) log log(e^e)", 2.0),
        ("T e^(1 - 1)", 10.0),
        ("sum gap + 1", 7.0),
        ("sum gap K / 2", 12.0),
        ("sum 1.5", 4.5),
        ("(sum gap^2) K", 56.0),
        ("sum (gap + 1) + K", 13.0),
        ("sum min gap", 3.0),
    ],
)
def test_notation(text, value):
    known = {name: np.asarray(number) for name, number in (("T", 10.0), ("K", 4.0), ("min gap", 1.0))}
    assert float(parsed(text).value(known | {"gap": np.array([1.0, 2.0, 3.0])})) == pytest.approx(value)


def test_invalid_arguments():
    growth = rate(rb.AdaRUCB())
    with pytest.raises(InvalidInput, match=r"did you mean AdaRUCB\(\)"):
        rate(rb.AdaRUCB)
    with pytest.raises(NotApplicable, match="none is proved"):
        rate(rb.AdaKLUCB())(1000, 2, 1.0, 0.5)
    with pytest.raises(InvalidInput, match="needs u; pass it as u="):
        growth(1000, 2, None, 0.5)
    with raises(InvalidInput, parameter="eps"):
        growth(1000, 2, 1.0, None, [1.0])
    with pytest.raises(InvalidInput, match="needs v; pass it as u="):
        rate(rb.RobustUCB(estimator="catoni"))(1000, 2)
    with raises(InvalidInput, parameter="klinf"):
        rate(rb.KLinfUCB())(1000, 2, 1.0, 0.5, [1.0])
    with raises(InvalidInput, parameter="kappa"):
        rate(rb.KurtosisUCB())(1000, 2, gaps=[1.0], variance=1.0)
    with raises(InvalidInput, parameter="variance", rule="one number, or one per gap"):
        rate(rb.KurtosisUCB(kappa=2.0))(1000, 2, gaps=[1.0, 0.0], variance=[1.0, 2.0, 3.0])
    for change, match in [
        ({"T": 0.5}, "T = 0.5"),
        ({"T": True}, "T = True"),
        ({"u": [True]}, "u = "),
        ({"K": True}, "K = True"),
        ({"T": "many"}, "T = 'many'"),
        ({"T": [10.0, math.nan]}, "T = "),
        ({"T": []}, "T = "),
        ({"K": 0}, "K = 0"),
        ({"u": 0.0}, "u = 0.0"),
        ({"eps": 2.0}, "eps = 2.0"),
        ({"gaps": [0.0, 0.0]}, "at least one of them > 0"),
        ({"gaps": [-1.0, 1.0]}, "gaps = "),
        ({"gaps": 1.0}, "must be a list"),
        ({"nonzero": 0.0}, "nonzero = 0.0"),
        ({"eps": "x"}, "eps = 'x' must be a number with 0 < eps <= 1"),
        ({"u": "x"}, "u = 'x' must be a finite number"),
        ({"foo": 3}, "foo = 3 must be omitted: .* kappa, klinf, nonzero, range, rho, scale, tau, variance"),
        ({"gap": [1.0]}, "gap = "),
        ({"T": 2.0**53 + 2.0}, "T = .* <= 9007199254740992"),
        ({"T": [10.0, 1e300]}, "T = "),
        ({"T": 10**400}, "T = 1000"),
    ]:
        with pytest.raises(InvalidInput, match=match):
            growth(**{"T": 1000, "K": 2, "u": 1.0, "eps": 0.5, "gaps": [0.0, 1.0]} | change)
    with raises(InvalidInput, parameter="foo"):
        growth.exponent("T", 1000, 2, 1.0, 0.5, foo=3)
    with raises(InvalidInput, parameter="of"):
        growth.exponent("eps", 1000, 2, 1.0, 0.5)
    with raises(InvalidInput, parameter="gaps"):
        growth.exponent("gap", 1000, 2, 1.0, 0.5)


def test_keywords_are_the_names_of_all_texts():
    named = set()
    for policy in [*all_policies(), rb.UCBV(range=1.0)]:
        for text in filter(None, (policy.facts.instance, policy.facts.worst)):
            named |= {KEYWORDS.get(name, name) for name in parsed(text).names}
    assert set(OTHERS) == named - {"T", "K", "u", "v", "eps", "gap", "min gap", "f(T)", "g(T)"}
    # names that this formula does not have are accepted, such as nonzero for every policy of a table
    assert rate(rb.HTINF())(1000, 2, 1.0, 0.5, [1.0], nonzero=0.5) == rate(rb.HTINF())(1000, 2, 1.0, 0.5, [1.0])


def test_rows_that_leave_the_moment_out_are_named_in_the_page():
    """Rewards times s: the instance-dependent rates of rows 4, 6 and 7 are not s times as large, and the page says so."""
    page = Path(__file__).parents[2] / "docs" / "explanation" / "reading-the-paper.md"
    remark = page.read_text(encoding="utf-8").split("### Rows for u = 1")[1].split("\n## ")[0]
    T, K, u, eps, gap, s = 1e6, 3, 1.0, 0.5, 1.0, 2.0
    follows = {
        row: rate(policy)(T, K, s**1.5 * u, eps, [s * gap]) / rate(policy)(T, K, u, eps, [gap])
        for row, policy in ROWS.items()
        if row in (1, 2, 4, 6, 7, 8)
    }
    assert {row for row, ratio in follows.items() if abs(ratio / s - 1.0) > 0.1} == {4, 6, 7}
    for row in (4, 6, 7):
        assert ROWS[row].name.replace("^2", "²") in remark
        assert ("e^u" in ROWS[row].facts.instance) == (row != 4)
    worst = rate(ROWS[4])(T, K, s**1.5 * u, eps) / rate(ROWS[4])(T, K, u, eps)
    assert worst == pytest.approx(s)

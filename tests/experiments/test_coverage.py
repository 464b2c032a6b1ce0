"""The coverage study: its facts, its counting, its files."""

import math
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from scipy import stats

from robandit.cli.terminal.coverage import tables
from robandit.errors import InvalidInput
from robandit.experiments.coverage import CONTENDERS, LAWS, Contender, coverage, facts
from robandit.laws import Gaussian, LogNormal, Pareto, StudentT, ZeroInflated
from robandit.report.coverage import draw_coverage, write_coverage

TRIALS = 200


@pytest.fixture(scope="module")
def small():
    laws = {name: LAWS[name] for name in ("Pareto 1.5", "negated Pareto 1.5", "Gaussian")}
    ours = [c for c in CONTENDERS if not c.name.startswith("statsmodels")]
    return coverage(sizes=[100], trials=TRIALS, laws=laws, contenders=ours)


def row(frame, law, estimator):
    return frame.row(by_predicate=(pl.col("law") == law) & (pl.col("estimator") == estimator), named=True)


def test_facts_are_the_laws():
    known = facts(Pareto(tail=1.5))
    assert known.eps == pytest.approx(0.45)
    assert known.u == pytest.approx(1.5 / (1.5 - 1.45))
    assert known.variance == math.inf
    assert not known.nonpositive
    assert not known.nonpositive_about_median
    assert facts(-Pareto(tail=1.5)).nonpositive
    assert facts(-Pareto(tail=1.5)).nonpositive_about_median
    shifted = facts(StudentT(dof=3, loc=5.0))
    assert (shifted.nonpositive, shifted.nonpositive_about_median) == (False, True)
    assert facts(Gaussian(mean=0.0, sd=1.0)).eps == 1.0
    assert not facts(LogNormal(mu=0.0, sigma=1.0)).nonpositive
    assert not facts(ZeroInflated(Pareto(tail=1.5), 0.5)).nonpositive


def test_what_is_promised_is_kept(small):
    """A contender whose bound holds with probability 0.95 fails this test with probability below 1e-6."""
    least = stats.binom.ppf(1e-6, TRIALS, 0.95) / TRIALS
    kept = small.filter(
        pl.col("assumption") & pl.col("coverage").is_not_null() & ~pl.col("estimator").str.contains("scipy|Student")
    )
    assert kept.height >= 15
    for line in kept.iter_rows(named=True):
        assert line["coverage"] >= least, line


def test_common_practice_misses_a_skewed_mean(small):
    """Negative control: the study must detect a bound that fails."""
    assert row(small, "Pareto 1.5", "scipy trimmed_mean_ci")["coverage"] < 0.05
    assert row(small, "Pareto 1.5", "adaptive, likelihood")["coverage"] < 0.9
    assert not row(small, "Pareto 1.5", "adaptive, likelihood")["assumption"]


def test_coverage_of_student_intervals_is_counted_right():
    """The interval is exact for Gaussian samples, so the count must be binomial with p = 0.95."""
    student = [c for c in CONTENDERS if c.name == "mean, Student"]
    frame = coverage(sizes=[20], trials=4000, laws={"Gaussian": Gaussian(mean=3.0, sd=2.0)}, contenders=student)
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], 4000, 0.95) / 4000
    assert low <= frame["coverage"][0] <= high
    expected = stats.t.ppf(0.975, 19) * 2.0 / math.sqrt(20)  # times the median of S / sigma, which is close to 1
    assert frame["half_width"][0] == pytest.approx(expected, rel=0.05)


def test_what_cannot_be_used_says_why(small):
    assert row(small, "Pareto 1.5", "Catoni")["coverage"] is None
    assert row(small, "Pareto 1.5", "Catoni")["note"] == "no variance"
    tiny = coverage(
        sizes=[5],
        trials=3,
        laws={"Gaussian": LAWS["Gaussian"]},
        contenders=[c for c in CONTENDERS if c.name in ("Catoni", "Catoni, infinite var.")],
    )
    assert tiny["coverage"].null_count() == 2
    assert all("n" in note for note in tiny["note"])


def test_samples_without_bounds_count_neither_way():
    """With 80 % zeros most halves of 100 values have no root and so no bound; with 99 % zeros none has."""
    some = {"some": ZeroInflated(-Pareto(tail=1.5), 0.8)}
    frame = coverage(sizes=[200], trials=200, laws=some, contenders=CONTENDERS[:1])
    assert frame["coverage"][0] == 1.0
    assert math.isfinite(frame["half_width"][0])
    assert 0 < int(frame["note"][0].split()[3]) < 200
    none = {"none": ZeroInflated(-Pareto(tail=1.5), 0.99)}
    frame = coverage(sizes=[200], trials=20, laws=none, contenders=CONTENDERS[:1])
    assert frame["coverage"][0] is None
    assert frame["note"][0] == "no bounds: too few values"


def test_same_seed_same_numbers():
    same = {"laws": {"a": LAWS["Student t 1.5"]}, "contenders": CONTENDERS[:2], "sizes": [50], "trials": 20}
    one, two, other = (coverage(seed=s, **same) for s in (3, 3, 4))
    assert one.equals(two)
    assert not one.equals(other)


def test_one_sided_width_is_upper_minus_mean():
    def bounds(x, known, delta):
        return np.full(len(x), -np.inf), x.mean(axis=1) * 0.0 + 7.0

    only = [Contender("seven", "nothing", bounds)]
    frame = coverage(sizes=[10], trials=5, laws={"g": Gaussian(mean=2.0, sd=1.0)}, contenders=only)
    assert frame["half_width"][0] == 5.0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"trials": 1}, "trials = 1"), ({"sizes": [1]}, r"sizes\[0\] = 1"), ({"delta": 1.5}, "delta = 1.5")],
)
def test_wrong_input(wrong, says):
    with pytest.raises(InvalidInput, match=says):
        coverage(**({"trials": 2, "sizes": [10]} | wrong))


def test_the_files(small, tmp_path):
    write_coverage(small, tmp_path, delta=0.05, trials=TRIALS, command="a command")
    text = (tmp_path / "coverage.md").read_text()
    assert "Written by `a command`" in text
    assert text.count("\n| adaptive, upper |") == 1
    drawn = (tmp_path / "coverage.svg").read_bytes()
    assert drawn == draw_coverage(small), "the same bytes again"
    root = ElementTree.fromstring(drawn)
    texts = ["".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"n = 100", "adaptive, upper", "negated Pareto 1.5", "coverage, %"} <= set(texts)
    assert len([each for each in texts if each.rstrip("†").isdigit()]) >= small["coverage"].drop_nulls().len()
    back = pl.read_csv(tmp_path / "coverage.csv")
    assert back.height == small.height
    assert {f.name for f in tmp_path.iterdir()} == {"coverage.md", "coverage.svg", "coverage.csv"}
    assert len(tables(small, 0.05)) == 1

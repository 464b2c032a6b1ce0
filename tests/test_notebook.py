"""What a notebook or a prompt displays: figures, tables, and one line for each object."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import robandit as rb
from robandit import notebook
from robandit.diagnostics.study import study
from robandit.errors import InvalidInput
from robandit.experiments import parse_spec, run
from robandit.experiments.statistics import Findings
from robandit.recorded import example
from robandit.recorded.summary import Recorded

EVIL = "<script>alert(1)</script> $x$"
COSTS = rb.laws.Pareto(tail=1.5).sample(3000, seed=0)
SPEC = (
    'replications = 5\nhorizons = [200]\npolicies = ["UCB1", "Uniform"]\nproblems = ["gaussian(means=[0.0, -0.5])"]\n'
)


def small_study():
    return study(Recorded.of({EVIL: COSTS, "b": COSTS + 1.0, "c": 2.0 * COSTS}, minimize=True))


def busy_bandit():
    bandit = rb.Bandit([EVIL, "b", "idle"], rb.UCB1(), minimize=True, seed=0)
    bandit.update_many([EVIL] * 1000 + ["b"] * 30, COSTS[:1030])
    return bandit


TWO = (rb.UCB1(), rb.EpsilonGreedy())


def small_result(policies=TWO):
    problem = rb.Problem([rb.laws.Gaussian(0.0, 1.0), rb.laws.StudentT(dof=1.5, loc=-1.0)], [EVIL, "b"])
    return rb.simulate(policies, problem, 300, 5, seed=0)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return run(parse_spec(SPEC).plan(), tmp_path_factory.mktemp("run"), threads=1)


PLOTTED = {
    "result": lambda: small_result().plot(),
    "result of many": lambda: small_result([rb.UCB1(scale=s) for s in range(1, 11)]).plot(),
    "problem": lambda: small_result().problem.plot(),
    "discrete": lambda: rb.Problem([rb.laws.Bernoulli(0.3), rb.laws.Constant(1.0)]).plot(),
    "many arms": lambda: rb.problems.gaussian(means=list(range(20))).plot(),
    "recorded": lambda: rb.problems.InOrder(np.arange(40.0).reshape(20, 2)).plot(),
    "study": lambda: small_study().plot(),
    "constant study": lambda: study(Recorded.of({"a": [1.0] * 20})).plot(),
    "bandit": lambda: busy_bandit().plot(),
    "new bandit": lambda: rb.Bandit(["a"]).plot(),
}


@pytest.mark.parametrize("name", PLOTTED)
def test_plots_are_figures_that_a_notebook_displays(name):
    from matplotlib.figure import Figure

    figure = PLOTTED[name]()
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert all(axes.get_xlabel() and (axes.get_ylabel() or axes.get_yticklabels()) for axes in figure.axes)


@pytest.mark.parametrize("name", ["result", "problem", "study", "bandit"])
def test_without_matplotlib_a_plot_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidInput, match=r'pip install "robandit\[plot\]"'):
        PLOTTED[name]()


def test_a_figure_shows_the_numbers_of_the_result():
    result = small_result()
    figure = result.plot()
    (axes,) = figure.axes
    best = int(np.argmin(result.regret[:, :, -1].mean(axis=1)))
    first = axes.get_lines()[0]
    assert first.get_label() == result.policies[best].name
    np.testing.assert_array_equal(first.get_xdata(), result.checkpoints)
    assert first.get_ydata()[-1] == np.median(result.regret[best, :, -1])


def test_a_bandits_figure_has_the_arms_with_the_most_costs_first():
    bandit = busy_bandit()
    (axes,) = bandit.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        r"<script>alert(1)</scr… (1,000)".replace("$", r"\$"),
        "b (30)",
        "idle (0)",
    ]
    assert axes.get_xlabel() == "cost (in brackets: their number)"
    assert min(axes.get_xlim()) < COSTS[:1000].mean() < max(axes.get_xlim())


def test_plots_neither_use_pyplot_nor_change_the_users_settings():
    code = """
import matplotlib, sys, robandit as rb
assert "matplotlib.pyplot" not in sys.modules
matplotlib.rcParams["font.size"] = 31
figure = rb.problems.gaussian(means=[0.0, 1.0]).plot()
assert matplotlib.rcParams["font.size"] == 31
assert "matplotlib.pyplot" not in sys.modules
assert max(text.get_size() for text in figure.axes[0].get_xticklabels()) < 12
"""
    subprocess.run([sys.executable, "-c", code], check=True)


DISPLAYED = {
    "Result": small_result,
    "Problem": lambda: small_result().problem,
    "Bandit": busy_bandit,
    "Diagnosis": lambda: busy_bandit().diagnose(),
    "Recommendation": lambda: rb.recommend({EVIL: COSTS}, minimize=True),
    "Study": small_study,
}


@pytest.mark.parametrize("name", DISPLAYED)
def test_tables_are_html_without_markup_from_names(name):
    shown = DISPLAYED[name]()
    assert type(shown).__name__ == name
    html = shown._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html or name == "Result"  # its table has no names of arms
    assert html.count("<table") == html.count("</table>")


def test_a_result_shows_its_summary():
    result = small_result()
    html = result._repr_html_()
    for row in result.summary().iter_rows(named=True):
        assert f">{row['policy']}<" in html
    assert "choosing arms at random loses 150" in html


def test_a_long_table_says_how_many_rows_are_left_out():
    html = notebook.table(["arm"], [[i] for i in range(1000)])
    assert html.count("<tr>") == notebook.ROWS + 1
    assert f"and {1000 - notebook.ROWS:,} more rows" in html


def everything_within(value, depth=4):
    """Yield the value and the objects of Robandit that its fields hold."""
    yield value
    if depth and dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inside = getattr(value, field.name)
            for each in inside[:1] if isinstance(inside, tuple) else (inside,):
                if type(each).__module__.startswith("robandit."):
                    yield from everything_within(each, depth - 1)


def test_no_bare_expression_prints_a_wall_of_fields(outcome):
    results = outcome.store.results()
    values = [make() for make in DISPLAYED.values()]
    values += [outcome, results, Findings(results), example("flights").summary(), example("flights").log()]
    values += [rb.problems.gaussian(means=list(range(1000))), rb.estimators.median_of_means(COSTS, delta=0.05)]
    for value in (inside for each in values for inside in everything_within(each)):
        line = repr(value)
        assert len(line) <= 300, line[:400]
        assert "\n" not in line

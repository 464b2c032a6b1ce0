"""What the report says, and that it needs nothing else. How it behaves in a browser is in test_browser.py."""

import base64
import hashlib
import html
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers import report_examples as examples
from robandit.diagnostics.study import study
from robandit.errors import InvalidInput
from robandit.experiments.plan import Played, planned
from robandit.experiments.replay_plan import replayed
from robandit.experiments.results import Results
from robandit.experiments.runner import run
from robandit.experiments.statistics import Findings, summary, verdict
from robandit.recorded import open_records
from robandit.report.page import write_page
from robandit.report.study import write_study


class Reader(HTMLParser):
    """A page as a parser sees it: elements, tables, and the text of each part."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.tables, self.open = [], [], [], []
        self.scripts, self.styles = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.elements.append((tag, given))
        self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        elif tag == "style":
            self.styles.append("")
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag in ("meta", "wbr"):
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" in self.open:
            self.styles[-1] += data
        elif data.strip():
            self.texts.append(data.strip())
            if "td" in self.open or "th" in self.open:
                self.tables[-1][-1][-1] += data.strip() + " "

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    @property
    def data(self):
        return json.loads(self.scripts[0])

    def all(self, tag, **attributes):
        return [given for name, given in self.elements if name == tag and attributes.items() <= given.items()]


def page(results, tmp_path, command="robandit compare --seed 3"):
    write_page(Findings(results), tmp_path / "report.html", command=command)
    return Reader((tmp_path / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results():
    return examples.one()


@pytest.fixture(scope="module")
def read(results, tmp_path_factory):
    return page(results, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def read_suite(tmp_path_factory):
    return page(examples.suite(), tmp_path_factory.mktemp("suite"))


def test_every_element_is_closed_and_the_verdict_comes_first(read, results):
    assert read.open == []
    position = read.text.index(verdict(results).split(". ")[0])
    assert position < read.text.index("An assumption fails here") < read.text.index("Leaderboard")


def test_the_leaderboard_has_the_numbers_of_the_summary(read, results):
    rows = summary(results).to_dicts()
    board = read.tables[0]
    assert board[0][:2] == ["policy ", "mean regret "]
    for row, shown in zip(rows, board[1:], strict=True):
        assert shown[0].startswith(row["policy"])
        mean = f"{row['mean']:,.0f}" if row["mean"] >= 100 else f"{row['mean']:.3g}"
        assert shown[1].split()[0] == mean
        assert f"no. {row['worst_replication']}" in shown[5]
    keys = [float(cell["data-v"]) for cell in read.all("td") if "data-v" in cell][: 8 * len(rows) : 8]
    assert keys == pytest.approx([row["mean"] for row in rows], rel=1e-3)


def test_a_failing_assumption_is_reported_in_a_box_and_in_the_row(read):
    assert "rewards in an interval of known length: UCB1" in read.text
    marked = [row[0] for row in read.tables[0] if "assumption fails" in row[0]]
    assert [name.split()[0] for name in marked] == ["UCB1"]
    assert read.all("div", **{"class": "warning"})


def test_where_assumptions_hold_there_is_no_warning(tmp_path):
    coins = page(examples.played(Played("coins", examples.COINS, 300), policies=[rb.UCB1(), rb.Uniform()]), tmp_path)
    assert not re.search("assumption fails|fails here", coins.text)
    assert coins.all("div", **{"class": "warning"}) == []


def test_what_a_reader_must_know_is_there(read):
    for words in (
        "Kurtosis UCB KurtosisUCB needs kappa, which is inf on this problem",  # skipped, and why
        "UCB1(scale=1.0",  # as it played
        "infinite variance",
        "Negated(law=Pareto(tail=1.5, scale=0.333333))",
        "seed=3, first=number",
        "robandit compare --seed 3",
        "robandit 9.9",
        "a <fast> one",
        "The charts need JavaScript",
    ):
        assert words in read.text


def test_the_command_is_reported_once_and_nothing_empty(results, tmp_path):
    command = "robandit run a.toml"
    read = page(replace(results, about={"command": command, "machine": "mine", "earlier": []}), tmp_path, command)
    assert read.text.count(command) == 1
    assert [row[0].strip() for row in read.tables[-1]] == ["machine"]


def test_charts_have_words_for_those_who_do_not_see_them_and_tables(read):
    figures = read.all("figure")
    assert [each["data-chart"] for each in figures] == ["curves", "distribution", "pulls"]
    for each in figures:
        assert "hidden" in each  # until it is drawn
        assert len(each["data-alt"]) > 40
    for words in ("Regret over time as a table", "Quantiles as a table", "Shares as a table"):
        assert words in read.text


def test_nothing_is_asked_of_the_network(read):
    assert [v for _, given in read.elements for k, v in given.items() if k in ("src", "href") and v[0] != "#"] == []
    assert not re.search(
        r"@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", "".join(read.scripts[1:] + read.styles)
    )
    (policy,) = read.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'; ")
    for content in (*read.styles, read.scripts[1]):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy["content"]
    # Without these the policy would stop the page itself.
    assert not any("style" in given or any(k.startswith("on") for k in given) for _, given in read.elements)


def test_curves_are_short_and_rounded(read, results):
    (problem,) = read.data["problems"]
    assert len(problem["t"]) <= 50
    assert problem["t"][-1] == 2_000
    for row in problem["rows"]:
        measured = next(m for m in results.measured if m.cell.label == row["label"])
        assert row["mean"][-1] == pytest.approx(measured.final.mean(), rel=1e-3)
        assert len(row["mean"]) == len(row["q05"]) == len(row["q95"]) == len(problem["t"])
        assert sum(row["pulls"]) == pytest.approx(100.0, abs=0.1)
        assert len(row["dots"]) == 8
        for value in (*row["mean"], *row["dots"]):
            assert len(re.sub(r"^0+|\D", "", str(value)).lstrip("0").rstrip("0")) <= 4


def test_bounds_are_drawn_where_they_hold_and_say_something(tmp_path, read):
    assert [row["bound"] for row in read.data["problems"][0]["rows"]] == [None] * 3  # UCB1's assumption fails on costs
    coins = Played("coins", examples.COINS, 3_000)
    shown = page(examples.played(coins, policies=[rb.UCB1(), rb.Uniform()], replications=2), tmp_path).data
    (problem,) = shown["problems"]
    bounds = {row["label"]: row["bound"] for row in problem["rows"]}
    assert bounds["Uniform"] is None  # known exactly: it would be its own line
    assert bounds["UCB1"]["status"] == "proved"
    values = bounds["UCB1"]["values"]
    exact = rb.theory.regret_bound(rb.UCB1(), examples.COINS, 3_000).instance
    assert values[-1] == pytest.approx(exact, rel=1e-3)
    assert values[0] is None
    assert all(v is None or v < 0.6 * t for v, t in zip(values, problem["t"], strict=True))
    middle = len(values) - 8
    at = problem["t"][middle]
    assert values[middle] == pytest.approx(
        rb.theory.regret_bound(rb.UCB1(), examples.COINS, at).instance, rel=0.01
    )  # drawn between those computed


def test_no_bound_is_drawn_for_a_replay_and_its_regret_may_be_negative(tmp_path):
    flips = (np.random.default_rng(1).random((3000, 2)) < [0.2, 0.8]).astype(float)
    table = rb.problems.InOrder(flips)
    laws = rb.Problem(table.laws, table.names)
    bounds = {}
    for name, problem in {"table": table, "laws": laws}.items():
        results = examples.played(Played(name, problem, 3000), policies=[rb.UCB1()], replications=2)
        (bounds[name],) = [row["bound"] for row in page(results, tmp_path).data["problems"][0]["rows"]]
    assert bounds["table"] is None
    assert bounds["laws"] is not None, "else the test tells nothing"
    read = page(examples.in_order(), tmp_path)
    assert "Recorded rewards are finite, so all moments exist" in read.text
    assert "Tail index" not in read.text
    assert read.open == []
    assert "On table it is realised regret" in read.text
    assert read.data["problems"][0]["rows"][0]["mean"][-1] < 0
    assert "e+" not in "".join(cell for table in read.tables for row in table for cell in row)
    assert read.text.index("The best arm is <not> resolved.") < read.text.index("pulls per replication")
    assert "About the data" not in page(examples.one(), tmp_path).text


def test_names_cannot_break_out(tmp_path):
    read = page(examples.hostile(), tmp_path, command=examples.HOSTILE)
    assert read.open == []
    assert len(read.scripts) == 2
    assert "<" not in read.scripts[0]
    assert read.all("img") == []
    assert not any(name.startswith("on") for _, given in read.elements for name in given)
    (problem,) = read.data["problems"]
    assert examples.HOSTILE in [row["label"] for row in problem["rows"]]
    assert problem["arms"][1]["name"] == examples.HOSTILE
    given = "".join(examples.HOSTILE.split())
    assert "".join(read.text.split()).count(given) > 5  # as text


def test_failed_and_missing_replications_are_reported(results, tmp_path):
    assert "ncomplete" not in page(results, tmp_path).text
    cut = replace(
        results.measured[0],
        **{name: getattr(results.measured[0], name)[:5] for name in ("replications", "regret", "pulls")},
    )
    read = page(replace(results, measured=(cut, *results.measured[1:])), tmp_path)
    assert read.text.count("Incomplete: of 24 replications 3 are not played yet") == 1
    read = page(examples.hostile(), tmp_path)
    assert "replications 0 to 7, tried 3 times:" in read.text


def test_a_suite_is_ranked_first_and_has_a_part_for_each_problem(read_suite):
    parts = read_suite.all("details", **{"class": "problem"})
    assert [each["id"] for each in parts] == ["p0", "p1", "p2"]
    assert ["open" in each for each in parts] == [True, False, False]
    assert read_suite.text.index("Ranking over problems") < read_suite.text.index("Leaderboard")
    ranks, heat = read_suite.tables[:2]
    assert {row[0].split(" ⚠")[0].strip() for row in ranks[1:]} == {"UCB1", "epsilon-greedy", "Uniform", "Kurtosis UCB"}
    assert [name.strip() for name in heat[0]] == ["policy", "costs", "coins (T = 500)", "coins (T = 900)"]
    assert [each["href"] for each in read_suite.all("a")] == ["#p0", "#p1", "#p2"]
    (kurtosis,) = (row for row in heat if row[0].startswith("Kurtosis"))
    assert kurtosis[1].strip() == "–"
    (row,) = (row for row in ranks if row[0].startswith("Kurtosis"))
    assert row[-1].strip() == "not ranked"
    assert (
        "Not ranked: Uniform : does not learn from rewards: a baseline Kurtosis UCB : skipped on costs:"
        in read_suite.text
    )


def test_line_ends_of_windows_are_line_ends(results, tmp_path):
    about = {"spec": 'name = "x"\r\nseed = 1\r\n', "modules": {"mine": "x = 1\r\ny = 2\r\n"}}
    text = page(replace(results, about=results.about | about), tmp_path).text
    assert 'name = "x" seed = 1' in text
    assert "x = 1 y = 2" in text


def test_the_spec_is_there_with_its_name(results, tmp_path):
    assert "The spec" not in page(results, tmp_path).text
    about = {"name": "night <run>", "spec": '[[problem]]\nname = "</pre><script>"\n', "machine": "mine"}
    read = page(replace(results, about=about), tmp_path, "robandit run a.toml")
    assert read.open == []
    assert read.text.startswith("night <run>: 3 policies on costs | Robandit night <run>: 3 policies on costs")
    assert read.text.count('The spec [[problem]] name = "</pre><script>"') == 1
    assert [row[0].strip() for row in read.tables[-1]] == ["machine"]


def test_one_replication_is_enough_for_a_page(tmp_path):
    read = page(examples.played(Played("costs", examples.COSTS, 50), replications=1), tmp_path)
    assert "1 replication is too few" in read.text
    assert "nan" not in read.text.lower()


def test_the_largest_suite_stays_below_3_mb(tmp_path):
    write_page(Findings(examples.large()), tmp_path / "report.html", command="robandit compare --suite heavy")
    assert (tmp_path / "report.html").stat().st_size < 3_000_000


def test_write_takes_what_a_person_has(tmp_path):
    problem = rb.problems.gaussian(means=[1.0, 0.0])
    policies = [rb.UCB1(), rb.UCB1(scale=2.0)]
    plan = planned([Played("two arms", problem, 100)], policies, replications=5, seed=1)
    outcome = run(plan, tmp_path / "run", threads=1, command="robandit run x.toml")
    pages = []
    for results in (outcome, outcome.store, outcome.store.results()):
        rb.report.write(results, tmp_path / "page.html")
        pages.append((tmp_path / "page.html").read_text())
    assert pages[0] == pages[1] == pages[2]
    assert "<code>robandit run x.toml</code>" in pages[0]
    result = rb.simulate(policies, problem, 100, 5, seed=1, progress=False)
    rb.report.write(result, tmp_path / "page.html", name="two arms")
    page = (tmp_path / "page.html").read_text()
    means = [f"{mean:.3g}" for mean in result.summary()["mean"]]
    for text in ("2 policies on two arms", "UCB1(scale=2.0)", *means):
        assert text in pages[0]
        assert text in page
    assert "<code></code>" not in page


@pytest.mark.parametrize("results", ["run", None, Path("run")])
def test_write_rejects_other_things(results, tmp_path):
    with pytest.raises(
        InvalidInput, match=r"must be results of .*; for a folder, pass robandit\.experiments\.Store\.open"
    ):
        rb.report.write(results, tmp_path / "page.html")


def test_a_replay_begins_with_what_it_would_have_cost(tmp_path):
    rng = np.random.default_rng(0)
    arms = rng.choice(["a", "b"], 300, p=[0.8, 0.2])
    log = pl.DataFrame({"arm": arms, "<b>": rng.exponential(size=300) * np.where(arms == "a", 2.0, 1.0)})
    plan = replayed(open_records(log, reward="<b>", minimize=True), ["UCB1", "Uniform"], name="log", replications=6)
    findings = Findings(Results.of(plan, [(unit, unit.run(), 1.0) for unit in plan.units]))
    write_page(findings, tmp_path / "page.html", command="robandit replay log.csv")
    page = (tmp_path / "page.html").read_text()
    assert f'<div class="verdict"><p>{html.escape(findings.costs[0])}</p>' in page
    board = next(table for table in Reader(page).tables if any(row and row[0].startswith("(the log)") for row in table))
    heads = [re.sub(r"\W+$", "", head) for head in board[0]]
    assert heads[:4] == ["policy", "mean cost", "saves", "mean regret"]
    regrets = [float(row[3].split()[0].replace(",", "")) for row in board[1:]]
    assert regrets == sorted(regrets), "the log stands in its place"
    assert any("not significant" in row[2] for row in board[1:]) == any(
        row["versus"] == "not significant" for row in findings.standings[0].rows
    )


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1.0, 2.0),
        (1.0, 1.0),
        (0.0, 0.0),
        (0.0, 1.0),
        (1e150, -1e150),
        (1e-130, 2e-130),
        (1.0, math.nextafter(1.0, 2.0)),
    ],
)
def test_constant_rewards_have_pages(a, b, rows, tmp_path):
    table = open_records(pl.DataFrame({"arm": ["a", "b"] * rows, "reward": [a, b] * rows}))
    plan = replayed(table, ["AdaKLUCB", "KLinfUCB", "GaussianTS", "Uniform"], replications=6)
    results = Results.of(plan, [(unit, unit.run(), 1.0) for unit in plan.units])
    write_page(Findings(results), tmp_path / "replay.html", command="robandit replay table.csv")
    drawn = Reader((tmp_path / "replay.html").read_text()).data["problems"][0]["rows"]
    assert {row["label"] for row in drawn} == {cell.label for cell in plan.cells}
    write_study(study(table.summary()), tmp_path / "diagnosis.html", command="robandit diagnose table.csv")
    assert "</html>" in (tmp_path / "diagnosis.html").read_text()

"""The command line, in processes of its own, as a person types it."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest


def robandit(*words, cwd, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "robandit", *words], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


FEW = ("--policy", "AdaRUCB", "--policy", "UCB1", "--policy", "KurtosisUCB")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    done = robandit("compare", *FEW, "--horizon", "3000", "--replications", "4", "--seed", "7", cwd=folder)
    return done.stdout, (folder / "robandit-report.html").read_text()


def test_compare_prints_every_policy_and_where_the_report_is(compared):
    printed, _ = compared
    for word in ("AdaR-UCB", "UCB1", "3,000 pulls", "4 replications", "seed 7", "report: robandit-report.html"):
        assert word in printed
    assert "KurtosisUCB must be told kappa, which is inf on this problem" in printed
    assert "choosing arms at random: 1,500" in printed.lower()


def test_the_table_of_policies_is_printed_and_written(tmp_path):
    assert "KLinf-UCB" in robandit("policies", cwd=tmp_path).stdout
    assert robandit("policies", "--markdown", cwd=tmp_path).stdout.startswith("# The policies")


def test_the_report_needs_nothing_else(compared):
    _, page = compared

    found = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.extend(v for k, v in attrs if k in ("src", "href") and not (v or "").startswith("#"))

    Collector().feed(page)
    assert found == []
    assert "@import" not in page
    assert "url(http" not in page
    assert page.count("<svg") == 1
    assert (
        "robandit compare --policy AdaRUCB --policy UCB1 --policy KurtosisUCB --horizon 3000 --replications 4 --seed 7"
        in page
    )


def test_the_same_seed_prints_the_same_regret(compared, tmp_path):
    printed, _ = compared
    again = robandit("compare", *FEW, "--horizon", "3000", "--replications", "4", "--seed", "7", cwd=tmp_path).stdout
    other = robandit("compare", *FEW, "--horizon", "3000", "--replications", "4", "--seed", "8", cwd=tmp_path).stdout

    def without_speed(text):
        return [re.sub(r"\s+\d+\s*$", "", line) for line in text.splitlines()]

    assert without_speed(again) == without_speed(printed)
    assert without_speed(other) != without_speed(printed)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["compare", "--horizon", "0"], 1, "horizon = 0 must be a whole number >= 1"),
        (["compare", "--policy", "UCB7"], 1, "policy 'UCB7' is not known: there are APE2"),
        (["compare", "--policy", "KurtosisUCB"], 1, "Kurtosis UCB is left out"),
        (["compare", "--replications", "0"], 1, "replications = 0"),
        (["compare", "--seed", "-1"], 1, "seed = -1"),
        (["compare", "--threads", "0"], 1, "threads = 0"),
        (["compare", "--out", "missing/report.html"], 1, "missing does not exist"),
        (["compare", "--horizon", "many"], 2, "many"),
        (["compare", "--colour", "red"], 2, "--colour"),
        (["compare", "--out", "."], 1, "it is a folder"),
        (["compete"], 2, "compare"),
        (["estimators", "coverage", "--trials", "1"], 1, "trials = 1"),
        (["estimators", "coverage", "--out", "missing"], 1, "missing is not a folder"),
    ],
)
def test_wrong_words_are_refused_by_name(words, code, says, tmp_path):
    done = robandit(*words, cwd=tmp_path, code=code)
    assert says in " ".join((done.stderr + done.stdout).split())
    assert list(tmp_path.iterdir()) == []


def test_help_and_version(tmp_path):
    assert "compare" in robandit("--help", cwd=tmp_path).stdout
    assert "--replications" in robandit("compare", "--help", cwd=tmp_path).stdout
    assert re.match(r"\d+\.\d+", robandit("--version", cwd=tmp_path).stdout)

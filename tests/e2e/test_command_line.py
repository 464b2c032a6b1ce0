"""The command line, in processes of its own, as a person types it."""

import contextlib
import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from helpers.typed import printed, typed

pytestmark = pytest.mark.xdist_group("command line")  # one process runs the comparison that several tests look at


def robandit(*words, cwd, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "robandit", *words],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
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
    out, _ = compared
    text = " ".join(out.split())
    for word in ("AdaR-UCB", "UCB1", "3,000 pulls", "4 replications", "seed 7", "report: robandit-report.html"):
        assert word in text
    assert "KurtosisUCB needs kappa, which is inf on this problem" in out
    assert "choosing arms at random (1,500)" in text


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize("columns", ["80", "50"])
def test_a_terminal_shows_progress_and_ends_with_what_a_pipe_gets(tmp_path, columns, monkeypatch):
    words = ["compare", *FEW, "--horizon", "3000", "--replications", "4", "--seed", "7"]
    for name, value in {"COLUMNS": columns, "LINES": "24", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    piped, _ = printed(*words, cwd=tmp_path)
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "robandit", *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # raised on Linux when the other end is closed
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    assert process.returncode == 0
    assert re.search(r"playing [0-2] of 2 units", shown.decode())  # which states are drawn depends on the time
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).replace("\r", "")

    def without_speed(text):
        return " ".join(re.sub(r"\d+ *\n", "\n", text).split())

    table = piped.partition("Kurtosis UCB is skipped")[0]
    assert without_speed(text).count(without_speed(table)) == 1


def test_the_table_of_policies_is_printed_and_written(tmp_path):
    assert "KLinf-UCB" in typed("policies", "--theory", cwd=tmp_path)[0]
    assert "use one when" in typed("policies", cwd=tmp_path)[0].lower()


def test_the_report_needs_nothing_else(compared):
    _, page = compared

    addresses = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag, attrs):
            addresses.extend(v for k, v in attrs if k in ("src", "href") and not (v or "").startswith("#"))

    Collector().feed(page)
    assert addresses == []
    assert "@import" not in page
    assert "url(http" not in page
    assert (
        "robandit compare --policy AdaRUCB --policy UCB1 --policy KurtosisUCB --horizon 3000 --replications 4 --seed 7"
        in page
    )


def test_the_same_seed_prints_the_same_regret(compared, tmp_path, monkeypatch):
    first, _ = compared
    monkeypatch.setenv("COLUMNS", "80")
    words = ["compare", *FEW, "--horizon", "3000", "--replications", "4", "--seed"]
    again, other = (printed(*words, seed, cwd=tmp_path)[0] for seed in ("7", "8"))

    def without_speed(text):
        return [re.sub(r"\s+\d+\s*$", "", line) for line in text.splitlines()]

    assert without_speed(again) == without_speed(first)
    assert without_speed(other) != without_speed(first)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["compare", "--horizon", "0"], 1, "horizon = 0 must be an integer from 1 to 2^53"),
        (["compare", "--policy", "UCB7"], 1, "policy 'UCB7' is not known (did you mean UCB1 or UCBV?): `robandit"),
        (["compare", "--policy", "KurtosisUCB"], 1, "Kurtosis UCB is skipped"),
        (["compare", "--all", "--policy", "UCB1"], 1, "--policy UCB1 and --all cannot be used together: omit one"),
        (["replay", "--all", "--policy", "UCB1"], 1, "--policy UCB1 and --all cannot be used together: omit one"),
        (["compare", "--replications", "0"], 1, "replications = 0 must be"),
        (["compare", "--seed", "-1"], 1, "seed = -1 must be"),
        (["compare", "--threads", "0"], 1, "threads = 0"),
        (["compare", "--out", "missing/report.html"], 1, "missing does not exist"),
        (["compare", "--horizon", "many"], 2, "many"),
        (["compare", "--horizon", "1.5"], 2, "'1.5' is not an integer"),
        (["verify", "--seed", "0.5"], 2, "'0.5' is not an integer"),
        (["compare", "--out"], 2, "--out needs a value For help: robandit compare"),
        (["run"], 2, "SPEC needs a value For help: robandit run"),
        (["compare", "--colour", "red"], 2, "--colour"),
        (["compare", "UCB1"], 2, "'UCB1' has no option: write the option before its value, for example --policy UCB1"),
        (["compare", "--out", "."], 1, "it is a folder"),
        (["compete"], 2, "compare"),
        (["verify", "lemma-9"], 1, "statement = 'lemma-9' must be one of table-1"),
        (["verify", "--out", "page.json"], 1, "--out = 'page.json' must be an .html file"),
        (["verify", "--out", "missing/page.html"], 1, "missing does not exist"),
        (["verify", "--seed", "-1"], 1, "seed = -1"),
    ],
)
def test_wrong_options_are_rejected_by_name(words, code, says, tmp_path):
    out, err = typed(*words, cwd=tmp_path, code=code)
    assert says in " ".join((err + out).split())
    assert list(tmp_path.iterdir()) == []


def test_verify_checks_a_statement_and_writes_what_it_found(tmp_path):
    out, _ = printed("verify", "Proposition 9", "--quick", cwd=tmp_path)
    assert re.search(r"^holds +Proposition 9 ", out, re.MULTILINE)
    assert "1 statement: 1 holds, 0 inconclusive, 0 fail" in out
    assert {f.name for f in tmp_path.iterdir()} == {"robandit-verify.html", "robandit-verify.json"}
    assert "robandit verify 'Proposition 9' --quick --seed 0" in html.unescape(
        (tmp_path / "robandit-verify.html").read_text()
    )


def test_the_help_of_verify_names_every_statement(tmp_path):
    from robandit.verify import statements

    help_ = " ".join(typed("verify", "--help", cwd=tmp_path)[0].replace("\u2502", " ").split())
    for statement in statements():
        assert statement.key in help_


@pytest.mark.parametrize("command", ["compare", "replay"])
def test_the_help_names_the_policies_that_play_by_default(command, tmp_path):
    from robandit.experiments.compare_plan import FIRST_LOOK

    help_ = " ".join(typed(command, "--help", cwd=tmp_path)[0].replace("\u2502", " ").split())
    assert "--all" in help_
    for entry in FIRST_LOOK:
        assert entry.partition("(")[0] in help_


@pytest.mark.parametrize("words", [["--help"], ["--version"]])  # Rich meets the closed pipe in one, print in the other
def test_a_closed_pipe_ends_silently(words, tmp_path):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "robandit", *words], cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, check=False
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


def test_help_and_version(tmp_path):
    assert "compare" in robandit("--help", cwd=tmp_path).stdout
    assert "--replications" in typed("compare", "--help", cwd=tmp_path)[0]
    assert re.match(r"\d+\.\d+", typed("--version", cwd=tmp_path)[0])

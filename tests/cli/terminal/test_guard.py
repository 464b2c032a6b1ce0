"""Control characters of files and names never reach the terminal: they are shown as escapes."""

import contextlib
import csv
import importlib
import io
import json
import os
import shutil
import sys
import unicodedata
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from rich.console import Console

import robandit as rb
from helpers.small_plan import small_plan
from robandit.cli import main
from robandit.cli.run_folder import play_into
from robandit.cli.terminal.guard import guard, shown
from robandit.cli.terminal.tables import Board
from robandit.experiments import Store, run
from robandit.experiments.results import Failure
from robandit.experiments.store import _checksum
from robandit.wording import visible
from robandit_client.wording import INVISIBLE

# Red, a bell, back to the start of the line, clear the screen (CSI of C1), a forged line, text from right to left.
NASTY = "x\x1b[31m\x07\r\x9b2J\nrobandit: done\u202egnp\u2028\x85"
SHOWN = r"x\x1b[31m\x07\r\x9b2J\nrobandit: done\u202egnp\u2028\x85"
SPEC = 'policies = ["UCB1"]\nproblems = ["gaussian(means=[1.0, 0.0])"]\nhorizons = [20]\nreplications = 1\n'
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows allows no such names")


def printed(*words, cwd, code=0):
    """Return the raw text of both streams, after checking that no line is forged and nothing is raw."""
    out, err = io.StringIO(newline=""), io.StringIO(newline="")
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["robandit", *words]),
        mock.patch.dict(os.environ, {"COLUMNS": "400"}),
    ):
        try:
            main()
            ended = 0
        except SystemExit as end:
            ended = end.code or 0
    text = out.getvalue() + err.getvalue()
    assert ended == code, text
    assert {char for char in text if unicodedata.category(char) in INVISIBLE} <= {"\n"}
    assert not any(line.startswith("robandit: done") for line in text.splitlines())
    return text


def test_every_kind_is_escaped():
    assert visible(NASTY) == SHOWN
    assert visible("a\nb\tc\r", keep="\n\t") == "a\nb\tc\\r"
    assert visible("\ud800\u200b\u00ad\u2066\x00") == r"\ud800\u200b\xad\u2066\x00"
    assert visible("é 漢字 😀\u00a0∞ \\x1b") == "é 漢字 😀\u00a0∞ \\x1b"


def test_what_is_printed_and_what_rich_draws():
    out, terminal = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        guard()
        guard()
        print(NASTY)
        print("two\nlines\tof text")
        assert Console().file is out
    assert out.getvalue() == SHOWN.replace("\\n", "\n") + "\ntwo\nlines\tof text\n"
    console = Console(file=terminal, force_terminal=True, width=200, color_system="truecolor")
    console.print(shown(NASTY, "bold"))
    console.print(Board(title=NASTY, note=NASTY, columns={"policy": [NASTY], "mean": [NASTY]}))
    text = terminal.getvalue()
    assert text.count("x\\x1b[31m") == 5
    for raw in ("\x1b[31m", "\x07", "\r", "\x9b", "\u202e", "\u2028"):
        assert raw not in text


@pytest.fixture
def folder(tmp_path):
    """A run folder with such texts in every place that a person can write into."""
    plan = small_plan(replications=8, policies=[rb.UCB1(), rb.Uniform(), rb.KurtosisUCB()])
    store = run(plan, tmp_path / "run", threads=1).store
    failed = store.plan.units[-1]
    store.ledger.part(failed).unlink()
    store.ledger.fail(Failure(failed, 3, f"Traceback\nE: {NASTY.splitlines()[0]} \x1b[2J"))
    path = tmp_path / "run" / "run.json"
    data = json.loads(path.read_text())
    data["problems"][0]["name"] = f"problem {NASTY}"
    for each in (*data["cells"], *data["left_out"]):
        each["label"] += NASTY
    data["left_out"][0]["reason"] = NASTY
    data["notes"] = [NASTY]
    data["runs"][0]["command"] = NASTY
    path.write_text(json.dumps(data | {"checksum": _checksum(data)}))
    return tmp_path / "run"


def test_a_run_folder_in_tables_pages_and_exports(folder, tmp_path):
    text = printed("results", "show", str(folder), cwd=tmp_path)
    assert f"problem {SHOWN}" in text
    assert f"UCB1{SHOWN}" in "".join(text.split("\n"))
    assert "E: x\\x1b[31m" in text
    assert f"is skipped on problem {SHOWN}: {SHOWN}" in text
    results = Store.open(folder).results()
    rb.report.write(results, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert {char for char in page if unicodedata.category(char) in INVISIBLE} <= {"\n", "\t"}
    assert "UCB1" + SHOWN.replace("\\n", "\n") in page
    printed("results", "export", str(folder), "--out", f"{NASTY}.csv", cwd=tmp_path)
    with (tmp_path / f"{NASTY}.csv").open(newline="", encoding="utf-8") as file:
        labels = {row["policy"] for row in csv.DictReader(file)}
    assert labels == {f"UCB1{NASTY}", f"{rb.Uniform().name}{NASTY}"}  # a table of data keeps its names
    assert set(pl.read_csv((tmp_path / f"{NASTY}.csv").read_bytes())["policy"]) == labels


def test_the_error_of_an_altered_folder(folder, tmp_path):
    shutil.move(folder, tmp_path / NASTY)
    path = tmp_path / NASTY / "run.json"
    data = json.loads(path.read_text()) | {"seed": NASTY}
    path.write_text(json.dumps(data))
    assert f"robandit: {SHOWN}/run.json was changed" in printed("results", "show", NASTY, cwd=tmp_path, code=1)
    path.write_text(json.dumps(data | {"checksum": _checksum(data)}))
    printed("results", "show", NASTY, cwd=tmp_path, code=1)
    data["cells"][0]["policy"]["policy"] = f"mine:{NASTY}"
    path.write_text(json.dumps(data | {"checksum": _checksum(data)}))
    printed("results", "show", NASTY, cwd=tmp_path, code=1)


def test_specs_and_file_names(tmp_path):
    (tmp_path / f"{NASTY}.toml").write_text(SPEC)
    for words in (("spec", "check"), ("run",), ("plan",)):
        printed(*words, f"{NASTY}.toml", cwd=tmp_path)
    printed("spec", "init", f"{NASTY}.new.toml", cwd=tmp_path)
    text = printed("run", f"{NASTY}.toml", "--out", f"{NASTY}2", cwd=tmp_path)
    assert f"results: {SHOWN}2/results" in text
    name = json.dumps(NASTY)
    for line in (f"name = {name}", f"{name} = 1", f"imports = [{name}]", f"seed = {name}", f"suites = [{name}]"):
        (tmp_path / "wrong.toml").write_text(f"{line}\n{SPEC}")
        assert "wrong.toml: " in printed("spec", "check", "wrong.toml", cwd=tmp_path, code=1)
    (tmp_path / "wrong.toml").write_text(SPEC.replace('"UCB1"', json.dumps(f"UCB1{NASTY}")))
    printed("spec", "check", "wrong.toml", cwd=tmp_path, code=1)
    printed("spec", "check", f"{NASTY}-none.toml", cwd=tmp_path, code=1)
    printed(NASTY, cwd=tmp_path, code=2)
    printed("run", f"--{NASTY}", cwd=tmp_path, code=2)
    printed("compare", "--policy", NASTY, cwd=tmp_path, code=1)


def test_folders_and_pages_of_other_commands(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("robandit.precompile"), "precompile", lambda policies, into, done: into)
    assert f"compiled code is in {SHOWN}\n" in printed("precompile", "UCB1", "--into", NASTY, cwd=tmp_path)
    monkeypatch.setattr("robandit.verify.statements", lambda names: [])
    text = printed("verify", "--out", f"{NASTY}.html", cwd=tmp_path)
    assert f"written: {SHOWN}.html, {SHOWN}.json\n" in text
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / NASTY))
    assert f"/{SHOWN} (" in printed("doctor", cwd=tmp_path)


def test_lines_written_together():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        guard()
        sys.stdout.writelines(["a\x1b\n", "b\x07\n"])
    assert out.getvalue() == "a\\x1b\nb\\x07\n"


def test_the_dashboard_of_a_cluster(tmp_path, capsys):
    class Cluster:
        dashboard = NASTY

    class Stopped(Exception):
        pass

    with mock.patch("robandit.experiments.runner.run", side_effect=Stopped), pytest.raises(Stopped):
        play_into(
            tmp_path,
            small_plan(),
            threads=1,
            command="",
            figures=None,
            engine=contextlib.nullcontext(Cluster()),
        )
    assert f"dashboard: {SHOWN}\n" in capsys.readouterr().err


def test_arms_of_a_table(tmp_path):
    name = f"{NASTY}.csv"
    with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["arm", "reward"])
        rows.writerows([[f"{arm}{NASTY}", (7 * i + len(arm)) % 11] for i in range(40) for arm in ("a", "bb")])
    printed("diagnose", name, "--out", "page.html", cwd=tmp_path)
    words = ("--policy", "UCB1", "--replications", "1", "--horizon", "20", "--out", "replay")
    printed("replay", name, *words, cwd=tmp_path)
    for page in (tmp_path / "page.html", tmp_path / "replay" / "report.html"):
        assert {char for char in page.read_text() if unicodedata.category(char) in INVISIBLE} <= {"\n", "\t"}
    with (tmp_path / name).open("a") as file:
        file.write(f'"a",{json.dumps(NASTY)}\n')
    printed("diagnose", name, "--out", "page.html", cwd=tmp_path, code=1)
    printed("diagnose", name, "--arm", NASTY, cwd=tmp_path, code=1)
    assert Path(tmp_path / "page.html").exists()

"""The output, the page and the JSON file of `robandit verify`, with made-up findings."""

import io
import json
import math
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from robandit.cli.terminal.verify import block
from robandit.cli.verify import verify as command
from robandit.report.verify import summary
from robandit.verify import Effort, Finding, Statement, checked
from robandit.verify.statement import Evidence

ROWS = [
    {"case": "a <b>", "series": "T", "x": 1.0, "low": 0.9, "high": 1.1, "limit": 2.0},
    {"case": "an infinite end", "series": "T", "x": 1.0, "low": 0.9, "high": math.inf},
    {"case": "a case without a number", "series": "u"},
]


def statement(key, *, most, must=True, rows=ROWS):
    finding = Finding(
        claim="rate of <failures>",
        measured=1.0,
        low=0.9,
        high=1.1,
        most=most,
        must=must,
        misprints=("12",),
        note="why",
        headline="Only <if> it holds.",
    )

    def run(effort, track):
        for _ in track(range(3)):
            pass
        return Evidence(ran="3 & more", findings=(finding,), rows=rows, title="share", caption="a caption")

    return Statement(key=key, name=key.replace("-", " ").title(), says="x < y", run=run)


@pytest.fixture
def chosen(monkeypatch):
    """Statements for the command to find."""

    def choose(*given):
        monkeypatch.setattr("robandit.verify.statements", lambda names: given)

    return choose


def test_all_hold_and_files_are_written(chosen, tmp_path, capsys):
    chosen(statement("lemma-8", most=2.0), statement("theorem-9", most=2.0, rows=()))
    command("lemma-8", "theorem-9", quick=True, out=tmp_path / "page.html")
    out, err = capsys.readouterr()
    said = " ".join(out.split())
    for words in (
        "holds Lemma 8 (",
        "says x < y",
        "ran 3 & more",
        "holds rate of <failures>: 1 (0.9 to 1.1); predicted at most 2 [why; misprint 12]",
        "Only <if> it holds.",
        "2 statements: 2 hold, 0 inconclusive, 0 fail",
        "written:",
    ):
        assert words in said
    assert "Lemma 8: 3 of 3" in err
    data = json.loads((tmp_path / "page.json").read_text())
    assert data["format"] == 3
    assert data["statements"][0]["rows"][:2] == [ROWS[0], ROWS[1] | {"high": None}]
    assert data["statements"][1]["rows"] == []
    assert data["command"] == "robandit verify lemma-8 theorem-9 --quick --seed 0"
    assert [s["key"] for s in data["statements"]] == ["lemma-8", "theorem-9"]
    assert data["statements"][0]["findings"][0]["verdict"] == "holds"
    page = (tmp_path / "page.html").read_text()
    assert page.count("<details>") == 1
    assert (
        "<td class=words>a &lt;b&gt;</td><td class=words>T</td><td class=number>1 (0.9 to 1.1)</td><td class=number>2</td>"
        in page
    )
    assert page.count("<td class=number>–</td>") == 3
    assert "rate of &lt;failures&gt;" in page
    assert "rate of <failures>" not in page
    assert page.count("Only &lt;if&gt; it holds.") == 4  # in the table of all and in each section
    outside = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag, attrs):
            outside.extend(v for k, v in attrs if k in ("src", "href") and not (v or "").startswith("#"))

    Collector().feed(page)
    assert outside == []
    assert not re.search(r"@import|url\(http", page)
    assert not re.search(r"<script|\sstyle=|\son[a-z]+=", page)  # the page's Content-Security-Policy blocks them
    assert page.count("<style") == 1
    ids = re.findall(r'\sid="([^"]*)"', page)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("must", "code"), [(True, 3), (False, None)])
def test_the_exit_code_is_3_where_a_claim_that_must_hold_fails(must, code, chosen, tmp_path, capsys):
    chosen(statement("lemma-8", most=0.5, must=must))
    if code is None:
        command(out=tmp_path / "page.html")
    else:
        with pytest.raises(SystemExit) as stop:
            command(out=tmp_path / "page.html")
        assert stop.value.code == code
    assert "Only <if> it holds." not in (tmp_path / "page.html").read_text()
    assert ("for information" in " ".join(capsys.readouterr().out.split())) == (not must)
    assert (tmp_path / "page.html").exists()  # what failed is what one wants to look at
    assert (tmp_path / "page.json").exists()


def test_inconclusive_is_not_a_failure(chosen, tmp_path, capsys):
    chosen(statement("lemma-8", most=1.0))
    command(out=tmp_path / "page.html")
    assert "1 statement: 0 hold, 1 inconclusive, 0 fail" in capsys.readouterr().out


def test_brackets_are_not_markup():
    outcome = checked(statement("lemma-8", most=2.0), Effort())
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(block(outcome))
    shown = console.export_text()
    assert "[why; misprint 12]" in " ".join(shown.split())
    assert all(len(line) <= 60 for line in shown.splitlines())
    assert summary([outcome]).startswith("1 statement: 1 holds, ")

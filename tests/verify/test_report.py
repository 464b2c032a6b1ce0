"""The output, the page and the JSON file of `robandit verify`, with made-up findings."""

import io
import json
import math
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import matplotlib
import pytest
from rich.console import Console

from robandit.cli.terminal.verify import block
from robandit.cli.verify import verify as command
from robandit.report.verify import summary
from robandit.report.verify_figures import _drawable, svg
from robandit.verify import Effort, Finding, Statement, checked
from robandit.verify.figure import Cases, Curves
from robandit.verify.statement import Evidence


def statement(key, *, most, must=True, figure=None):
    rows = [{"case": "a <b>", "x": 1.0, "low": 0.9, "high": 1.1, "limit": most}]
    figure = figure or Cases(rows=rows, x_title="share")
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
        return Evidence(ran="3 & more", findings=(finding,), figure=figure, caption="a caption")

    return Statement(key=key, name=key.replace("-", " ").title(), says="x < y", run=run)


LINES = Curves(
    rows=[{"x": 10.0**i, "y": 2.0**i, "low": 1.9**i, "high": 2.1**i, "series": "measured"} for i in range(3)],
    limits=[{"x": 10.0**i, "y": 3.0**i, "series": "bound"} for i in range(3)],
    x_title="T",
    y_title="regret",
)


@pytest.fixture
def chosen(monkeypatch):
    """Statements for the command to find."""

    def choose(*given):
        monkeypatch.setattr("robandit.verify.statements", lambda names: given)

    return choose


def test_without_matplotlib_the_page_has_no_figures_and_names_the_extra(chosen, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    chosen(statement("lemma-8", most=2.0))
    command("lemma-8", quick=True, out=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count('pip install "robandit[plot]"') == 1
    assert "<figure" not in page
    assert json.loads((tmp_path / "page.json").read_text())["statements"][0]["figure"]["kind"] == "cases"


def test_all_hold_and_files_are_written(chosen, tmp_path, capsys):
    chosen(statement("lemma-8", most=2.0), statement("theorem-9", most=2.0, figure=LINES))
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
    assert data["format"] == 2
    assert [s["figure"]["kind"] for s in data["statements"]] == ["cases", "curves"]
    assert data["statements"][0]["figure"]["rows"][0]["case"] == "a <b>"
    assert data["command"] == "robandit verify lemma-8 theorem-9 --quick --seed 0"
    assert [s["key"] for s in data["statements"]] == ["lemma-8", "theorem-9"]
    assert data["statements"][0]["findings"][0]["verdict"] == "holds"
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2
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


def texts(drawing):
    return [element.text for element in ET.fromstring(drawing).iter("text")]


def test_a_drawing_shows_every_name_and_is_the_same_every_time():
    drawing = svg(LINES, "a")
    assert {"T", "regret", "measured", "bound"} <= set(texts(drawing))
    assert drawing == svg(LINES, "a")
    assert 'id="b-' in svg(LINES, "b")
    rows = [
        {"case": case, "series": series, "x": 1.0, "low": 0.9, "high": 1.1, "limit": 2.0}
        for case in ("costs $5 or $6", "a <b>")
        for series in ("first", "second")
    ]
    drawing = svg(Cases(rows=rows, x_title="share"), "a")
    assert {"costs $5 or $6", "a <b>", "share", "first", "second"} <= set(texts(drawing))


def test_a_user_s_settings_do_not_change_a_drawing():
    drawing = svg(LINES, "a")
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 30.0}):
        assert svg(LINES, "a") == drawing
        assert matplotlib.rcParams["font.size"] == 30.0


@pytest.mark.parametrize("power", [0.5, 3.0, 12.0, 40.0, 300.0])
def test_a_logarithmic_axis_has_few_labels_and_some_in_its_range(power):
    rows = [{"case": "case", "x": x, "low": x / 2.0, "high": 2.0 * x} for x in (10.0**-power, 1.0, 30.0)]
    values = [
        float(text) for text in texts(svg(Cases(rows=rows, x_title="number", log_x=True), "a")) if text[0].isdigit()
    ]
    assert 2 <= len(values) <= 8
    assert any(10.0**-power / 2.0 <= v <= 60.0 for v in values)


def test_an_interval_that_cannot_be_drawn_to_its_end_is_cut():
    for low, high in ((-1.0, 3.0), (-math.inf, math.inf), (0.0, math.inf)):
        row = {"case": "a", "x": 2.0, "low": low, "high": high}
        assert svg(Cases(rows=[row], x_title="", log_x=True), "a").count("<svg") == 1
        assert svg(Cases(rows=[row], x_title=""), "a").count("<svg") == 1
        json.dumps(Cases(rows=[row], x_title="").to_dict(), allow_nan=False)
    row = {"case": "a", "x": 2.0, "low": -1.0, "high": 3.0}
    assert _drawable(row, "x", log=True)["low"] == pytest.approx(0.2)
    assert _drawable(row, "x", log=False)["low"] == -1.0


def test_brackets_are_not_markup():
    outcome = checked(statement("lemma-8", most=2.0), Effort())
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(block(outcome))
    shown = console.export_text()
    assert "[why; misprint 12]" in " ".join(shown.split())
    assert all(len(line) <= 60 for line in shown.splitlines())
    assert summary([outcome]).startswith("1 statement: 1 holds, ")

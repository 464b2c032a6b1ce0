"""The diagnosis page in headless Chromium: charts are drawn and read out, nothing leaves the page, any width will do."""

import pytest

from helpers import studies
from helpers.chromium import NAMES, executable
from report.test_browser import CONTRAST, quiet
from robandit.report.study import write_study

pytestmark = [
    pytest.mark.skipif(executable() is None, reason=f"none of {', '.join(NAMES)} is on PATH"),
    pytest.mark.xdist_group("browser"),  # one process starts it
]
ALL = ("plain", "costs", "drifting", "hostile", "many", "extreme", "sampled")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name in ALL:
        write_study(getattr(studies, name)(), folder / f"{name}.html", command="robandit diagnose latency.csv")
    return folder


OPEN = "document.querySelectorAll('details').forEach((d) => { d.open = true; }); await new Promise((r) => setTimeout(r, 100));"


def test_charts_are_drawn_and_nothing_leaves_the_page(browser, pages):
    browser.open(pages / "plain.html")
    quiet(browser, pages / "plain.html")
    drawn = browser.do("""
        const count = (what) => document.querySelectorAll(what).length;
        return [count("figure:not([hidden])"), count("[data-chart=tails] .line"), count("[data-chart=tails] .fit"),
            count("[data-chart=distribution] .ridge"), count("[data-chart=index] .line"),
            count("[data-chart=index] .chosen")];
    """)
    # three arms on two sides, one fitted power; two estimators on both sides of two arms, the third has too few rewards
    assert drawn == [5, 6, 1, 3, 8, 8]
    sizes = browser.do(
        """return [...document.querySelectorAll("[data-chart=index] .line")].map((p) => p.getBBox().width)"""
    )
    assert min(sizes) > 200
    assert browser.do(
        """return [...document.querySelectorAll("figure svg[role=img]")].every((s) => s.ariaLabel.length > 40)"""
    )


def test_means_over_time_are_drawn_with_their_changes(browser, pages):
    browser.open(pages / "drifting.html")
    quiet(browser, pages / "drifting.html")
    assert browser.do("""
        const chart = document.querySelector("[data-chart=time]"), count = (what) => chart.querySelectorAll(what).length;
        const wide = Math.min(...[...chart.querySelectorAll(".line")].map((line) => line.getBBox().width));
        return [count(".line"), count(".change"), wide > 400]""") == [3, 2, True]
    words = browser.do("""return document.querySelector("[data-chart=time] svg").textContent""")
    assert "2024-01-01" in words
    assert "mean cost" in words
    tip = browser.do("""
        const chart = document.querySelector("[data-chart=time]"); chart.querySelector("svg[tabindex]").focus();
        return chart.querySelector(".tip:not([hidden])").textContent""")
    assert "to 2024-03-15 23:00" in tip
    assert (
        browser.do("""
        const chart = document.querySelector("[data-chart=time]");
        chart.querySelectorAll(".controls button")[1].click(); return chart.textContent""").count("No arm is shown.")
        == 1
    )


def test_arms_are_chosen_and_numbers_read_out(browser, pages):
    browser.open(pages / "plain.html")
    assert browser.do("""
        const chart = document.querySelector("[data-chart=tails]"); chart.querySelector(".legend button").click();
        return [...chart.querySelectorAll(".line")].map((line) => line.dataset.arm)""") == [
        "light",
        "few",
        "light",
        "few",
    ]
    tip = """return document.querySelector("[data-chart=index] .tip:not([hidden])")?.textContent ?? null"""
    assert browser.do(tip) is None
    browser.do("""document.querySelector("[data-chart=index] svg[tabindex]").focus()""")
    first = browser.do(tip)
    assert "Hill" in first
    browser.press("ArrowLeft")
    assert browser.do(tip) not in (None, first)
    browser.do("""document.querySelector("[data-chart=index] svg[tabindex]").blur()""")
    assert browser.do(tip) is None
    x, y = browser.do("""
        const svg = document.querySelector("[data-chart=tails] svg[tabindex]");
        svg.scrollIntoView({ block: "center", behavior: "instant" });
        const box = svg.getBoundingClientRect(); return [box.left + 200, box.top + 100]""")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "light" in browser.do(
        """return document.querySelector("[data-chart=tails] .tip:not([hidden])").textContent"""
    )
    quiet(browser, pages / "plain.html")


@pytest.mark.parametrize("name", ALL)
def test_the_page_itself_never_scrolls_sideways_on_a_phone(name, browser, pages):
    browser.open(pages / f"{name}.html", width=360, height=740)
    browser.do(OPEN)
    assert browser.do("return document.documentElement.scrollWidth") <= 360
    quiet(browser, pages / f"{name}.html")
    numbers = browser.do(
        """return [...document.querySelectorAll("figure path")].map((p) => p.getAttribute("d")).join(" ")"""
    )
    assert "NaN" not in numbers
    assert "Infinity" not in numbers


@pytest.mark.parametrize("name", ["plain", "costs", "hostile", "many", "sampled"])
def test_the_table_of_arms_fits_a_desktop(name, browser, pages):
    browser.open(pages / f"{name}.html", width=1200, height=900)
    wide, room = browser.do("const box = document.querySelector('.box'); return [box.scrollWidth, box.clientWidth]")
    assert wide <= room


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_background(dark, browser, pages):
    browser.open(pages / "plain.html", dark=dark)
    seen, poor = browser.do(CONTRAST)
    assert seen > 200
    assert poor == []


def test_names_stay_names(browser, pages):
    browser.open(pages / "hostile.html")
    quiet(browser, pages / "hostile.html")
    assert browser.do("return [typeof window.hacked, document.images.length]") == ["undefined", 0]
    assert studies.HOSTILE in browser.do("return document.querySelector('.legend').textContent")


def test_the_table_is_sorted_and_leads_to_an_arm(browser, pages):
    browser.open(pages / "many.html")
    means = browser.do("""
        const table = document.querySelector("table.sortable"); table.tHead.rows[0].cells[3].querySelector("button").click();
        return [...table.tBodies[0].rows].map((row) => Number(row.cells[3].dataset.v))""")
    assert means == sorted(means)
    assert len(means) == 40
    assert browser.do("return document.querySelectorAll('details.problem').length") == 24
    browser.do("""document.querySelector('a[href="#a7"]').click(); await new Promise((r) => setTimeout(r, 200))""")
    assert browser.do("return document.querySelector('#a7').open && document.querySelectorAll('#a7 .line').length > 0")


def test_print_has_everything_and_without_javascript_the_tables_are_there(browser, pages):
    browser.open(pages / "plain.html")
    assert browser.pdf().startswith(b"%PDF")
    browser.open(pages / "plain.html", script=False)
    assert "JavaScript, which is off" in browser.do("return document.querySelector('noscript').innerText")
    assert browser.do("return document.querySelectorAll('table.sortable').length") == 2
    quiet(browser, pages / "plain.html")

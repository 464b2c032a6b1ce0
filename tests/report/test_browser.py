"""The report in headless Chromium: charts are drawn, tables can be sorted, nothing leaves the page."""

import pytest

from helpers import report_examples as examples
from helpers.chromium import CONTRAST, NAMES, executable
from robandit.experiments.statistics import Findings
from robandit.report.page import write_page

pytestmark = [
    pytest.mark.skipif(executable() is None, reason=f"none of {', '.join(NAMES)} is on PATH"),
    pytest.mark.xdist_group("browser"),  # one process starts it
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name in ("one", "suite", "hostile", "in_order"):
        write_page(Findings(getattr(examples, name)()), folder / f"{name}.html", command="robandit compare")
    return folder


def quiet(browser, page):
    """No error on the console, and no address was asked for but the page's own."""
    assert browser.problems == []
    assert browser.requests == [page.as_uri()]


def test_charts_are_drawn_and_nothing_leaves_the_page(browser, pages):
    browser.open(pages / "one.html")
    quiet(browser, pages / "one.html")
    drawn = browser.do("""
        const count = (what) => document.querySelectorAll(what).length;
        return [count("figure:not([hidden]) > svg[role=img]"), count("[data-chart=curves] .line"), count(".band"),
            count("[data-chart=distribution] circle"), count("[data-chart=pulls] rect")];
    """)
    assert drawn == [3, 3, 3, 3 * 7, 3 * 3]  # a policy's worst replication is a diamond
    sizes = browser.do("""return [...document.querySelectorAll("figure > svg .line")].map((p) => p.getBBox().width)""")
    assert min(sizes) > 500
    assert browser.do("""return [...document.querySelectorAll("figure > svg")].every((s) => s.ariaLabel.length > 40)""")


def test_the_leaderboard_is_sorted_by_mouse_and_keyboard(browser, pages):
    browser.open(pages / "one.html")
    seen = """
        const table = document.querySelector("table.sortable");
        const heads = [...table.tHead.rows[0].cells];
        const column = COLUMN;
        const values = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[column].dataset.v));
        const now = () => [heads.map((head) => head.getAttribute("aria-sort")).indexOf("ascending"),
            heads.map((head) => head.getAttribute("aria-sort")).indexOf("descending"), values()];
    """
    by, down, means = browser.do(seen.replace("COLUMN", "1") + "return now()")
    assert (by, down) == (1, -1)
    assert means == sorted(means)
    speed = seen.replace("COLUMN", "8")
    by, down, times = browser.do(speed + 'heads[8].querySelector("button").click(); return now()')
    assert (by, down) == (8, -1)
    assert times == sorted(times)
    browser.do(speed + 'heads[8].querySelector("button").focus()')
    browser.press("Enter")
    by, down, times = browser.do(speed + "return now()")
    assert (by, down) == (-1, 8)
    assert times == sorted(times, reverse=True)
    names = browser.do(
        seen.replace("COLUMN", "0")
        + """
        heads[0].querySelector("button").click();
        return [...table.tBodies[0].rows].map((row) => row.cells[0].textContent.trim())"""
    )
    assert [name.split()[0] for name in names] == ["epsilon-greedy", "UCB1", "Uniform"]
    quiet(browser, pages / "one.html")


def test_axes_bands_and_policies_are_switched(browser, pages):
    browser.open(pages / "one.html")
    look = """
        const chart = document.querySelector("[data-chart=curves]");
        const press = (name) => chart.querySelector(`[data-switch=${name}]`).click();
        const shape = () => chart.querySelector(".line").getAttribute("d");
        const ticks = () => [...chart.querySelectorAll("svg[tabindex] > text")].map((t) => t.textContent);
    """
    before, log, after, linear = browser.do(
        look
        + """
        const was = [shape(), ticks()]; press("x"); press("y"); return [...was, shape(), ticks()]"""
    )
    assert before != after
    assert {"1", "10", "100", "1,000"} <= set(log)
    assert {"0", "200", "1,000", "2,000"} <= set(linear)
    assert browser.do(look + """press("bands"); return chart.querySelectorAll(".band").length""") == 0
    assert "mean regret" in browser.do(look + """press("mean"); return ticks()""")
    left = browser.do(
        look
        + """
        const first = chart.querySelector(".legend button"); first.click();
        return [first.ariaPressed, [...chart.querySelectorAll(".series")].map((s) => s.dataset.policy)]"""
    )
    assert left[0] == "false"
    assert len(left[1]) == 2
    quiet(browser, pages / "one.html")


def test_numbers_are_read_by_keyboard_and_by_pointer(browser, pages):
    browser.open(pages / "one.html")
    tip = """return document.querySelector(".tip:not([hidden])")?.textContent ?? null"""
    assert browser.do(tip) is None
    browser.do("""document.querySelector("svg[tabindex]").focus()""")
    assert "2,000 pulls" in browser.do(tip)
    browser.press("ArrowLeft")
    values = browser.do(tip)
    assert "2,000 pulls" not in values
    assert all(name in values for name in ("UCB1", "Uniform", "epsilon-greedy"))
    browser.do("""document.querySelector("svg[tabindex]").blur()""")
    assert browser.do(tip) is None
    x, y = browser.do("""
        const svg = document.querySelector("svg[tabindex]"); svg.scrollIntoView({ block: "center", behavior: "instant" });
        const box = svg.getBoundingClientRect(); return [box.left + 60, box.top + 100]""")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert browser.do(tip).startswith("1 pull: ")


def test_other_problems_open_and_are_drawn_then(browser, pages):
    browser.open(pages / "suite.html")
    lines = (
        """return [...document.querySelectorAll("details.problem")].map((d) => d.querySelectorAll(".line").length)"""
    )
    assert browser.do(lines) == [3, 0, 0]
    browser.do("""document.querySelector('a[href="#p2"]').click(); await new Promise((r) => setTimeout(r, 200))""")
    assert browser.do(lines) == [3, 0, 4]  # Kurtosis UCB plays here
    quiet(browser, pages / "suite.html")


@pytest.mark.parametrize("width", [360, 768])
@pytest.mark.parametrize("name", ["one", "suite", "hostile"])
def test_the_page_itself_never_scrolls_sideways(name, width, browser, pages):
    browser.open(pages / f"{name}.html", width=width, height=740)
    browser.do("""document.querySelectorAll("details").forEach((d) => { d.open = true; });
        await new Promise((r) => setTimeout(r, 100))""")
    assert browser.do("return document.documentElement.scrollWidth") <= width
    assert browser.problems == []


def test_rows_of_a_suite_stay_low_on_a_phone_and_have_lines(browser, pages):
    browser.open(pages / "suite.html", width=390)
    heights, lines = browser.do("""
        const rows = [...document.querySelector("table").tBodies[0].rows];
        const line = (cell) => getComputedStyle(cell).borderTopWidth;
        return [rows.map((row) => row.offsetHeight), rows.map((row) => [...row.cells].map(line))]""")
    assert len(heights) == 4
    assert max(heights) < 100
    assert {width for row in lines for width in row} == {"1px"}
    assert browser.do("return document.querySelectorAll('.reasons li').length") == 2


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_background(dark, browser, pages):
    browser.open(pages / "suite.html", dark=dark)
    seen, poor = browser.do(CONTRAST)
    assert seen > 300
    assert poor == []
    ground = browser.do("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") != dark


def test_print_has_everything_and_no_buttons(browser, pages):
    browser.open(pages / "suite.html")
    assert browser.pdf().startswith(b"%PDF")
    assert browser.do("""return document.querySelectorAll("[data-chart=curves] > svg").length""") == 3  # drawn for it
    assert browser.do("""return document.querySelectorAll("details.problem[open]").length""") == 1  # and closed again
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.do("""return getComputedStyle(document.querySelector(".controls")).display""") == "none"
    assert browser.do("""return getComputedStyle(document.querySelector(".legend button")).display""") != "none"
    quiet(browser, pages / "suite.html")


def test_without_javascript_the_tables_are_there(browser, pages):
    browser.open(pages / "one.html", script=False)
    assert "JavaScript, which is off" in browser.do("return document.querySelector('noscript').innerText")
    assert browser.do("return document.querySelectorAll('table.sortable tbody tr').length") == 3
    assert browser.do("return document.querySelectorAll('figure:not([hidden])').length") == 0
    quiet(browser, pages / "one.html")


def test_regret_below_zero_is_drawn(browser, pages):
    """Realised regret can be negative: then axes are not logarithmic at first, and every line is whole and inside the chart."""
    browser.open(pages / "in_order.html")
    quiet(browser, pages / "in_order.html")
    switches = """return [...document.querySelectorAll("#p0 [data-switch=y], #p0 [data-switch=log]")].map((b) => b.ariaPressed)"""
    assert browser.do(switches) == ["false", "false"]
    lines = browser.do("""
        const frame = document.querySelector("#p0 [data-chart=curves] clipPath rect").getBBox();
        return [...document.querySelectorAll("#p0 [data-chart=curves] .line")].map((line) => {
            const box = line.getBBox();
            return [line.getAttribute("d").split("M").length - 1, box.y >= frame.y, box.y + box.height <= frame.y + frame.height];
        });
    """)
    assert lines == [[1, True, True]] * 3
    ticks = browser.do("""return [...document.querySelectorAll("#p0 figure > svg > text")].map((t) => t.textContent)""")
    assert "−500" in ticks
    inside = browser.do("""
        const chart = document.querySelector("#p0 [data-chart=distribution]");
        const left = Number(chart.querySelector(".name").getAttribute("x"));  // where names end
        return [...chart.querySelectorAll("circle")].every((c) => c.cx.baseVal.value > left);
    """)
    assert inside
    browser.do("""document.querySelector("#p0 [data-switch=y]").click()""")
    browser.do("""document.querySelector("#p0 [data-switch=log]").click()""")
    quiet(browser, pages / "in_order.html")


def test_names_stay_names(browser, pages):
    browser.open(pages / "hostile.html")
    quiet(browser, pages / "hostile.html")
    assert browser.do("return [typeof window.hacked, document.images.length]") == ["undefined", 0]
    shown = browser.do("return document.querySelector('.legend').textContent")
    assert examples.HOSTILE in shown


def test_the_page_may_not_reach_out(browser, pages):
    browser.open(pages / "one.html")
    assert browser.do("return await fetch('http://127.0.0.1:9/').then(() => 'asked', () => 'refused')") == "refused"
    assert "Content Security Policy" in str(browser.problems)

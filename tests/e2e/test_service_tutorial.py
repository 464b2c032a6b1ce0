"""docs/service-in-five-minutes.md runs against a real server, and the pages about the dashboard say what is true."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

from helpers.serving import Local, Server
from robandit.service import experiments, sessions
from robandit.service.dashboard import charts, looks, overview, pages, timeline

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE, HOW_TO = DOCS / "service-in-five-minutes.md", DOCS / "how-to" / "dashboard.md"
CHECK = runpy.run_path(str(DOCS / "check.py"), run_name="check")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_tutorial_runs(tmp_path, monkeypatch):
    text, pause = PAGE.read_text(encoding="utf-8"), "time.sleep(0.05)"
    assert text.count(pause) == 1
    quick = tmp_path / PAGE.name
    quick.write_text(text.replace(pause, "time.sleep(0.0)"), encoding="utf-8")
    with Server(tmp_path / "robandit.db", authenticate=True) as server:
        monkeypatch.setenv("URL", server.url)
        monkeypatch.setenv("KEY", server.key)
        assert CHECK["run_console"](PAGE) == 1
        assert CHECK["run_python"](quick) == 1
        shown = server.call("GET", "/v1/experiments/router").json
    assert shown["counts"] == {"decisions": 500, "rewards": 500, "late": 0, "expired": 0, "open": 0}
    assert shown["settings"]["unit"] == "ms"


def test_the_pictures_are_those_of_the_script():
    script = (DOCS / "figures" / "dashboard.py").read_text(encoding="utf-8")
    used = set()
    for page in (PAGE, HOW_TO, ROOT / "README.md"):
        used |= set(re.findall(r"figures/dashboard-(\w+)\.png", page.read_text(encoding="utf-8")))
    made = set(re.findall(r'"(overview|experiment|decision|new)"', script))
    assert used == made
    assert {path.stem.removeprefix("dashboard-") for path in (DOCS / "figures").glob("dashboard-*.png")} == made


def test_the_pages_name_the_limits_of_the_code():
    text = HOW_TO.read_text(encoding="utf-8")
    assert f"after {sessions.LIFETIME / 3600:.0f} hours" in text
    assert f"pages of {overview.PER_PAGE} experiments" in text
    assert f"more than {timeline.MOST_COUNTED:,} events" in text
    assert f"in the last {looks.RATE_SPAN:.0f} seconds" in text
    assert f"{100 * experiments.MANY_OPEN:.0f} % of `max_open`" in text
    assert charts.COLOURS == 8
    assert "more than eight" in text
    assert len(timeline.WINDOWS) == 5
    assert "five windows" in text
    deploy = (DOCS / "how-to" / "deploy.md").read_text(encoding="utf-8")
    assert pages.HEARTBEAT == 10.0
    assert "at least every ten seconds" in " ".join(deploy.split())


def test_the_tutorial_names_what_the_form_has(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    with Local(tmp_path / "robandit.db") as local:
        page = local.call("GET", "/new").body.decode()
    for words in re.findall(r"(?<!\*)\*([A-Z][a-z ]+)\*(?!\*)", text):
        assert f">{words}<" in page
    for words in ("Unit of the rewards", "Reward window, in seconds", "Rewards are costs"):
        assert words in page


def test_the_documentation_and_the_dashboard_have_the_same_mark():
    """Sphinx takes it from the folder of the documentation, and the server from the package."""
    ours = ROOT / "src" / "robandit" / "service" / "dashboard" / "assets" / "mark.svg"
    assert (DOCS / "_static" / "mark.svg").read_bytes() == ours.read_bytes()

"""docs/how-to/client.md runs against a real server, and names errors and parameters that exist."""

import inspect
import re
import runpy
from pathlib import Path

from helpers.serving import Server
from robandit import client, errors

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "how-to" / "client.md"
CHECK = runpy.run_path(str(DOCS / "check.py"), run_name="check")


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    with Server(tmp_path / "robandit.db", authenticate=True) as server:
        monkeypatch.setenv("URL", server.url)
        monkeypatch.setenv("KEY", server.key)
        assert CHECK["run_python"](PAGE) == 9
        counts = server.call("GET", "/v1/experiments/provider").json["counts"]
    assert counts == {"decisions": 506, "rewards": 506, "late": 0, "expired": 0, "open": 0}


def test_the_page_names_what_exists():
    text = PAGE.read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert len(table) == 8
    assert table <= set(errors.__all__)
    defaults = {name: each.default for name, each in inspect.signature(client.Client).parameters.items()}
    assert f"`timeout` seconds ({defaults['timeout']:g} by default;" in text
    assert (
        f"`connect_timeout` ({defaults['connect_timeout']:g}) and `read_timeout` ({defaults['read_timeout']:g})" in text
    )
    assert f"At most `max_waiting` reports are kept ({defaults['max_waiting']:,})" in text
    assert inspect.signature(client.AsyncClient) == inspect.signature(client.Client)


def test_the_api_page_lists_every_public_name():
    text = (DOCS / "reference" / "api" / "client.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^   (\w+)$", text, re.MULTILINE)) == sorted(client.__all__)


def test_both_clients_have_the_same_methods():
    for blocking, other in ((client.Client, client.AsyncClient), (client.Experiment, client.AsyncExperiment)):
        public = [name for name in vars(blocking) if not name.startswith("_") and name != "edge"]  # for threads only
        assert public == [name for name in vars(other) if not name.startswith("_")]
        for name in public:
            if inspect.isfunction(vars(blocking)[name]):
                given = inspect.signature(vars(blocking)[name]).parameters
                assert given == inspect.signature(vars(other)[name]).parameters, name

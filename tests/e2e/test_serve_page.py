"""docs/how-to/serve.md and deploy.md: commands run against a real server, and files are checked by the programs that read them."""

import inspect
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.serving import Server

DOCS = Path(__file__).parents[2] / "docs"
SERVE, DEPLOY = DOCS / "how-to" / "serve.md", DOCS / "how-to" / "deploy.md"
CHECK = runpy.run_path(str(DOCS / "check.py"), run_name="check")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_and_the_client_of_the_page_run(tmp_path, monkeypatch):
    with Server(tmp_path / "robandit.db", authenticate=True) as server:
        monkeypatch.setenv("URL", server.url)
        monkeypatch.setenv("KEY", server.key)
        assert CHECK["run_console"](SERVE) >= 19
        assert CHECK["run_python"](SERVE) == 1
        counts = server.call("GET", "/v1/experiments/provider").json["counts"]
        assert counts == {"decisions": 5, "rewards": 4, "late": 0, "expired": 0, "open": 1}


def test_the_pages_name_metrics_that_exist(tmp_path):
    named = set(re.findall(r"`(robandit_\w+)", SERVE.read_text() + DEPLOY.read_text()))
    assert len(named) > 7
    with Server(tmp_path / "robandit.db") as server:
        text = server.call("GET", "/metrics").body.decode()
    assert named <= set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))


def test_the_pages_name_the_limits_of_the_code():
    from robandit.decisions import engine, settings
    from robandit.service import application, explanations, http, server

    text = (DOCS / "explanation" / "service-guarantees.md").read_text()
    for limit in (engine.MOST_WAITING, application.MOST_REQUESTS, settings.DEFAULT_OPEN, engine.SNAPSHOT_EVERY):
        assert f"{limit:,}" in text
    assert f"| {explanations.MOST_WAITING} | 429 |" in text
    assert f"{http.LARGEST_BODY >> 20} MiB" in text
    assert f"{server.GRACE} seconds" in text


def files(page):
    """The files that a page shows: a block with a name after its language."""
    return dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_units(tmp_path):
    units = {name: text for name, text in files(DEPLOY).items() if name.endswith((".service", ".timer"))}
    assert len(units) == 3
    for name, text in units.items():
        (tmp_path / name).write_text(text.replace("/opt/robandit/bin/robandit", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", *(tmp_path / name for name in units)], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "robandit" in line]
    assert not ours, ours


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_nginx_accepts_its_configuration(tmp_path):
    text = files(DEPLOY)["robandit.conf"]
    text = re.sub(r"^ *(ssl_certificate|listen).*\n", "", text, flags=re.MULTILINE)  # there is no certificate here
    path = tmp_path / "nginx.conf"
    path.write_text(f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {text} }}")
    done = subprocess.run(["nginx", "-t", "-c", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs Caddy")
def test_caddy_accepts_its_configuration(tmp_path):
    path = tmp_path / "Caddyfile"
    path.write_text(files(DEPLOY)["Caddyfile"])
    done = subprocess.run(
        ["caddy", "adapt", "--config", path, "--adapter", "caddyfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [SERVE, DEPLOY], ids=lambda page: page.stem)
def test_commands_have_options_that_exist(page):
    from robandit.cli import backup, keys, serve

    words = re.findall(r"robandit (serve|backup|keys create|keys list|keys revoke)\b([^\n`'|]*)", page.read_text())
    functions = {
        "serve": serve.serve,
        "backup": backup.backup,
        "keys create": keys.create,
        "keys list": keys.list_keys,
        "keys revoke": keys.revoke,
    }
    assert len(words) >= 5
    for command, rest in words:
        known = {f"--{name.replace('_', '-')}" for name in inspect.signature(functions[command]).parameters}
        assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) <= known, (command, rest)

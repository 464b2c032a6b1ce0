"""docs/how-to/serve.md and deploy.md: commands run against a real server, and files are checked by the programs that read them."""

import http.server
import inspect
import json
import os
import re
import runpy
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from helpers.fault_proxy import FaultProxy
from helpers.fronts import PROXIES
from helpers.serving import Server

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"
SERVE, DEPLOY = DOCS / "how-to" / "serve.md", DOCS / "how-to" / "deploy.md"
CHECK = runpy.run_path(str(DOCS / "check.py"), run_name="check")
FAULTS = runpy.run_path(str(TESTS / "client" / "faults.py"), run_name="faults")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    with Server(tmp_path / "robandit.db", authenticate=True) as server:
        monkeypatch.setenv("URL", server.url)
        monkeypatch.setenv("KEY", server.key)
        assert CHECK["run_console"](SERVE) >= 19
        counts = server.call("GET", "/v1/experiments/provider").json["counts"]
        assert counts == {"decisions": 4, "rewards": 3, "late": 0, "expired": 0, "open": 1}


# --- JavaScript ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def node(tmp_path):
    """A function that runs the page's function `post`, and then a program. Returns what that printed."""
    needed = ["node", "-e", "process.exit(globalThis.fetch ? 0 : 1)"]
    if shutil.which("node") is None or subprocess.run(needed, check=False).returncode:
        pytest.skip("needs Node 18 or newer")
    functions, mark, _ = CHECK["javascript"](SERVE).partition("const decision = ")
    assert mark
    limit = "AbortSignal.timeout(5000)"
    assert limit in functions

    def run(program, url, *, limit_ms=5000):
        text = functions.replace(limit, f"AbortSignal.timeout({limit_ms})") + program
        path = tmp_path / "program.mjs"
        path.write_text(text, encoding="utf-8")
        environment = os.environ | {"URL": url, "KEY": "rb_1"}
        done = subprocess.run(["node", path], env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_the_javascript_of_the_page_runs(node, tmp_path, monkeypatch):
    with Server(tmp_path / "robandit.db", authenticate=True) as server:
        monkeypatch.setenv("URL", server.url)
        monkeypatch.setenv("KEY", server.key)
        server.call("PUT", "/v1/experiments/provider", {"arms": ["a", "b", "c"], "minimize": True})
        assert CHECK["run_js"](SERVE) == 1
        counts = server.call("GET", "/v1/experiments/provider").json["counts"]
        assert counts == {"decisions": 1, "rewards": 1, "late": 0, "expired": 0, "open": 0}
        server.call("POST", "/v1/experiments/provider/decisions", {"id": "1"})
        nothing = {"id": "1", "value": None}  # what JSON.stringify makes of NaN
        assert server.call("POST", "/v1/experiments/provider/rewards", nothing).status == 422
        monkeypatch.setenv("KEY", "rb_wrong")
        with pytest.raises(AssertionError, match="Error: 401"):
            CHECK["run_js"](SERVE)
        counts = server.call("GET", "/v1/experiments/provider").json["counts"]
        assert counts == {"decisions": 2, "rewards": 1, "late": 0, "expired": 0, "open": 1}


WORKERS = """
async function work(worker) {
  for (let i = 0; i < 5; i++) {
    const id = randomUUID();
    const decision = await post("/v1/experiments/provider/decisions", { id }, 50);
    const value = worker + i / 10;
    const reward = await post("/v1/experiments/provider/rewards", { id, value }, 50);
    console.log(JSON.stringify([decision, value, reward.outcome]));
  }
}
await Promise.all([1, 2, 3, 4, 5, 6].map(work));
"""


def test_with_faults_the_javascript_counts_every_reward_once(node, tmp_path):
    ledger = FAULTS["Ledger"]()
    with Server(tmp_path / "robandit.db", "--relaxed-durability") as server:
        server.call("PUT", "/v1/experiments/provider", {"arms": ["a", "b", "c"], "minimize": True})
        with FaultProxy(server.host, server.port, seed=5, share=0.4) as proxy:
            for decision, value, outcome in node(WORKERS, proxy.url, limit_ms=300):
                ledger.decided([FAULTS["Decision"](fallback=False, **decision)])
                ledger.rewarded(decision["id"], value, outcome)
        assert len(ledger.rewards) == 30
        assert proxy.total > 10
        assert proxy.made["reset_after"] + proxy.made["cut"] > 0  # these were stored, and sent again
        FAULTS["check"](ledger, server)


@pytest.fixture
def scripted():
    """A server that answers as told, and records the time and the body of each call. The last answer stays."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.calls.append((time.monotonic(), self.headers["Authorization"], json.loads(body)))
            status, headers, answer = server.script.pop(0) if len(server.script) > 1 else server.script[0]
            self.send_response(status)
            for name, value in ({"Content-Length": len(answer)} | headers).items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.calls = []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


POST = """
try {
  console.log(JSON.stringify(await post("/x", { id: "1" }, 3)));
} catch (error) {
  console.log(JSON.stringify(error.message));
}
"""


def test_the_javascript_waits_as_long_as_the_service_asks(node, scripted):
    scripted.script = [(503, {"Retry-After": 1}, b"loading"), (429, {"Retry-After": "soon"}, b""), (200, {}, b"[7]")]
    assert node(POST, scripted.url) == [[7]]
    assert [call[1:] for call in scripted.calls] == [("Bearer rb_1", {"id": "1"})] * 3
    times = [call[0] for call in scripted.calls]
    assert times[1] - times[0] > 0.99


def test_the_javascript_repeats_what_may_succeed_only(node, scripted):
    scripted.script = [(409, {}, b"another reward")]
    assert node(POST, scripted.url) == ["409: another reward"]
    assert len(scripted.calls) == 1
    scripted.script = [(500, {}, b"x" * 1000)]
    assert node(POST, scripted.url) == ["500: " + "x" * 500]
    assert len(scripted.calls) == 1 + 3
    scripted.script = [(200, {"Content-Length": 100}, b"[1"), (200, {}, b"[1]")]  # the first answer never ends
    assert node(POST, scripted.url, limit_ms=300) == [[1]]


def test_the_pages_name_metrics_that_exist(tmp_path):
    named = set(re.findall(r"`(robandit_\w+)", SERVE.read_text() + DEPLOY.read_text()))
    assert len(named) > 7
    with Server(tmp_path / "robandit.db") as server:
        text = server.call("GET", "/metrics").body.decode()
    assert named <= set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))


def test_the_pages_name_the_limits_of_the_code():
    from robandit.decisions import base, settings
    from robandit.service import application, connection, decisions, explanations, http, server
    from robandit.service.dashboard import pages, site
    from robandit.storage import connections, postgres

    deploy = DEPLOY.read_text()
    assert f"up to {connections.MOST_IDLE} connections" in deploy
    assert f"PostgreSQL {postgres.OLDEST_SERVER // 10_000} or newer" in deploy
    assert f"calls have {server.GRACE} seconds to finish" in deploy
    text = (DOCS / "explanation" / "service-guarantees.md").read_text()
    for limit in (base.MOST_WAITING, application.MOST_REQUESTS, settings.DEFAULT_OPEN, base.SNAPSHOT_EVERY):
        assert f"{limit:,}" in text
    assert f"| {explanations.MOST_WAITING} | 429 |" in text
    assert f"{http.LARGEST_BODY >> 20} MiB" in text
    assert f"{server.GRACE} seconds" in text
    assert f"between two parts of a chunked body | {connection.LARGEST_HEAD >> 10} KiB | 413 |" in text
    assert f"| headers of a request | {connection.MOST_HEADERS} | 413 |" in text
    assert f"read some of its answer | {connection.HEAD_PATIENCE:g} |" in text
    assert f"| {connection.IDLE_PATIENCE:g} | the connection is closed |" in text
    assert f"| {connection.MOST_PIPELINED} | 429 |" in text
    assert f"| {server.MOST_CONNECTIONS:,}, or the limit of open files minus {server.OWN_FILES};" in text
    assert f"closed after {connection.LINGER:g} seconds" in text
    assert f"| {pages.MOST_STREAMS} | 429 |" in text
    assert f"to log in, {site.LARGEST_LOGIN >> 10} KiB" in text
    assert f"| levels of a context | {decisions.MOST_LEVELS} | 422 |" in text


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_nginx_accepts_its_configuration(tmp_path):
    text = (PROXIES / "robandit.conf").read_text()
    text = re.sub(r"^ *(ssl_certificate|listen).*\n", "", text, flags=re.MULTILINE)  # there is no certificate here
    path = tmp_path / "nginx.conf"
    text = text.replace(
        "    keepalive 64;", "    server 127.0.0.1:8001 fail_timeout=2s;\n    keepalive 64;"
    )  # another replica
    path.write_text(f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {text} }}")
    done = subprocess.run(["nginx", "-t", "-c", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs Caddy")
def test_caddy_accepts_its_configuration():
    done = subprocess.run(
        ["caddy", "adapt", "--config", PROXIES / "Caddyfile", "--adapter", "caddyfile"],
        capture_output=True,
        text=True,
        check=False,
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

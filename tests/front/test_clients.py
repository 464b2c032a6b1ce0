"""Real clients: curl, Java, Node and Python, directly and behind the documented proxies. Nothing is smuggled through these.

`make front` runs all of it; `make test` what is cheap and installed.
"""

import http.client
import http.server
import json
import os
import re
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers import fronts
from helpers.amount import FRONT
from helpers.fronts import Front, needs
from helpers.wires import request
from robandit.client import Client

PROGRAMS = Path(__file__).parent / "programs"
P = "/v1/experiments/p"
LARGE = 500
"""Items of a batch, whose body fills several segments."""

pytestmark = pytest.mark.xdist_group("front")
needs_front = pytest.mark.skipif(not FRONT, reason="make front runs it")


@contextmanager
def direct(server, folder):
    yield Front(server.host, server.port)


@pytest.fixture(
    scope="module",
    params=[
        direct,
        *(pytest.param(each, marks=needs_front) for each in (fronts.caddy, fronts.balancer, fronts.nginx)),
    ],
    ids=["direct", "caddy", "balancer", "nginx"],
)
def front(request, server, tmp_path_factory):
    """The service itself, or a documented proxy before it."""
    with request.param(server, tmp_path_factory.mktemp("proxy")) as front:
        yield front


# --- clients: each makes the same calls, and returns the status and the body of each answer ------------------------------------


def lines(text):
    """The answers that a program printed: a status, a tab and a body in each line."""
    return [(int(status), body) for status, _, body in (line.partition("\t") for line in text.splitlines())]


def environment(front, key):
    made = os.environ | {"URL": front.url, "KEY": key}
    if front.certificate is not None:
        made |= {"NODE_EXTRA_CA_CERTS": str(front.certificate), "SSL_CERT_FILE": str(front.certificate)}
    return made


def ran(command, front, key):
    done = subprocess.run(
        command, env=environment(front, key), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def curl(*options):
    def by_curl(front, key, calls, folder):
        needs("curl")
        command = ["curl", "--silent", "--show-error", "--max-time", "60"]
        trust = [] if front.certificate is None else ["--cacert", str(front.certificate)]
        answers = []
        for path, body in calls:
            (folder / "body").write_text(body)
            send = ["--header", f"Authorization: Bearer {key}", "--data-binary", f"@{folder / 'body'}"]
            written = ran(
                [*command, *options, *trust, *send, "--write-out", "\t%{http_code}", front.url + path], front, key
            )
            text, _, status = written.rpartition("\t")
            answers.append((int(status), text))
        return answers

    return by_curl


def in_file(calls, folder):
    path = folder / "calls"
    path.write_text("".join(f"{path}\t{body}\n" for path, body in calls))
    return path


def java(front, key, calls, folder):
    needs("java", "keytool")
    options = []
    if front.certificate is not None:
        store = folder / "trusted.p12"
        words = ["-importcert", "-noprompt", "-alias", "front", "-file", front.certificate, "-storepass", "changeit"]
        subprocess.run(["keytool", *words, "-keystore", store], check=True, capture_output=True)
        options = [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"]
    return lines(ran(["java", *options, PROGRAMS / "Calls.java", in_file(calls, folder)], front, key))


def node(kind):
    def by_node(front, key, calls, folder):
        needs("node")
        return lines(ran(["node", PROGRAMS / "calls.mjs", kind, in_file(calls, folder)], front, key))

    return by_node


def kept_connection(front, key, calls, folder):
    kind = http.client.HTTPConnection if front.certificate is None else http.client.HTTPSConnection
    options = {} if front.certificate is None else {"context": front.context}
    connection = kind(front.host, front.port, timeout=60, **options)
    answers = []
    for path, body in calls:
        connection.request("POST", path, body.encode(), {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        answers.append((response.status, response.read().decode()))
    connection.close()
    return answers


def urllib_request(front, key, calls, folder):
    answers = []
    for path, body in calls:
        asked = urllib.request.Request(front.url + path, body.encode(), {"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(asked, timeout=60, context=front.context) as response:
            answers.append((response.status, response.read().decode()))
    return answers


CLIENTS = {
    "http.client": kept_connection,
    "urllib": urllib_request,
    "curl --http2": curl("--http2"),
    "curl": pytest.param(curl(), marks=needs_front),
    "curl --http1.0": pytest.param(curl("--http1.0", "--no-alpn"), marks=needs_front),
    "curl, expects 100": pytest.param(curl("--http2", "--header", "Expect: 100-continue"), marks=needs_front),
    "curl, chunked": pytest.param(curl("--http2", "--header", "Transfer-Encoding: chunked"), marks=needs_front),
    "java": pytest.param(java, marks=needs_front),
    "node fetch": pytest.param(node("fetch"), marks=needs_front),
    "node http": pytest.param(node("http"), marks=needs_front),
}


def decisions(server):
    return server.call("GET", P).json["counts"]["decisions"]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
def test_repeated_calls_get_the_same_decision(server, front, client, request, tmp_path):
    """In 0.2, curl --http2 got another id and arm each time, and Java 400 for decisions that were stored."""
    if client is CLIENTS["curl, chunked"].values[0] and front.certificate is not None:
        pytest.skip("HTTP/2 has no chunks")
    before = decisions(server)
    id = re.sub(r"\W", "-", request.node.name)
    decide = (f"{P}/decisions", json.dumps({"id": id, "among": ["b"]}))
    reward = (f"{P}/rewards", json.dumps({"id": id, "value": 1.5}))
    items = [{"id": f"{id}-{i}", "context": "x" * 200} for i in range(LARGE)]
    batch = (f"{P}/decisions/batch", json.dumps({"items": items}))
    answers = client(front, server.key, [decide, decide, decide, batch, reward, decide, batch, reward], tmp_path)
    assert [status for status, _ in answers] == [200] * 8, answers
    found = [json.loads(body) for _, body in answers]
    first, rewarded = found[0], found[4]
    assert (first["id"], first["arm"]) == (id, "b")
    assert (found[1], found[2], found[5], found[7]) == (first, first, first, rewarded)
    assert (rewarded["id"], rewarded["value"], rewarded["outcome"]) == (id, 1.5, "applied")
    large, again = ([item["decision"] for item in answer["items"]] for answer in (found[3], found[6]))
    assert [each["id"] for each in large] == [item["id"] for item in items]
    assert again == large
    assert decisions(server) == before + 1 + LARGE


def test_our_client_decides_once(server, front, request, monkeypatch):
    if front.certificate is not None:
        monkeypatch.setenv("SSL_CERT_FILE", str(front.certificate))
    before = decisions(server)
    id = re.sub(r"\W", "-", request.node.name)
    with Client(front.url, key=server.key) as client:
        experiment = client.experiment("p")
        made = [experiment.decide(id=id, among=["b"]) for _ in range(3)]
        assert {(each.id, each.arm) for each in made} == {(id, "b")}
        assert experiment.reward(made[0], 1.0).outcome == "applied"
    assert decisions(server) == before + 1


# --- attacks through the proxies ------------------------------------------------------------------------------------------------


def spoken(front, data):
    """Send an attack, and return what comes back until nothing does."""
    received = b""
    with front.connected() as attacker:
        attacker.settimeout(1.0)
        try:
            attacker.sendall(data)
            while part := attacker.recv(65_536):
                received += part
                if b"}" in part:
                    break
        except OSError:  # also after a second
            pass
    return received


@pytest.mark.parametrize("upgrade", ["foo", "h2c", "websocket"])
def test_nothing_is_smuggled_into_the_connection_of_an_administrator(server, front, upgrade):
    """In 0.2 behind Caddy, the second GET was answered 204: it had deleted e1, with the administrator's key."""
    server.call("PUT", "/v1/experiments/e1", {"arms": ["a"]})
    body = b"\r\n" * 6_000 + b"DELETE /v1/experiments/e1 HTTP/1.1\r\nX: "
    attack = request(
        "Connection: Upgrade", f"Upgrade: {upgrade}", f"Content-Length: {len(body)}", path=f"{P}/decisions"
    ).replace(b"Host: x", f"Host: {front.host}:{front.port}".encode())
    kind = http.client.HTTPConnection if front.certificate is None else http.client.HTTPSConnection
    options = {} if front.certificate is None else {"context": front.context}
    for _ in range(4):
        answered = spoken(front, attack + body)
        assert not answered.startswith((b"HTTP/1.1 2", b"HTTP/1.1 101")), answered
        for _ in range(3):
            administrator = kind(front.host, front.port, timeout=30, **options)
            administrator.request("GET", "/v1/experiments/e1", headers={"Authorization": f"Bearer {server.key}"})
            answer = administrator.getresponse()
            assert (answer.status, json.loads(answer.read())["name"]) == (200, "e1")
            administrator.close()
    assert server.call("GET", "/v1/experiments/e1").status == 200


# --- the configuration of the balancer ------------------------------------------------------------------------------------------


class Unready(http.server.BaseHTTPRequestHandler):
    """A replica whose database is down: it is not ready, but still answers."""

    def do_GET(self):
        body = b"{}" if self.path == "/readyz" else b'{"arm":"fallback"}'
        self.send_response(503 if self.path == "/readyz" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format, *args):
        pass


@needs_front
def test_replicas_that_are_not_ready_still_get_the_calls(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unready) as replica:
        threading.Thread(target=replica.serve_forever, daemon=True).start()
        with fronts.balancer(Front("127.0.0.1", replica.server_port), tmp_path) as front:
            for _ in range(40):  # health is checked every two seconds
                made = http.client.HTTPConnection(front.host, front.port, timeout=30)
                made.request("POST", f"{P}/decisions", b"{}")
                answer = made.getresponse()
                assert (answer.status, answer.read()) == (200, b'{"arm":"fallback"}')
                made.close()
                threading.Event().wait(0.1)
        replica.shutdown()

"""Requests that never end, and clients that leave: they change nothing, and do not keep others out."""

import json
import socket
import time

import pytest

from helpers.serving import Local, Server
from robandit.service import application, connection, http

P = "/v1/experiments/p"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("service") / "robandit.db", authenticate=True) as service:
        service.call("PUT", P, {"arms": ["a", "b"]})
        yield service


def connected(service, text):
    connection = socket.create_connection((service.host, service.port), timeout=60)
    connection.sendall(text.encode())
    return connection


def head(service, method, path, *lines):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {service.key}", *lines, "", ""])


def test_a_request_that_is_cut_makes_no_decision(running):
    before = running.call("GET", P).json["counts"]
    for body in ("", '{"id": "cut'):
        for _ in range(5):
            connected(running, head(running, "POST", f"{P}/decisions", "Content-Length: 40") + body).close()
    time.sleep(0.3)
    assert running.call("GET", P).json["counts"] == before
    assert running.call("POST", f"{P}/decisions", {"id": "cut"}).status == 200


def test_bodies_of_calls_that_have_none_are_not_awaited(running):
    for path in ("/healthz", "/docs", P):
        for line in ("Content-Length: 1", "Transfer-Encoding: chunked"):
            with connected(running, head(running, "GET", path, line)) as connection:
                assert connection.recv(100).startswith(b"HTTP/1.1 400")


def test_a_head_that_is_too_large_ends_the_connection(running):
    text = "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "
    with connected(running, text) as connection:
        for _ in range(20):
            connection.sendall(b"x" * 10_000)
        answer = b""
        while part := connection.recv(10_000):
            answer += part
        assert answer.startswith(b"HTTP/1.1 413")
    assert running.call("GET", "/healthz").status == 200
    large = head(running, "GET", "/healthz", f"X: {'x' * 30_000}")
    with connected(running, large) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_limits_of_time_are_set():
    assert 0 < http.BODY_PATIENCE <= 60
    assert 0 < connection.HEAD_PATIENCE <= 60


def test_a_body_that_does_not_arrive(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "BODY_PATIENCE", 0.05)

    async def half(local):
        messages = [{"type": "http.request", "body": b'{"id"', "more_body": True}]
        answers = []

        async def receive():
            import asyncio

            return messages.pop() if messages else await asyncio.sleep(60)

        async def send(message):
            answers.append(message)

        raw = f"{P}/decisions".encode()
        scope = {
            "type": "http",
            "method": "POST",
            "raw_path": raw,
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        await local.service(scope, receive, send)
        return answers

    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", P, {"arms": ["a"]})
        start, body = local.run(half(local))
        assert start["status"] == 400
        assert "did not arrive within 0.05 seconds" in json.loads(body["body"])["detail"]
        assert local.call("GET", P).json["counts"]["decisions"] == 0
        assert local.service._bodies.bytes == 0


def test_the_bodies_of_all_calls_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "LARGEST_BODIES", 50)
    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", P, {"arms": ["a"]})
        assert local.call("POST", f"{P}/decisions", {"context": "x" * 50}).status == 503
        assert local.call("POST", f"{P}/decisions", {"context": "x"}).status == 200
        assert local.service._bodies.bytes == 0


def test_waiting_events_have_a_limit_in_bytes(tmp_path, monkeypatch):
    from robandit.decisions import engine

    monkeypatch.setattr(engine, "MOST_WAITING_BYTES", -1)
    with Local(tmp_path / "robandit.db") as local:
        answer = local.call("PUT", P, {"arms": ["a"]})
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")


def test_a_log_is_not_read_on_for_a_client_that_left(tmp_path):
    left = []

    async def parts():
        try:
            for _ in range(1000):
                yield b"x"
        finally:
            left.append(True)

    async def receive():
        return {"type": "http.disconnect"}

    sent = []

    async def send(message):
        import asyncio

        sent.append(message)
        await asyncio.sleep(0)

    with Local(tmp_path / "robandit.db") as local:
        local.run(application._send(send, http.Answer(200, parts(), b"text/plain"), receive, whole=True))
    assert left == [True]
    assert len(sent) < 10


def test_logs_have_a_limit(tmp_path, monkeypatch):
    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", P, {"arms": ["a"]})
        local.service.state.streams = 16
        assert local.call("GET", f"{P}/log").status == 429
        local.service.state.streams = 0
        assert local.call("GET", f"{P}/log").status == 200
        assert local.service.state.streams == 0
        assert local.call("HEAD", f"{P}/log").body == b""
        assert local.service.state.streams == 0


def test_a_study_of_the_time_before_a_reset_is_forgotten(tmp_path):
    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", P, {"arms": ["a"]})

        def learn(value):
            items = local.call("POST", f"{P}/decisions/batch", {"items": [{}] * 400}).json["items"]
            rewards = [{"id": each["decision"]["id"], "value": value + i} for i, each in enumerate(items)]
            local.call("POST", f"{P}/rewards/batch", {"items": rewards})
            return local.call("GET", P).json["arms"][0]["mean"]

        assert learn(0.0) < 1000
        local.call("POST", f"{P}/reset")
        assert "robandit_tail_index{" not in local.call("GET", "/metrics").body.decode()
        assert learn(1e6) > 1e5


def test_expiry_goes_on_if_one_experiment_fails(tmp_path, monkeypatch, capfd):
    from helpers.serving import Clock
    from robandit.decisions import engine

    monkeypatch.setattr(engine, "SWEEP_EVERY", 0.01)
    clock = Clock()
    with Local(tmp_path / "robandit.db", clock=clock) as local:
        for name in ("a", "b"):
            local.call("PUT", f"/v1/experiments/{name}", {"arms": ["x"], "reward_window": 10})
            local.call("POST", f"/v1/experiments/{name}/decisions")

        def fail():
            raise ZeroDivisionError("on purpose")

        monkeypatch.setattr(local.engine.experiments["a"], "expire_due", fail)
        clock.now += 100
        until = time.monotonic() + 30
        while local.call("GET", "/v1/experiments/b").json["counts"]["expired"] == 0:
            assert time.monotonic() < until
    assert "on purpose" in capfd.readouterr().err


def test_keys_expire_by_the_clock_of_the_machine(tmp_path):
    """The steady clock of the events may be far ahead after the machine's clock was wrong."""
    from helpers.serving import Clock

    clock = Clock(time.time() + 1e8)
    with Local(tmp_path / "robandit.db", authenticate=True, clock=clock) as local:
        local.call("PUT", P, {"arms": ["a"]})
        clock.now -= 1e8
        made = local.call("POST", "/v1/keys", {"scopes": ["read"], "expires_in": 1000}).json
        assert local.call("GET", P, key=made["key"]).status == 200
        clock.now += 1001
        assert local.call("GET", P, key=made["key"]).status == 401


def test_estimates_do_not_keep_other_calls_waiting(tmp_path, monkeypatch):
    import threading

    from robandit.service import studies

    entered, released = threading.Event(), threading.Event()
    estimated = studies.Bandit.estimates

    def slow(bandit):
        entered.set()
        assert released.wait(30)
        return estimated(bandit)

    monkeypatch.setattr(studies.Bandit, "estimates", slow)

    async def test(local):
        import asyncio

        shown = asyncio.ensure_future(local.request("GET", P))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        assert (await local.request("POST", f"{P}/decisions")).status == 200
        released.set()
        return (await shown).json

    with Local(tmp_path / "robandit.db") as local:
        local.call("PUT", P, {"arms": ["a"]})
        assert local.run(test(local))["counts"]["decisions"] == 0  # the state of the moment in which it was asked

"""Calls are repeated when that is useful, with pauses, until their time is over. With a wire and a clock of the test."""

import json
import random

import pytest

from robandit.errors import AccessDenied, Conflict, InvalidInput, NotFound, Overloaded, ServiceUnavailable
from robandit_client.calls import FIRST_PAUSE, LONGEST_PAUSE, Caller
from robandit_client.http import Broken, Response, Stale, parsed
from robandit_client.wires import finished


def answered(
    status=200, body=None, problem=None, reusable=True, parameter=None, rule=None, code="added later", **headers
):
    if problem is not None:
        headers["content-type"] = "application/problem+json"
        body = {"detail": problem, "status": status, "code": code, "parameter": parameter, "rule": rule}
    return Response(status, {"content-type": "application/json"} | headers, json.dumps(body).encode(), reusable)


class Wire:
    """Gives the answers and errors of a list, in turn. The last one stays."""

    def __init__(self, *script, takes=0.0, connecting=0.0):
        self.script = list(script)
        self.takes = takes
        self.connecting = connecting
        self.now = 0.0
        self.pauses = []
        self.limits = []
        self.connections = 0
        self.closed = 0
        self.process = 1

    async def connect(self, address, seconds):
        self.connections += 1
        self.now += min(self.connecting, seconds)
        step = self.script[0]
        if isinstance(step, ConnectionRefusedError):
            return await self.exchange(b"", seconds)
        return self

    async def exchange(self, data, seconds):
        self.data = data
        self.limits.append(seconds)
        self.now += min(self.takes, seconds)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Exception):
            raise step
        return step

    async def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds

    def owner(self):
        return self.process

    def close(self):
        self.closed += 1


def call(wire, *, seconds=5.0, caller=None, **options):
    caller = caller or made(wire)
    path = "/v1/experiments/p/decisions"
    return finished(caller.call("POST", path, b"{}", lambda answer: answer, seconds=seconds, **options))


def made(wire):
    return Caller(
        wire,
        parsed("http://x:1"),
        "rb_secret",
        connect_timeout=1.0,
        read_timeout=2.0,
        clock=lambda: wire.now,
        chance=random.Random(1),
    )


FAILURES = [
    ConnectionRefusedError(111, "Connection refused"),
    ConnectionResetError(104, "Connection reset by peer"),
    TimeoutError("timed out"),
    Broken("the connection was closed in the middle of an answer"),
    answered(429, problem="too many"),
    answered(500, problem="a bug"),
    answered(502, body="<html>"),
    answered(503, problem="loading"),
    answered(504, body=""),
    Response(200, {}, b'{"id": "cut of', False),
]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_a_call_is_repeated_until_it_is_answered(failure):
    wire = Wire(failure, failure, failure, answered(body={"id": "x"}))
    assert call(wire) == {"id": "x"}
    assert len(wire.pauses) == 3


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_it_is_not_repeated_for_longer_than_its_time(failure):
    wire = Wire(failure)
    expected = Overloaded if getattr(failure, "status", 0) == 429 else ServiceUnavailable
    with pytest.raises(expected, match=r"attempts in 5 s\); (check the address, or )?repeat the call later") as caught:
        call(wire)
    assert 2.0 < wire.now < 5.0
    assert "rb_secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind", "parameter"),
    [
        (400, InvalidInput, None),
        (401, AccessDenied, "key"),
        (403, AccessDenied, "key"),
        (404, NotFound, None),
        (405, InvalidInput, None),
        (409, Conflict, None),
        (413, InvalidInput, None),
        (422, InvalidInput, None),
    ],
)
def test_a_rejected_call_is_not_repeated(status, kind, parameter):
    wire = Wire(answered(status, problem="the rule\x1b[31m"))
    with pytest.raises(kind, match=r"^the rule\\x1b\[31m$") as caught:
        call(wire)
    assert caught.value.parameter == parameter
    assert wire.pauses == []
    assert wire.connections == 1


@pytest.mark.parametrize("status", [301, 404, 418])
def test_an_answer_of_somebody_else_is_not_that_of_the_service(status):
    wire = Wire(Response(status, {"content-type": "text/html", "location": "https://y"}, b"<html>", True))
    with pytest.raises(ServiceUnavailable, match=f"http://x:1 answered {status}, but not as .* see https://y; check"):
        call(wire)
    assert wire.pauses == []


def test_pauses_are_drawn_up_to_a_limit_that_doubles():
    caller = made(Wire(None))
    for attempts in (1, 2, 3, 10, 10_000):
        limit = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempts - 1, 30))
        drawn = [caller.pause(attempts) for _ in range(500)]
        assert 0.0 <= min(drawn) < 0.05 * limit
        assert 0.95 * limit < max(drawn) <= limit


def test_the_service_says_how_long_to_wait():
    wire = Wire(answered(429, problem="too many", **{"retry-after": "2"}), answered(body={}))
    call(wire)
    assert 2.0 <= wire.pauses[0] <= 2.0 + FIRST_PAUSE


def test_a_wait_that_is_longer_than_the_time_is_not_begun():
    wire = Wire(answered(503, problem="loading", **{"retry-after": "60"}))
    with pytest.raises(ServiceUnavailable, match=r"loading \(1 attempt in 5 s\)"):
        call(wire)
    assert wire.now == 0.0


@pytest.mark.parametrize("text", ["", "soon", "-1", "1e9", "Wed, 21 Oct 2026 07:28:00 GMT", "9" * 50])
def test_other_waits_are_ignored(text):
    wire = Wire(answered(503, problem="loading", **{"retry-after": text}), answered(body={}))
    call(wire)
    assert wire.pauses[0] <= FIRST_PAUSE


def test_each_attempt_has_a_limit():
    wire = Wire(TimeoutError(), takes=100.0)
    with pytest.raises(ServiceUnavailable, match="timed out"):
        call(wire)
    assert wire.limits[0] == 2.0
    assert wire.limits[-1] < 1.0
    assert wire.now <= 5.0


def test_a_patient_call_waits_for_one_answer():
    wire = Wire(TimeoutError(), takes=100.0)
    with pytest.raises(ServiceUnavailable, match="1 attempt in 5 s"):
        call(wire, patient=True)
    assert wire.limits == [5.0]


@pytest.mark.parametrize("patient", [False, True])
@pytest.mark.parametrize("failure", [TimeoutError(), Stale("closed")], ids=["silent", "stale"])
def test_the_time_to_connect_is_part_of_the_time_of_the_call(failure, patient):
    for seconds in (0.3, 1.5, 2.5):
        wire = Wire(answered(body={}), failure)
        caller = made(wire)
        call(wire, caller=caller)  # leaves an idle connection
        wire.takes, wire.connecting, start = 100.0, 0.9, wire.now
        with pytest.raises(ServiceUnavailable):
            call(wire, caller=caller, seconds=seconds, patient=patient)
        assert wire.now - start <= seconds + 0.002


def test_a_silent_connection_that_was_idle_takes_the_others_with_it():
    """A firewall drops idle connections without a word. One attempt may find that out, not one for each of them."""
    wire = Wire(answered(body={}))
    caller = made(wire)
    assert caller.pool._taken() is None
    for _ in range(4):
        caller.pool._give(wire)
    wire.script, wire.takes = [TimeoutError(), answered(body={"id": "x"})], 2.0
    assert call(wire, caller=caller) == {"id": "x"}
    assert (wire.connections, wire.closed) == (1, 4)


def test_connections_are_reused():
    wire = Wire(answered(body={}))
    caller = made(wire)
    for _ in range(3):
        call(wire, caller=caller)
    assert (wire.connections, wire.closed) == (1, 0)
    wire.process = 2  # after a fork: the connections belong to the parent
    call(wire, caller=caller)
    assert (wire.connections, wire.closed) == (2, 0)
    caller.pool.close()
    assert wire.closed == 1


def test_a_connection_that_cannot_be_reused_is_closed():
    wire = Wire(answered(body={}, reusable=False), Broken("cut"), answered(body={}))
    caller = made(wire)
    call(wire, caller=caller)
    assert (wire.connections, wire.closed) == (1, 1)
    call(wire, caller=caller)
    assert (wire.connections, wire.closed) == (3, 2)


def test_a_stale_connection_is_replaced_at_once():
    wire = Wire(answered(body={}), Stale("closed"), answered(body={"id": "x"}))
    caller = made(wire)
    call(wire, caller=caller)
    assert call(wire, caller=caller) == {"id": "x"}
    assert (wire.connections, wire.closed, wire.pauses) == (2, 1, [])


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"{", b'{"detail": 5, "code": "x"}', b'{"detail": "x"}'])
@pytest.mark.parametrize("status", [401, 404, 409, 422])
def test_a_problem_of_somebody_else_is_not_that_of_the_service(status, body):
    """Otherwise, kept rewards would be given up as rejected."""
    wire = Wire(Response(status, {"content-type": "application/problem+json"}, body, True))
    with pytest.raises(ServiceUnavailable, match=r"^http://x:1 answered, but not as the decision service does: "):
        call(wire)
    assert len(wire.pauses) > 1


def test_a_problem_is_cut_and_its_fields_are_checked():
    wire = Wire(answered(422, problem="x" * 10_000, parameter=["key"], rule={}))
    with pytest.raises(InvalidInput) as caught:
        call(wire)
    assert len(str(caught.value)) < 1_000
    assert (caught.value.parameter, caught.value.rule) == (None, None)

"""With faults between client and server, every reward is counted once and none is lost. `make crash` makes 1,000 of them."""

import gc
import json
import runpy
import socket
from pathlib import Path

import pytest

from helpers.amount import amount
from helpers.fault_proxy import FaultProxy

PROGRAM = runpy.run_path(str(Path(__file__).with_name("faults.py")), run_name="faults")


@pytest.mark.parametrize(("kind", "seed"), [("blocking", 11), ("asyncio", 12)])
def test_every_reward_is_counted_once(kind, seed, tmp_path):
    outcome = PROGRAM["play"](kind, amount(150, 500), seed, tmp_path)
    assert outcome["rewards"] > 100


def test_the_proxy_closes_connections_that_it_has_just_accepted():
    """Otherwise a ResourceWarning fails some other test."""
    for seed in range(20):
        with FaultProxy("127.0.0.1", 1, seed=seed, share=0.0) as proxy:
            connections = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(5)]
        for connection in connections:
            connection.close()
    gc.collect()


def test_the_check_notices_a_lost_and_a_changed_reward():
    """The negative control."""
    rows = [{"id": "1", "kind": "decided", "arm": "a"}, {"id": "1", "kind": "rewarded", "reward": 1.0}]
    decision = PROGRAM["Decision"]("1", "a", "provider", None, 0.0, 1)
    assert _checked(rows, {"1": decision}, {"1": 1.0}) is None
    assert "are lost" in _checked(rows[:1], {"1": decision}, {"1": 1.0})
    assert "counted twice" in _checked([*rows, rows[1]], {"1": decision}, {"1": 1.0})
    assert _checked(rows, {"1": decision}, {"1": 2.0}) is not None
    assert "another arm" in _checked([rows[0] | {"arm": "b"}, rows[1]], {"1": decision}, {"1": 1.0})


def _checked(rows, decisions, rewards):
    ledger = PROGRAM["Ledger"]()
    ledger.decisions, ledger.rewards = decisions, rewards
    try:
        PROGRAM["check"](ledger, _Stored(rows))
    except AssertionError as error:
        return str(error)
    return None


class _Stored:
    """A server with a given log."""

    def __init__(self, rows):
        self.body = "\n".join(map(json.dumps, rows)).encode()
        self.json = {"counts": {"rewards": sum(row["kind"] == "rewarded" for row in rows)}}

    def call(self, method, path):
        return self

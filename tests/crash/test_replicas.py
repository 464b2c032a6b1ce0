"""Faults around replicas that share a PostgreSQL database. `make crash` makes many more of each."""

import pytest

from crash.model import Violation
from crash.replicas import on_full_disk, run
from helpers.amount import amount
from helpers.postgres import Postgres, unavailable
from robandit.errors import CorruptFile

pytestmark = pytest.mark.xdist_group("replicas")
LONG_ONLY = pytest.mark.skipif(amount(True, False), reason="takes seconds: ROBANDIT_LONG_TESTS=1 runs it")
LOST = "acknowledged one is lost|the log has|was not stored|acknowledged before"


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL to kill."""
    if reason := unavailable():
        pytest.skip(reason)
    with Postgres() as server:
        yield server


def test_faults_lose_nothing(zygote, server):
    """Kills of replicas and of PostgreSQL, connections that are cut, slow, lost or stalled, pauses, and clocks that differ."""
    totals = run("everything", amount(1, 10), 7, zygote=zygote, server=server, replicas=2, clients=6)
    figures = totals.figures
    assert figures["twice"] == 0
    # All that the round is for has happened.
    wanted = ("acknowledged", "cut off", "resent", "replayed", "late", "unavailable", "fallbacks")
    assert min(figures[name] for name in wanted) > 0, figures


@pytest.mark.parametrize(
    ("fault", "mode", "finding"),
    [
        ("no lock", "delays", f"{LOST}|the head is|expected event|was told|other bytes|its time is before|: 500"),
        ("early acknowledgement", "kills", LOST),
        ("guessed stored", "lost-commits", f"{LOST}|other bytes|: 500"),
        ("guessed lost", "lost-commits", "no answer says that a call made it|stored in part|not stored as one"),
        pytest.param(
            "skipped tail", "delays", f"{LOST}|other bytes|the model chooses|answered 404|: 500", marks=LONG_ONLY
        ),
        pytest.param("stale reads", "delays", "a stale read", marks=LONG_ONLY),
        pytest.param("own clock", "skewed-kills", "its time is before|sent at", marks=LONG_ONLY),
        pytest.param("stored fallbacks", "delays", "the fallback is", marks=LONG_ONLY),
    ],
)
def test_the_harness_notices_a_broken_replica(zygote, server, fault, mode, finding):
    with pytest.raises((Violation, CorruptFile), match=f"{finding}|does not fit the events before it"):
        run(mode, 40, 5, zygote=zygote, server=server, replicas=2, clients=8, fault=fault, per_round=4, thorough=1)


@LONG_ONLY
def test_a_full_disk():
    if reason := unavailable():
        pytest.skip(reason)
    if on_full_disk(1) is None:
        pytest.skip("only the system's administrator may mount a small disk")

"""What replicas of tests have that real ones do not: short timeouts, a wrong clock, a route that shows folds, faults on purpose."""

from __future__ import annotations

import hashlib
import time
from functools import partial
from typing import Any

FOLDS = "/folds"
"""Where a replica shows the SHA-256 of the state of each experiment, after it has read the newest events."""
LONGEST_TIMEOUT = 2.0  # seconds after which nothing waits for the database any more
PULSE, PATIENCE, IDLE, LOCK, STATEMENT = 0.1, 0.6, 0.4, 1.0, 1.6


def prepare(*, snapshot_every: int = 40, skew: float = 0.0, fault: str | None = None) -> None:
    """Set what the command has no options for. ``skew`` is added to the clock of this process."""
    from robandit.service import server

    server.Service = partial(server.Service, snapshot_every=snapshot_every)  # type: ignore[assignment, misc]
    _shorten()
    _show_folds()
    if skew:
        right = time.time
        time.time = lambda: right() + skew
    if fault is not None:
        FAULTS[fault]()


def _shorten() -> None:
    """Let everything time out sooner, in the same order."""
    from robandit.decisions import replica
    from robandit.storage import connections

    replica.PULSE, replica.PATIENCE = PULSE, PATIENCE
    connections._NETWORK |= {"connect_timeout": 2, "tcp_user_timeout": int(STATEMENT * 1000)}
    connections._LIMITS |= {
        "lock_timeout": f"'{LOCK}s'",
        "idle_in_transaction_session_timeout": f"'{IDLE}s'",
        "statement_timeout": f"'{STATEMENT}s'",
        "tcp_user_timeout": f"'{STATEMENT}s'",
    }
    connections.STUCK = LONGEST_TIMEOUT


def _show_folds() -> None:
    from robandit.service import application
    from robandit.service.http import Answer, Request, Route

    async def folds(state: Any, request: Request) -> Answer:
        found = {}
        for name in list(state.engine.experiments):
            found[name] = await state.engine.read(name, lambda seen: (seen.seq, _digest(seen)))
        return Answer(200, application.encode(found))

    route = Route(method="GET", path=FOLDS, handler=folds, about="For tests.", scope=None)
    application.DOCUMENTS = (*application.DOCUMENTS, route)  # type: ignore[assignment]


def _digest(experiment: Any) -> str:
    return hashlib.sha256(experiment.snapshot().content).hexdigest()


# --- faults on purpose, which the harness must notice -----------------------------------------------------------------------


def _no_lock() -> None:
    """Take turns without a lock, and without the rule that numbers are unique."""
    from robandit.storage import postgres

    postgres._TURN = postgres._TURN.replace(" FOR UPDATE", "")
    postgres._INSERT += " ON CONFLICT DO NOTHING"


def _early_acknowledgement() -> None:
    """Answer calls before the commit."""
    from robandit.decisions import replica

    take_effect = replica._Call.take_effect

    def and_answer(self: Any, experiment: Any) -> Any:
        yield from take_effect(self, experiment)
        self.finish()

    replica._Call.take_effect = and_answer  # type: ignore[method-assign]


def _guessed_stored() -> None:
    """Take a lost commit for a stored one."""
    from robandit.storage.postgres import PostgresTurn

    PostgresTurn._was_stored = lambda self, events, error: True  # type: ignore[method-assign]


def _guessed_lost() -> None:
    """Take a lost commit for one that was not stored, and let the calls take effect again."""
    from robandit.decisions import replica
    from robandit.storage.postgres import PostgresTurn

    PostgresTurn._was_stored = lambda self, events, error: False  # type: ignore[method-assign]
    commit, fail = replica.Replica._commit, replica._Call.fail

    async def again(self: Any, turn: Any, works: Any) -> None:
        made = dict(works)
        replica._Call.fail = lambda call, error: None  # type: ignore[method-assign]
        try:
            await commit(self, turn, works)
        finally:
            replica._Call.fail = fail  # type: ignore[method-assign]
        for line, work in made.items() if not works else ():
            line.calls.extendleft(reversed(work.calls))
            self._due[line] = None

    replica.Replica._commit = again  # type: ignore[method-assign]


def _skipped_tail() -> None:
    """Do not learn what other replicas stored."""
    from robandit.decisions.replica import Replica

    def skip(self: Any, experiment: Any, line: Any, head: int, tail: Any) -> None:
        if tail:
            experiment.seq = max(experiment.seq, tail[-1].seq)

    Replica._apply = skip  # type: ignore[method-assign]


def _stale_reads() -> None:
    """Show the own state, without a look at the store."""
    from robandit.decisions.replica import Replica

    async def look(self: Any, experiment: Any, look: Any) -> Any:
        return look(experiment)

    Replica._look = look  # type: ignore[method-assign]


def _own_clock() -> None:
    """Give events the time of this process."""
    from robandit.decisions.replica import Replica

    Replica._clock = lambda self: time.time()  # type: ignore[method-assign]


def _stored_fallbacks() -> None:
    """Answer with the fallback although the store is there, and the decision is stored."""
    from robandit.service import bodies, decisions

    decision_of = decisions.decision_of

    def marked(name: str, made: Any) -> bodies.Decision:
        found = decision_of(name, made)
        found.fallback = name == "spare"
        return found

    decisions.decision_of = marked


FAULTS = {
    "no lock": _no_lock,
    "early acknowledgement": _early_acknowledgement,
    "guessed stored": _guessed_stored,
    "guessed lost": _guessed_lost,
    "skipped tail": _skipped_tail,
    "stale reads": _stale_reads,
    "own clock": _own_clock,
    "stored fallbacks": _stored_fallbacks,
}

"""Decide in this process from an allocation of the service, and report in the background what came of the decisions."""

from __future__ import annotations

import os
import random
import secrets
import string
import threading
import time
import weakref
from bisect import bisect
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import accumulate, count, islice
from types import TracebackType
from typing import Any, NamedTuple

from robandit_client.answers import OUTCOMES, allocation_of, outcomes_of
from robandit_client.core import AWAY, Core, add_note, deliver_all, log
from robandit_client.errors import (
    AccessDenied,
    Conflict,
    NotFound,
    Overloaded,
    RobanditError,
    ServiceUnavailable,
    Undelivered,
    formatted,
)
from robandit_client.hints import EXPERIMENT, other_names
from robandit_client.http import path_of
from robandit_client.locks import ProcessLock
from robandit_client.outbox import MOST_ITEMS, Outbox, joined
from robandit_client.values import (
    Allocation,
    Observation,
    Rejection,
    Report,
    checked_seconds,
    checked_text,
    checked_value,
    invalid,
)
from robandit_client.wires import finished
from robandit_client.wording import counted

SHORTEST_REFRESH, LONGEST_REFRESH = 0.1, 3_600.0
LONGEST_BACKOFF = 10.0
MOST_BATCHES = 10  # sent one after the other before the next refresh
MOST_REJECTED = 100  # kept; all are counted
LIFE_LENGTH = 16  # 36 ** 16 lives: among a million, two are the same with probability 1e-13
_LETTERS = string.ascii_lowercase + string.digits

_edges: weakref.WeakSet[Edge] = weakref.WeakSet()


class EdgeDecision(NamedTuple):
    """The arm to use, the id for its reward, and the probability of the choice."""

    id: str
    arm: str
    propensity: float


class _Choice(NamedTuple):
    """What an allocation says of an arm."""

    arm: str
    propensity: float
    version: str


_Open = tuple[_Choice, float]  # what was drawn, and when by the monotonic clock
_Hot = tuple[  # where the arms' parts of [0, 1) end, without the last one; the arms; and what belongs to this process
    list[float], list[_Choice], Callable[[], float], str, "count[int]", dict[str, _Open], int, Callable[[], float]
]
_new = tuple.__new__  # half the time of EdgeDecision(...)


@other_names(EXPERIMENT)
class Edge:
    """Decides in this process, from an allocation of the service that a thread refreshes. From `Client.edge`. Thread-safe.

    `decide`, `reward` and `expire` never wait for the service. What they report is sent in batches by the same thread. While the
    service is away, decisions go on with the last allocation, and observations wait (see `stale_since`). A process that is killed
    loses what it had not sent. A forked process has an edge of its own: with other ids, and nothing to report.
    """

    def __init__(
        self,
        core: Core,
        name: str,
        refresh: float,
        reward_window: float | None,
        max_open: int,
        max_waiting: int,
        on_rejected: Callable[[Rejection], object] | None,
        seed: int | None,
    ) -> None:
        self.name = checked_text("name", name)
        self._refresh_every = checked_seconds("refresh", refresh)
        if not SHORTEST_REFRESH <= self._refresh_every <= LONGEST_REFRESH:
            raise invalid("refresh", refresh, f"{SHORTEST_REFRESH:g} to {LONGEST_REFRESH:g} seconds")
        self._window = None if reward_window is None else checked_seconds("reward_window", reward_window)
        for limit, given in (("max_open", max_open), ("max_waiting", max_waiting)):
            if isinstance(given, bool) or not isinstance(given, int) or given < 1:
                raise invalid(limit, given, "an integer >= 1")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise invalid("seed", seed, "an integer, or None")
        if not (on_rejected is None or callable(on_rejected)):
            raise invalid("on_rejected", on_rejected, "a function that takes a Rejection, or None")
        self._core = core
        self._max_open = max_open
        self._max_waiting = max_waiting
        self._on_rejected = on_rejected
        self._lock = ProcessLock()  # of the thread, and of the counts
        self._clock = time.monotonic
        self._closed = False
        self._allocation: Allocation | None = None
        self._stale_since: float | None = None
        self._error: RobanditError | None = None
        self._refusal: RobanditError | None = None  # why there are no decisions, although the service answers
        self._begin(random.Random(seed))
        self._refresh(time.time())
        _edges.add(self)
        core.edges.add(self)
        self._renewed()

    def _begin(self, draws: random.Random) -> None:
        """Begin a life: with ids of its own, and nothing to report."""
        self._life = "".join(secrets.choice(_LETTERS) for _ in range(LIFE_LENGTH))
        self._numbers = count()
        self._draw = draws.random
        self._open: dict[str, _Open] = {}  # oldest first
        self._outbox = Outbox(self._max_waiting)
        self._counts: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._hot: _Hot | None = None  # what `decide` uses; None: it must first call `_renewed`
        self._sending = threading.Lock()
        if self._closed:
            self._outbox.close()

    # --- decisions ----------------------------------------------------------------------------------------------------

    def decide(self) -> EdgeDecision:
        """Return a decision, drawn from the allocation. It takes about a microsecond, and does not wait.

        Raise `Conflict` if the experiment is paused, and `NotFound` if it was deleted. If ``max_open`` decisions are open, the
        oldest hundredth of them is given up: reported as expired, and counted as ``dropped``.
        """
        # Without a lock: all is read at once, and each step on shared data is atomic.
        ends, choices, draw, life, numbers, open, most, clock = self._hot or self._renewed()
        choice = choices[bisect(ends, draw())]
        id = f"{life}{next(numbers)}"
        if len(open) >= most:
            self._give_up()
        open[id] = choice, clock()
        return _new(EdgeDecision, (id, choice[0], choice[1]))

    def _renewed(self) -> _Hot:
        """Return what `decide` uses, after a new allocation or in a new process. See that the thread runs."""
        with self._lock:
            if self._closed:
                raise RobanditError("the edge is closed: make a new one")
            if self._thread is None or not self._thread.is_alive():
                self._start()
            if self._refusal is not None:
                raise type(self._refusal)(str(self._refusal), code=self._refusal.code)
            assert self._allocation is not None
            # An arm without a chance has no part of [0, 1), not even an empty one.
            version = self._allocation.version
            pairs = zip(self._allocation.arms, self._allocation.probabilities)
            choices = [_Choice(arm, chance, version) for arm, chance in pairs if chance > 0.0]
            ends = list(accumulate(choice.propensity for choice in choices))[:-1]
            own = (self._draw, f"{self._life}-", self._numbers, self._open, self._max_open, self._clock)
            self._hot = (ends, choices, *own)
            return self._hot

    def _give_up(self) -> None:
        """Make room for a decision."""
        dropped = 0
        for id, opened in self._oldest(max(1, self._max_open // 100)):
            if self._open.pop(id, None) is None:
                continue  # another thread has closed it
            dropped += 1
            with suppress(Overloaded):  # it is counted in any case
                self._outbox.add(self._observed(id, opened, None))
        with self._lock:
            is_first = dropped and not self._counts["dropped"]
            self._counts["dropped"] += dropped
        if is_first:
            text = "reward or expire every decision, or set reward_window"
            log.warning(
                "edge %r has %d open decisions, and gives up the oldest ones: %s", self.name, self._max_open, text
            )

    def _oldest(self, most: int) -> list[tuple[str, _Open]]:
        """Return the oldest open decisions."""
        while True:
            try:
                return list(islice(self._open.items(), most))
            except RuntimeError:  # another thread has changed them meanwhile
                continue

    # --- what came of them --------------------------------------------------------------------------------------------

    def reward(self, decision: EdgeDecision | str, value: float) -> None:
        """Report the reward of an open decision of this edge, or of its id. It is sent in the background, and counts once.

        The same again, before it is sent, changes nothing; another value is a `Conflict`. A decision that is not open here is
        `NotFound`. Raise `Overloaded` if ``max_waiting`` observations wait for the service: the decision then stays open.
        """
        self._report(decision, checked_value(value))

    def expire(self, decision: EdgeDecision | str) -> None:
        """Report that the reward of an open decision will never come.

        In an experiment with a deadline it counts as a time-out, at the same cost as a failure.
        """
        self._report(decision, None)

    def _report(self, decision: EdgeDecision | str, value: float | None) -> None:
        id = decision.id if isinstance(decision, EdgeDecision) else checked_text("decision", decision)
        opened = self._open.get(id)
        if opened is None:
            self._check_reported(id, value)
            return
        self._outbox.add(self._observed(id, opened, value))
        self._open.pop(id, None)  # not before, since there may be no room
        if len(self._outbox) % MOST_ITEMS == 0:
            self._wake.set()

    def _check_reported(self, id: str, value: float | None) -> None:
        """Raise the error of a decision that is not open, unless the same is waiting to be sent."""
        known = self._outbox.get((self.name, id, False))
        if known is None:
            reason = "it was reported before, has expired, or was not made by this edge in this process"
            raise NotFound(f"decision {formatted(id)} is not open: {reason}")
        if known.value != value:
            known_end = "as expired" if known.value is None else "with another reward"
            raise Conflict(f"decision {formatted(id)} waits to be reported {known_end}: it can be reported once")

    def _observed(self, id: str, opened: _Open, value: float | None) -> Observation:
        choice, at = opened
        rewarded = time.time()
        decided = rewarded - (self._clock() - at)  # right even if the clock was set meanwhile
        return Observation(
            self.name,
            id,
            choice.arm,
            value,
            propensity=choice.propensity,
            allocation=choice.version,
            decided=round(decided, 6),
            rewarded=round(rewarded, 6),
        )

    # --- what it knows ------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Edge: {self.name!r}, open={len(self._open)}, waiting={len(self._outbox)}>"

    @property
    def allocation(self) -> Allocation | None:
        """The newest allocation."""
        return self._allocation

    @property
    def stale_since(self) -> float | None:
        """Since when the allocation could not be refreshed, in seconds since 1970; None if the last attempt succeeded.

        An attempt fails after the timeout of the client.
        """
        return self._stale_since

    @property
    def error(self) -> RobanditError | None:
        """Why the last refresh or the last delivery failed; None if both succeeded."""
        return self._error

    @property
    def waiting(self) -> tuple[Observation, ...]:
        """The observations that are not delivered yet."""
        return tuple(each for each in self._outbox.waiting if isinstance(each, Observation))

    @property
    def rejected(self) -> list[Rejection]:
        """The last 100 observations that the service rejected, and why, unless ``on_rejected`` took them. You may clear it."""
        return self._outbox.rejected

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of decisions that are ``open``, and of observations that are ``waiting``.

        Of those that were sent: what the service made of them (``learned``, ``late``, ``expired``, ``replayed``), or ``rejected``.
        ``dropped`` decisions were given up here; see `decide`.
        """
        with self._lock:
            done = {name: self._counts[name] for name in (*OUTCOMES, "rejected", "dropped")}
        return {"open": len(self._open), "waiting": len(self._outbox), **done}

    # --- the end ------------------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> None:
        """Deliver what waits. Raise `Undelivered` if something is left after the timeout, or is in `rejected`."""
        seconds = self._core.timeout if timeout is None else timeout
        finished(deliver_all(self._outbox, self._deliver, self._core.caller, seconds))

    def close(self, timeout: float | None = None) -> None:
        """Deliver what waits, and stop. Raise `Undelivered`, with the observations, if something is left.

        Decisions that are still open stay unknown to the service. Call `expire` before, if they should count.
        """
        with self._lock:
            self._closed, self._hot = True, None
            thread, self._thread = self._thread, None
        self._outbox.close()
        self._wake.set()
        until = self._clock() + (self._core.timeout if timeout is None else timeout)
        try:
            self.flush(timeout)
        finally:
            if thread is not None:  # it may still wait for an answer
                thread.join(max(until - self._clock(), 0.0))

    def __enter__(self) -> Edge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the edge. An error of the block stays that error, with a note on what is not delivered."""
        try:
            self.close()
        except Undelivered as undelivered:
            if error is None:
                raise
            add_note(error, f"robandit.client: {undelivered}")

    # --- in the background --------------------------------------------------------------------------------------------

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, args=(self._wake,), name="robandit-edge", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the interpreter ends, or there are too many threads
            log.warning("edge %r is not refreshed: %s", self.name, error)
        else:
            self._thread = thread

    def _work(self, wake: threading.Event) -> None:
        """Refresh, and deliver, until the edge is closed."""
        failures = 0
        due = self._refreshed + self._pause(0)
        while not self._closed:
            if failures or len(self._outbox) < MOST_ITEMS:
                wake.wait(max(due - self._clock(), 0.0))
                wake.clear()
            is_due = self._clock() >= due
            if self._closed or (failures and not is_due):
                continue
            try:
                problem = self._cycle(is_due)
            except Exception as error:  # it must not end the refreshes either
                log.exception("edge %r", self.name)
                problem = RobanditError(f"{type(error).__name__}: {error}")
            if problem is not None and self._error is None:
                log.warning("edge %r: %s", self.name, problem)
            self._error = problem
            has_failed = problem is not None and problem is not self._refusal
            failures = failures + 1 if has_failed else 0
            if is_due or failures:
                due = self._clock() + self._pause(failures)

    def _cycle(self, refresh: bool) -> RobanditError | None:
        """Deliver, and then refresh, so that the service knows the newest rewards. Return the first error."""
        problem: RobanditError | None = None
        began = time.time()
        try:
            self._expire_overdue()
            if not self._sending.locked():  # `flush` delivers already
                refresh |= finished(self._deliver(self._core.timeout))
        except RobanditError as error:
            problem = error
            if refresh and isinstance(error, AWAY):  # the refresh waits, and may take another timeout to fail
                self._stale_since = self._stale_since or began
        try:
            if refresh:
                self._refresh(began)
        except RobanditError as error:
            problem = problem or error
        return problem

    def _pause(self, failures: int) -> float:
        """Return the seconds until the next refresh: at random, so that many edges do not come at the same moment."""
        if failures:
            seconds = min(LONGEST_BACKOFF, min(self._refresh_every, 1.0) * 2.0 ** min(failures, 10))
        else:
            valid = self._refresh_every if self._allocation is None else self._allocation.valid_for
            seconds = max(SHORTEST_REFRESH, min(self._refresh_every, valid))
        return seconds * random.uniform(0.8, 1.0)

    def _refresh(self, due: float) -> None:
        """Take the newest allocation, which was to be taken at the time ``due``."""
        known = None if self._allocation is None else self._allocation.version
        path = f"{path_of(self.name, 'allocation')}?for={duration(self._refresh_every)}"
        read = partial(allocation_of, experiment=self.name, known=self._allocation)
        caller = self._core.caller
        try:
            found = finished(caller.call("GET", path, None, read, seconds=self._core.timeout, unless=known))
        except RobanditError as error:
            if isinstance(error, (Conflict, NotFound)):  # paused, or deleted
                with self._lock:
                    self._refusal, self._hot = error, None
            self._stale_since = self._stale_since or due
            raise
        with self._lock:
            self._allocation, self._refusal, self._hot = found, None, None
        self._refreshed, self._stale_since = self._clock(), None

    def _expire_overdue(self) -> None:
        """Report open decisions as expired whose window is over. Those for which there is no room stay open until there is."""
        window = self._window
        if window is None and self._allocation is not None:
            window = self._allocation.reward_window
        while window is not None:
            before = self._clock() - window
            overdue = [each for each in self._oldest(MOST_ITEMS) if each[1][1] < before]
            for id, opened in overdue:
                try:
                    if id in self._open:
                        self._outbox.add(self._observed(id, opened, None))
                except Overloaded:
                    return
                except Conflict:  # another thread has just reported it
                    pass
                self._open.pop(id, None)
            if len(overdue) < MOST_ITEMS:
                return

    async def _deliver(self, seconds: float) -> bool:
        """Deliver some batches. Return whether the service did not know an allocation. Raise an error if one must be repeated."""
        until = self._clock() + seconds
        again: dict[Any, RobanditError] = {}
        unknown = False
        for i in range(MOST_BATCHES):
            left = until - self._clock()
            if i and left < 0.5 * seconds:
                break
            if not self._sending.acquire(timeout=max(left, 0.0)):
                raise ServiceUnavailable("another thread still waits for an answer of the service")
            try:
                batch = self._outbox.batch(MOST_ITEMS, again)
                unknown |= bool(batch) and await self._send(batch, max(until - self._clock(), 1e-3), again)
            finally:
                self._sending.release()
            if not batch:
                break
        if again:
            raise next(iter(again.values()))
        return unknown

    async def _send(self, batch: list[Report], seconds: float, again: dict[Any, RobanditError]) -> bool:
        """Send a batch. Add what must be repeated to ``again``."""
        path = path_of(self.name, "observations/batch")
        body = joined(each.body for each in batch)
        read = partial(outcomes_of, size=len(batch))
        try:
            delivered, refused = await self._core.caller.call("POST", path, body, read, seconds=seconds)
        except (*AWAY, AccessDenied):
            raise
        except RobanditError as error:
            if error.code == "paused":
                raise
            if len(batch) > 1 and not isinstance(error, NotFound):  # one of them spoils the batch
                half = len(batch) // 2
                first = await self._send(batch[:half], seconds, again)
                return await self._send(batch[half:], seconds, again) or first
            delivered, refused = {}, dict.fromkeys(range(len(batch)), error)
        repeated = {batch[i].key: error for i, error in refused.items() if isinstance(error, AWAY)}
        rejected = [(batch[i], error) for i, error in refused.items() if not isinstance(error, AWAY)]
        again.update(repeated)
        self._outbox.settle(each for i, each in enumerate(batch) if i not in refused)
        with self._lock:
            self._counts.update(delivered)
        for each in rejected:
            self._reject(*each)
        if rejected:
            number = counted(len(rejected), "observation")
            log.error("edge %r: the service rejected %s; the first one: %s", self.name, number, rejected[0][1])
        return any(error.code == "unknown-allocation" for _, error in rejected)

    def _reject(self, observation: Report, error: RobanditError) -> None:
        if not self._outbox.reject([observation], error):
            return  # another thread has sent it, too
        rejected = self._outbox.rejected
        with self._lock:
            self._counts["rejected"] += 1
            newest = rejected.pop() if self._on_rejected is not None else None
            del rejected[:-MOST_REJECTED]
        if newest is not None and self._on_rejected is not None:
            try:
                self._on_rejected(newest)
            except Exception:  # of the caller's function
                log.exception("edge %r: on_rejected failed for %s", self.name, newest)


def duration(seconds: float) -> str:
    """Return a duration as the service reads it.

    >>> duration(0.1), duration(1.5), duration(3_600)
    ('100ms', '1.5s', '3600s')
    """
    return f"{seconds * 1e3:.6g}ms" if seconds < 1.0 else f"{seconds:.6g}s"


def _begin_all() -> None:
    """Give each edge a new life in a forked process, before any of its code can run."""
    for edge in _edges:
        edge._begin(random.Random())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)

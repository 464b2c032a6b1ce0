"""The blocking client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal

from robandit_client.core import Core, add_note, decision_id, latency, log, request_of, settings_of, unsent
from robandit_client.errors import RobanditError, Undelivered
from robandit_client.hints import CLIENT, EXPERIMENT, guided, other_names
from robandit_client.locks import ProcessLock
from robandit_client.values import Decision, DecisionRequest, Rejection, Report, Reward, checked_text, checked_value
from robandit_client.wires import Sockets, finished


@guided
@other_names(CLIENT)
class Client:
    """A client of the decision service. Thread-safe.

    A call is repeated, with growing pauses, until it is answered or ``timeout`` seconds are over. That is safe: the client makes
    the ids, so a repeated call counts once. Rewards that cannot be delivered in time are kept in memory, and delivered in the
    background when the service is back. Close the client, or use it with ``with``, so that nothing kept is lost.

    Parameters
    ----------
    url
        The address of the service, such as ``"http://127.0.0.1:8000"``. ``https`` checks the certificate.
    key
        The access key; None for a service without keys.
    fallback
        The arm that `Experiment.decide` returns while the service is away. None: it raises `ServiceUnavailable`.
    timeout
        The most seconds that a call takes, including its repetitions.
    connect_timeout, read_timeout
        The most seconds that one attempt waits for a connection, and for an answer.
    cooldown
        Seconds after a failure during which calls that can do without the service do not try it.
    max_waiting
        The most reports (choices of the fallback, and rewards) that are kept. Beyond it, calls raise `Overloaded`.

    Examples
    --------
    ::

        with Client("http://127.0.0.1:8000", key) as client:
            provider = client.experiment("provider", fallback="a")
            decision = provider.decide()
            provider.reward(decision, 0.83)

    A service that is away, and a fallback:

    >>> client = Client("http://127.0.0.1:1", fallback="a", timeout=0.1)
    >>> decision = client.experiment("provider").decide()
    >>> decision.arm, decision.fallback
    ('a', True)
    >>> client.experiment("provider").reward(decision, 0.83).outcome
    'kept'
    >>> try:
    ...     client.close()
    ... except Undelivered as error:
    ...     print(len(error.reports))
    2
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        fallback: str | None = None,
        timeout: float = 5.0,
        connect_timeout: float = 1.0,
        read_timeout: float = 2.0,
        cooldown: float = 5.0,
        max_waiting: int = 10_000,
    ) -> None:
        """Check the parameters. The first call connects."""
        self._core = Core(
            Sockets(),
            url,
            key,
            fallback=fallback,
            timeout=timeout,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            cooldown=cooldown,
            max_waiting=max_waiting,
            wake=self._wake,
        )
        self._lock = ProcessLock()
        self._at_once = threading.Event()
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        """Return the address, without the key."""
        return f"Client({self._core.caller.address.url!r})"

    # --- experiments --------------------------------------------------------------------------------------------------

    def experiment(self, name: str, *, fallback: str | None = None, minimize: bool | None = None) -> Experiment:
        """Return an experiment to decide with. Nothing is sent.

        ``fallback`` replaces that of the client. ``minimize`` tells `Experiment.timed` whether rewards are costs; None: it asks the
        service once, which needs a key with the scope read.
        """
        return Experiment(self._core, checked_text("name", name), fallback, minimize)

    @guided
    def create(
        self,
        name: str,
        arms: Sequence[str],
        *,
        policy: str | None = None,
        minimize: bool = False,
        seed: int | None = None,
        reward_window: float | None = None,
        on_expiry: float | Literal["drop"] = "drop",
        max_open: int | None = None,
        unit: str = "",
    ) -> Experiment:
        """Create an experiment, or find it if it exists with the same settings. Raise `Conflict` if its settings differ.

        The parameters are those of ``PUT /v1/experiments/{name}`` in the reference of the service. The key needs the scope admin.
        """
        settings = settings_of(arms, policy, minimize, seed, reward_window, on_expiry, max_open, unit)
        finished(self._core.create(name, settings))
        return self.experiment(name, minimize=minimize)

    # --- what is kept -------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> tuple[Report, ...]:
        """The reports that are not delivered yet."""
        return self._core.outbox.waiting

    @property
    def rejected(self) -> list[Rejection]:
        """The kept reports that the service rejected, and why. They count towards ``max_waiting`` until you clear the list."""
        return self._core.outbox.rejected

    def flush(self, timeout: float | None = None) -> None:
        """Deliver what is kept. Raise `Undelivered` if something is left after the timeout, or was rejected."""
        finished(self._core.flush(self._core.timeout if timeout is None else timeout))

    def close(self, timeout: float | None = None) -> None:
        """Deliver what is kept, and close the connections. Raise `Undelivered`, with the reports, if something is left."""
        with self._lock:
            self._core.outbox.close()
            thread, self._thread = self._thread, None
            if thread is not None and thread.is_alive():  # it is not alive after a fork
                self._at_once.set()
        try:
            self.flush(timeout)
        finally:
            if thread is not None:
                thread.join(self._core.timeout)
            self._core.caller.pool.close()

    def __enter__(self) -> Client:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client. An error of the block stays that error, with a note on what is not delivered."""
        try:
            self.close()
        except Undelivered as undelivered:
            if error is None:
                raise
            add_note(error, f"robandit.client: {undelivered}")

    # --- delivery in the background -----------------------------------------------------------------------------------

    def _wake(self, at_once: bool) -> None:
        """See that a thread delivers what waits. It ends when nothing waits."""
        with self._lock:
            if self._core.closed:
                return
            if self._thread is None or not self._thread.is_alive():  # it is not alive after a fork
                self._at_once = threading.Event()
                thread = threading.Thread(
                    target=self._deliver, args=(self._at_once,), name="robandit-client", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError as error:  # the interpreter ends, or there are too many threads
                    log.warning("reports wait for the next call, or for close: %s", error)
                    return
                self._thread = thread
            elif at_once:
                self._at_once.set()

    def _deliver(self, at_once: threading.Event) -> None:
        failures = 0
        while not self._core.closed:
            with self._lock:
                if not self._core.outbox:
                    self._thread = None
                    return
            try:
                finished(self._core.deliver(self._core.timeout))
                failures = 0
            except Exception as error:  # an unexpected one must not end the delivery either
                failures += 1
                if failures == 1:
                    unexpected = not isinstance(error, RobanditError)
                    log.warning("reports wait for the service: %s", error, exc_info=unexpected)
                at_once.wait(self._core.caller.pause(failures + 1))
                at_once.clear()


@other_names(EXPERIMENT)
class Experiment:
    """An experiment of the service, from `Client.experiment` or `Client.create`. Thread-safe."""

    def __init__(self, core: Core, name: str, fallback: str | None, minimize: bool | None) -> None:
        """Keep what the calls need."""
        self.name = name
        self._core = core
        self._fallback = None if fallback is None else checked_text("fallback", fallback)
        self._minimize = minimize

    def __repr__(self) -> str:
        """Return the name."""
        return f"Experiment({self.name!r})"

    def decide(
        self,
        *,
        among: Sequence[str] | None = None,
        arm: str | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
    ) -> Decision:
        """Return a decision: the arm to use, and the id for its reward.

        Parameters
        ----------
        among
            Choose among these arms only.
        arm
            Report this arm, which you have chosen yourself. While the service is away, the report is kept.
        context
            Anything that JSON can express, up to 64 KiB. It is stored, and not used.
        id
            By default a new UUIDv7. The same id with the same content gives the same decision.
        fallback
            The arm to return if the service is away, in place of that of the experiment or the client. Its decision has a new id,
            even if you give one, because the call that failed may have been stored with another arm. It is kept, and reported when
            the service is back: the policy then learns its reward like any other.
        """
        asked = request_of(among, arm, context, id)
        return finished(self._core.decide(self.name, asked, self._fallback if fallback is None else fallback))

    def decide_many(self, requests: int | Iterable[DecisionRequest], *, fallback: str | None = None) -> list[Decision]:
        """Return several decisions, in batches of up to 1,000. ``requests`` is their number, or a dict with the fields of each.

        Raise `BatchError` if the service rejects some; its ``answers`` have the other decisions.
        """
        return finished(self._core.decide_many(self.name, requests, self._fallback if fallback is None else fallback))

    def reward(self, decision: Decision | str, value: float) -> Reward:
        """Send the reward of a decision, or of an id.

        It counts once: the same again changes nothing, another value is a `Conflict`. If the service is away, the reward is kept,
        and delivered later; the outcome is then ``"kept"``. It is also kept if the call is interrupted or cancelled. What cannot be
        learned is rejected at once, with `InvalidReward`.
        """
        return finished(self._core.reward(self.name, decision_id(self.name, decision), value))

    def reward_many(self, pairs: Iterable[tuple[Decision | str, float]]) -> list[Reward]:
        """Send several rewards, in batches of up to 1,000: pairs of a decision, or its id, and a value.

        Raise `BatchError` if the service rejects some; the others count.
        """
        given = [(decision_id(self.name, decision), value) for decision, value in pairs]
        return finished(self._core.reward_many(self.name, given))

    def show(self) -> dict[str, Any]:
        """Return the experiment with its settings, counts, estimates and warnings. The key needs the scope read."""
        return finished(self._core.show(self.name))

    @contextmanager
    def timed(
        self,
        *,
        among: Sequence[str] | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
        on_error: float | None = None,
    ) -> Iterator[Decision]:
        """Decide, measure the seconds that the block takes, and send them as the reward::

            with provider.timed() as decision:
                call(decision.arm)

        The reward is the time itself if the experiment minimises, and minus the time otherwise. If the block raises an error, no
        reward is sent, and the decision stays open until its window ends; with ``on_error``, that value is sent instead, as it is.
        The error goes on in both cases.
        """
        if on_error is not None:
            checked_value(on_error)
        if self._minimize is None:
            self._minimize = finished(self._core.minimizes(self.name))
        decision = self.decide(among=among, context=context, id=id, fallback=fallback)
        start = time.perf_counter()
        try:
            yield decision
        except Exception as error:
            if on_error is not None:
                try:
                    self.reward(decision, on_error)
                except RobanditError as failure:
                    add_note(error, unsent(failure))
            raise
        self.reward(decision, latency(time.perf_counter() - start, self._minimize))

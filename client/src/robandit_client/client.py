"""The blocking client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Literal

from robandit_client.core import BaseClient, BaseExperiment, add_note, log, settings_of
from robandit_client.edge import Edge
from robandit_client.errors import RobanditError, Undelivered
from robandit_client.hints import CLIENT, EXPERIMENT, guided, other_names
from robandit_client.values import Decision, DecisionRequest, Rejection, Reward, checked_text
from robandit_client.wires import Sockets, finished


@guided
@other_names(CLIENT)
class Client(BaseClient):
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

    _wire = Sockets
    _at_once: threading.Event
    _thread: threading.Thread | None = None

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
        sticky_for: float | None = None,
        cap: float | None = None,
        floor: float | None = None,
        control: Mapping[str, float] | None = None,
        metrics: Sequence[str] | None = None,
        guardrails: Sequence[Mapping[str, Any]] | None = None,
        objective: str | None = None,
        deadline: float | None = None,
        failure_cost: float | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Experiment:
        """Create an experiment, or find it if it exists with the same settings. Raise `Conflict` if its settings differ.

        The parameters are those of ``PUT /v1/experiments/{name}`` in the reference of the service. The key needs the scope admin.
        ``unit`` is the unit of the rewards, such as ``"ms"``. ``sticky_for`` is how long the unit of a decision, such as a user,
        keeps its arm. ``metrics`` are the names of other numbers that rewards come with, and ``guardrails`` limits on them, such as
        ``[{"metric": "error", "at_most": 0.05}, {"metric": "latency_ms", "quantile": 0.95, "at_most": 2000}]``. ``floor`` is the
        share of decisions that is drawn uniformly, and ``control`` the shares of single arms, such as ``{"standard": 0.05}``.
        ``objective`` is what is optimised: ``"p95"``, or ``"within:2.0"``, instead of the mean.
        ``cap`` lets `Experiment.standing` say which arm wins.
        ``deadline`` is for rewards that are elapsed seconds, with ``minimize``: a longer one, a time-out and a failure (`fail`)
        cost ``failure_cost``, or else the deadline.
        ``features`` are the fields of contexts that the policy learns from, such as ``{"tokens": {"type": "number", "log": True},
        "region": {"type": "category", "values": ["eu", "us"]}}``, or ``{"region": robandit.Category(["eu", "us"])}``.
        """
        settings = settings_of(
            arms,
            policy,
            minimize,
            seed,
            reward_window,
            on_expiry,
            max_open,
            unit,
            sticky_for=sticky_for,
            cap=cap,
            floor=floor,
            control=control,
            metrics=metrics,
            guardrails=guardrails,
            objective=objective,
            deadline=deadline,
            failure_cost=failure_cost,
            features=features,
        )
        finished(self._core.create(name, settings))
        return self.experiment(name, minimize=minimize)

    def edge(
        self,
        name: str,
        *,
        refresh: float = 1.0,
        reward_window: float | None = None,
        max_open: int = 100_000,
        max_waiting: int = 100_000,
        on_rejected: Callable[[Rejection], object] | None = None,
        seed: int | None = None,
    ) -> Edge:
        """Return an `Edge`, which decides in this process, after its first allocation came. Close it, or use it with ``with``.

        Parameters
        ----------
        name
            The experiment, which must exist.
        refresh
            Seconds between two allocations, 0.1 to 3,600. What was observed is sent at the same times, or from 1,000 on.
        reward_window
            Seconds after which an open decision is reported as expired. None: those of the experiment, if it has any.
        max_open
            The most open decisions. Beyond it, the oldest ones are given up.
        max_waiting
            The most observations that wait to be sent. Beyond it, `Edge.reward` raises `Overloaded`.
        on_rejected
            A function that is called in the background with each observation that the service rejects. None: see `Edge.rejected`.
        seed
            Makes the draws repeatable, for tests.
        """
        if self._core.closed:
            raise RobanditError("the client is closed: make a new one")
        return Edge(self._core, name, refresh, reward_window, max_open, max_waiting, on_rejected, seed)

    # --- what is kept -------------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> None:
        """Deliver what is kept. Raise `Undelivered` if something is left after the timeout, or was rejected."""
        finished(self._core.flush(self._core.timeout if timeout is None else timeout))

    def close(self, timeout: float | None = None) -> None:
        """Deliver what is kept, and close edges and connections. Raise `Undelivered`, with the reports, if something is left."""
        with ExitStack() as stack:
            stack.callback(self._close, timeout)
            for edge in list(self._core.edges):
                stack.callback(edge.close, timeout)

    def _close(self, timeout: float | None) -> None:
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
            failures = finished(self._try_delivery(failures))
            if failures:
                at_once.wait(self._core.caller.pause(failures + 1))
                at_once.clear()


@other_names(EXPERIMENT)
class Experiment(BaseExperiment):
    """An experiment of the service, from `Client.experiment` or `Client.create`. Thread-safe."""

    def decide(
        self,
        *,
        among: Sequence[str] | None = None,
        arm: str | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
        unit: str | None = None,
    ) -> Decision:
        """Return a decision: the arm to use, and the id for its reward.

        Parameters
        ----------
        among
            Choose among these arms only.
        arm
            Report this arm, which you have chosen yourself. While the service is away, the report is kept.
        context
            Anything that JSON can express, up to 64 KiB. It is stored. An experiment with ``features`` needs a dict with their
            values, and learns from these only.
        id
            By default a new UUIDv7. The same id with the same content gives the same decision.
        fallback
            The arm to return if the service is away, in place of that of the experiment or the client. Its decision has a new id,
            even if you give one, because the call that failed may have been stored with another arm. It is kept, and reported when
            the service is back: the policy then learns its reward like any other.
        unit
            Who the decision is for, such as a user. The experiment needs ``sticky_for``: for these seconds the unit gets the same
            arm, and only its first reward is learned. Send all. A fallback does not keep to it, and is reported without the unit.
        """
        chosen = self._fallback if fallback is None else fallback
        return finished(self._core.decide(self.name, chosen, among=among, arm=arm, context=context, id=id, unit=unit))

    def decide_many(self, requests: int | Iterable[DecisionRequest], *, fallback: str | None = None) -> list[Decision]:
        """Return several decisions, in batches of up to 1,000. ``requests`` is their number, or a dict with the fields of each.

        Raise `BatchError` if the service rejects some; its ``answers`` have the other decisions.
        """
        return finished(self._core.decide_many(self.name, requests, self._fallback if fallback is None else fallback))

    def reward(
        self,
        decision: Decision | str,
        value: float,
        *,
        metrics: Mapping[str, float] | None = None,
        final: bool = True,
        part: str | None = None,
    ) -> Reward:
        """Send the reward of a decision, or of an id.

        It counts once: the same again changes nothing, another value is a `Conflict`. If the service is away, the reward is kept,
        and delivered later; the outcome is then ``"kept"``. It is also kept if the call is interrupted or cancelled. What cannot be
        learned is rejected at once, with `InvalidReward`.

        Parameters
        ----------
        decision, value
            The decision or its id, and the reward.
        metrics
            Other numbers of the outcome, such as ``{"error": 0, "latency_ms": 180}``, by the names in the settings.
        final
            False: ``value`` is an amount, such as a refund. The final reward, or the end of the window, teaches the sum, once.
        part
            A name of the amount, unique for this decision. Pass one if you may send the amount again, such as after a crash:
            the same again changes nothing. None: a new UUIDv7.
        """
        return finished(self._core.reward(self.name, decision, value, metrics, final, part))

    def fail(self, decision: Decision | str, *, metrics: Mapping[str, float] | None = None) -> Reward | None:
        """Report that a decision, or the one with an id, failed. The experiment needs a ``deadline``, and has the cost.

        ``metrics`` are those of `reward`, such as ``{"error": 1}``.

        The same again changes nothing. If the service is away, nothing is kept, and the result is None: the decision times out
        after the deadline, at the same cost.
        """
        return finished(self._core.fail(self.name, decision, metrics))

    def reward_many(
        self, pairs: Iterable[tuple[Decision | str, float] | tuple[Decision | str, float, Mapping[str, float] | None]]
    ) -> list[Reward]:
        """Send several rewards, in batches of up to 1,000: a decision or its id, a value, and perhaps metrics.

        Raise `BatchError` if the service rejects some; the others count.
        """
        return finished(self._core.reward_many(self.name, pairs))

    def show(self) -> dict[str, Any]:
        """Return the experiment with its settings, counts, estimates and warnings. The key needs the scope read."""
        return finished(self._core.show(self.name))

    def explain(self, decision: Decision | str) -> dict[str, Any]:
        """Return what was known when a decision, or the one with an id, was made, and its outcome. The key needs the scope read.

        The keys are those of ``GET /v1/experiments/{name}/decisions/{id}``. With features: ``["features"]``, and for each arm in
        ``["arms"]`` its mean, width and chance in ``["policy"]``.
        """
        return finished(self._core.explain(self.name, decision))

    def standing(self) -> dict[str, Any]:
        """Return which arm leads, with its chance and a sentence, and how each arm stands. The key needs the scope read.

        The keys are those of ``GET /v1/experiments/{name}/standing``. ``["leader"]["sentence"]`` is for people. ``["statement"]``
        is a claim that may be looked at any time, or says why there is none; it is None without a ``cap``.
        """
        return finished(self._core.standing(self.name))

    @contextmanager
    def timed(
        self,
        *,
        among: Sequence[str] | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
        unit: str | None = None,
        on_error: float | Literal["fail"] | None = None,
    ) -> Iterator[Decision]:
        """Decide, measure the seconds that the block takes, and send them as the reward::

            with provider.timed() as decision:
                call(decision.arm)

        The reward is the time itself if the experiment minimises, and minus the time otherwise. If the block raises an error, no
        reward is sent, and the decision stays open until its window ends; with ``on_error``, that value is sent instead, as it is;
        ``"fail"`` reports a failure. The error goes on in all cases.
        """
        finished(self._prepare(on_error))
        decision = self.decide(among=among, context=context, id=id, fallback=fallback, unit=unit)
        start = time.perf_counter()
        try:
            yield decision
        except Exception as error:
            finished(self._reward_error(decision, on_error, error))
            raise
        self.reward(decision, self._latency(start))

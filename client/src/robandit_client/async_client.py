"""The client for asyncio. It does the same as the blocking one; `robandit_client.client` describes the details."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Literal

from robandit_client.core import Core, add_note, decision_id, latency, log, request_of, settings_of, unsent
from robandit_client.errors import RobanditError, Undelivered
from robandit_client.hints import CLIENT, EXPERIMENT, guided, other_names
from robandit_client.values import Decision, DecisionRequest, Rejection, Report, Reward, checked_text, checked_value
from robandit_client.wires import Streams


@guided
@other_names(CLIENT)
class AsyncClient:
    """A client of the decision service for asyncio. The parameters are those of `Client`.

    What is kept is delivered by a task, as long as the event loop runs. Close the client, or use it with ``async with``.

    Examples
    --------
    ::

        async with AsyncClient("http://127.0.0.1:8000", key) as client:
            provider = client.experiment("provider", fallback="a")
            decision = await provider.decide()
            await provider.reward(decision, 0.83)
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
            Streams(),
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
        self._at_once: asyncio.Event | None = None  # before Python 3.10, a new one needs an event loop
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        """Return the address, without the key."""
        return f"AsyncClient({self._core.caller.address.url!r})"

    # --- experiments --------------------------------------------------------------------------------------------------

    def experiment(self, name: str, *, fallback: str | None = None, minimize: bool | None = None) -> AsyncExperiment:
        """Return an experiment to decide with, as `Client.experiment`. Nothing is sent."""
        return AsyncExperiment(self._core, checked_text("name", name), fallback, minimize)

    @guided
    async def create(
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
    ) -> AsyncExperiment:
        """Create an experiment, or find it if it exists with the same settings. Raise `Conflict` if its settings differ.

        The parameters are those of ``PUT /v1/experiments/{name}`` in the reference of the service. The key needs the scope admin.
        """
        settings = settings_of(arms, policy, minimize, seed, reward_window, on_expiry, max_open, unit)
        await self._core.create(name, settings)
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

    async def flush(self, timeout: float | None = None) -> None:
        """Deliver what is kept. Raise `Undelivered` if something is left after the timeout, or was rejected."""
        await self._core.flush(self._core.timeout if timeout is None else timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Deliver what is kept, and close the connections. Raise `Undelivered`, with the reports, if something is left."""
        self._core.outbox.close()
        try:
            await self._stop_delivery()
            await self.flush(timeout)
        finally:
            self._core.caller.pool.close()
            await asyncio.sleep(0)  # lets the transports close

    async def _stop_delivery(self) -> None:
        task, self._task = self._task, None
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            await asyncio.wait([task])

    async def __aenter__(self) -> AsyncClient:
        """Return the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client. An error of the block stays that error, with a note on what is not delivered."""
        try:
            await self.close()
        except Undelivered as undelivered:
            if error is None:
                raise
            add_note(error, f"robandit.client: {undelivered}")

    # --- delivery in the background -----------------------------------------------------------------------------------

    def _wake(self, at_once: bool) -> None:
        """See that a task delivers what waits. It ends when nothing waits."""
        if self._core.closed:
            return
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._at_once = asyncio.Event()
            self._task = loop.create_task(self._deliver(self._at_once))
        elif at_once and self._at_once is not None:
            self._at_once.set()

    async def _deliver(self, at_once: asyncio.Event) -> None:
        failures = 0
        while self._core.outbox:
            try:
                await self._core.deliver(self._core.timeout)
                failures = 0
            except Exception as error:  # an unexpected one must not end the delivery either
                failures += 1
                if failures == 1:
                    unexpected = not isinstance(error, RobanditError)
                    log.warning("reports wait for the service: %s", error, exc_info=unexpected)
                with suppress(asyncio.TimeoutError):  # a TimeoutError since Python 3.11
                    await asyncio.wait_for(at_once.wait(), self._core.caller.pause(failures + 1))
                at_once.clear()


@other_names(EXPERIMENT)
class AsyncExperiment:
    """An experiment of the service, from `AsyncClient.experiment` or `AsyncClient.create`."""

    def __init__(self, core: Core, name: str, fallback: str | None, minimize: bool | None) -> None:
        """Keep what the calls need."""
        self.name = name
        self._core = core
        self._fallback = None if fallback is None else checked_text("fallback", fallback)
        self._minimize = minimize

    def __repr__(self) -> str:
        """Return the name."""
        return f"AsyncExperiment({self.name!r})"

    async def decide(
        self,
        *,
        among: Sequence[str] | None = None,
        arm: str | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
    ) -> Decision:
        """Return a decision: the arm to use, and the id for its reward. The parameters are those of `Experiment.decide`."""
        asked = request_of(among, arm, context, id)
        return await self._core.decide(self.name, asked, self._fallback if fallback is None else fallback)

    async def decide_many(
        self, requests: int | Iterable[DecisionRequest], *, fallback: str | None = None
    ) -> list[Decision]:
        """Return several decisions, in batches of up to 1,000. ``requests`` is their number, or a dict with the fields of each.

        Raise `BatchError` if the service rejects some; its ``answers`` have the other decisions.
        """
        return await self._core.decide_many(self.name, requests, self._fallback if fallback is None else fallback)

    async def reward(self, decision: Decision | str, value: float) -> Reward:
        """Send the reward of a decision, or of an id. See `Experiment.reward`."""
        return await self._core.reward(self.name, decision_id(self.name, decision), value)

    async def reward_many(self, pairs: Iterable[tuple[Decision | str, float]]) -> list[Reward]:
        """Send several rewards, in batches of up to 1,000: pairs of a decision, or its id, and a value.

        Raise `BatchError` if the service rejects some; the others count.
        """
        given = [(decision_id(self.name, decision), value) for decision, value in pairs]
        return await self._core.reward_many(self.name, given)

    async def show(self) -> dict[str, Any]:
        """Return the experiment with its settings, counts, estimates and warnings. The key needs the scope read."""
        return await self._core.show(self.name)

    @asynccontextmanager
    async def timed(
        self,
        *,
        among: Sequence[str] | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
        on_error: float | None = None,
    ) -> AsyncIterator[Decision]:
        """Decide, measure the seconds that the block takes, and send them as the reward, as `Experiment.timed`::

            async with provider.timed() as decision:
                await call(decision.arm)

        A block that is cancelled sends no reward.
        """
        if on_error is not None:
            checked_value(on_error)
        if self._minimize is None:
            self._minimize = await self._core.minimizes(self.name)
        decision = await self.decide(among=among, context=context, id=id, fallback=fallback)
        start = time.perf_counter()
        try:
            yield decision
        except Exception as error:
            if on_error is not None:
                try:
                    await self.reward(decision, on_error)
                except RobanditError as failure:
                    add_note(error, unsent(failure))
            raise
        await self.reward(decision, latency(time.perf_counter() - start, self._minimize))

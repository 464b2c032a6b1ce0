"""The client for asyncio. It does the same as the blocking one; `robandit_client.client` describes the details."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Literal

from robandit_client.core import BaseClient, BaseExperiment, add_note, settings_of
from robandit_client.errors import Undelivered
from robandit_client.hints import CLIENT, EXPERIMENT, guided, other_names
from robandit_client.values import Decision, DecisionRequest, Reward, checked_text
from robandit_client.wires import Streams


@guided
@other_names(CLIENT)
class AsyncClient(BaseClient):
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

    _wire = Streams
    _at_once: asyncio.Event
    _task: asyncio.Task[None] | None = None

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
    ) -> AsyncExperiment:
        """Create an experiment, or find it if it exists with the same settings. See `Client.create`."""
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
        await self._core.create(name, settings)
        return self.experiment(name, minimize=minimize)

    # --- what is kept -------------------------------------------------------------------------------------------------

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
        elif at_once:
            self._at_once.set()

    async def _deliver(self, at_once: asyncio.Event) -> None:
        failures = 0
        while self._core.outbox:
            failures = await self._try_delivery(failures)
            if failures:
                with suppress(asyncio.TimeoutError):  # a TimeoutError since Python 3.11
                    await asyncio.wait_for(at_once.wait(), self._core.caller.pause(failures + 1))
                at_once.clear()


@other_names(EXPERIMENT)
class AsyncExperiment(BaseExperiment):
    """An experiment of the service, from `AsyncClient.experiment` or `AsyncClient.create`."""

    async def decide(
        self,
        *,
        among: Sequence[str] | None = None,
        arm: str | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
        unit: str | None = None,
    ) -> Decision:
        """Return a decision: the arm to use, and the id for its reward. The parameters are those of `Experiment.decide`."""
        chosen = self._fallback if fallback is None else fallback
        return await self._core.decide(self.name, chosen, among=among, arm=arm, context=context, id=id, unit=unit)

    async def decide_many(
        self, requests: int | Iterable[DecisionRequest], *, fallback: str | None = None
    ) -> list[Decision]:
        """Return several decisions, in batches of up to 1,000. See `Experiment.decide_many`."""
        return await self._core.decide_many(self.name, requests, self._fallback if fallback is None else fallback)

    async def reward(
        self,
        decision: Decision | str,
        value: float,
        *,
        metrics: Mapping[str, float] | None = None,
        final: bool = True,
        part: str | None = None,
    ) -> Reward:
        """Send the reward of a decision, or of an id. See `Experiment.reward`."""
        return await self._core.reward(self.name, decision, value, metrics, final, part)

    async def fail(self, decision: Decision | str, *, metrics: Mapping[str, float] | None = None) -> Reward | None:
        """Report that a decision, or the one with an id, failed. See `Experiment.fail`."""
        return await self._core.fail(self.name, decision, metrics)

    async def reward_many(
        self, pairs: Iterable[tuple[Decision | str, float] | tuple[Decision | str, float, Mapping[str, float] | None]]
    ) -> list[Reward]:
        """Send several rewards, in batches of up to 1,000. See `Experiment.reward_many`."""
        return await self._core.reward_many(self.name, pairs)

    async def show(self) -> dict[str, Any]:
        """Return the experiment with its settings, counts, estimates and warnings. The key needs the scope read."""
        return await self._core.show(self.name)

    async def explain(self, decision: Decision | str) -> dict[str, Any]:
        """Return what was known when a decision was made, and its outcome. See `Experiment.explain`."""
        return await self._core.explain(self.name, decision)

    async def standing(self) -> dict[str, Any]:
        """Return which arm leads, and how each arm stands, as `Experiment.standing` does."""
        return await self._core.standing(self.name)

    @asynccontextmanager
    async def timed(
        self,
        *,
        among: Sequence[str] | None = None,
        context: Any = None,
        id: str | None = None,
        fallback: str | None = None,
        unit: str | None = None,
        on_error: float | Literal["fail"] | None = None,
    ) -> AsyncIterator[Decision]:
        """Decide, measure the seconds that the block takes, and send them as the reward, as `Experiment.timed`::

            async with provider.timed() as decision:
                await call(decision.arm)

        A block that is cancelled sends no reward.
        """
        await self._prepare(on_error)
        decision = await self.decide(among=among, context=context, id=id, fallback=fallback, unit=unit)
        start = time.perf_counter()
        try:
            yield decision
        except Exception as error:
            await self._reward_error(decision, on_error, error)
            raise
        await self.reward(decision, self._latency(start))

"""What both clients do: decide, reward, keep what cannot be delivered, and deliver it later.

Written as coroutines. Those of the blocking client never wait; see `robandit_client.wires`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Union
from urllib.parse import quote

from robandit_client.answers import (
    decision_of,
    delivery_of,
    experiment_of,
    explanation_of,
    failure_of,
    items_of,
    reward_of,
    standing_of,
)
from robandit_client.calls import Caller
from robandit_client.errors import (
    AccessDenied,
    BatchError,
    InvalidInput,
    NotFound,
    Overloaded,
    RobanditError,
    ServiceUnavailable,
    Undelivered,
    formatted,
)
from robandit_client.http import Unexpected, checked_key, parsed, path_of
from robandit_client.locks import ProcessLock
from robandit_client.outbox import MOST_ITEMS, Outbox, chunks, joined
from robandit_client.values import (
    Decision,
    DecisionRequest,
    Rejection,
    Report,
    ReportKey,
    Reward,
    checked_id,
    checked_metrics,
    checked_part,
    checked_seconds,
    checked_text,
    checked_value,
    encoded,
    encoded_choice,
    encoded_reward,
    invalid,
    new_id,
)
from robandit_client.wires import Sockets, Streams
from robandit_client.wording import counted

log = logging.getLogger("robandit.client")

AWAY = (ServiceUnavailable, Overloaded)
"""The errors of a service that may answer later."""

Refused = dict[Union[tuple[str, bool], ReportKey], RobanditError]
"""What a delivery leaves for the next one: the choices or the rewards of an experiment, or a single report; and why."""

_SETTINGS = ("policy", "minimize", "seed", "reward_window", "on_expiry", "max_open", "unit")
Result = TypeVar("Result")


class Availability:
    """Remembers for a while that the service is away, so that calls which can do without it do not wait each time. Thread-safe.

    A failure concerns all experiments ("") or one, whose open decisions may be too many.
    """

    def __init__(self, cooldown: float, timeout: float, clock: Callable[[], float]) -> None:
        self._cooldown = cooldown
        self._timeout = timeout
        self._clock = clock
        self._until: dict[str, float] = {}
        self._lock = ProcessLock()

    def may_try(self, experiment: str) -> bool:
        """Return whether to call the service. When a pause is over, one caller tries first, and the others go on without it."""
        with self._lock:
            now = self._clock()
            if any(self._until.get(name, now) > now for name in ("", experiment)):
                return False
            for name in ("", experiment):
                if name in self._until:
                    self._until[name] = now + self._timeout
            return True

    def failed(self, name: str) -> None:
        """Begin a pause."""
        with self._lock:
            self._until[name] = self._clock() + self._cooldown

    def answered(self, experiment: str) -> bool:
        """End the pause. Return whether there was one."""
        with self._lock:
            ended = [self._until.pop(name, None) for name in ("", experiment)]
        return any(until is not None for until in ended)


class Core:
    """The state of a client.

    ``wake`` is called when a report waits for the service. Its argument says whether the service has just come back, so that the
    report can be delivered at once.
    """

    def __init__(
        self,
        caller: Caller,
        fallback: str | None,
        timeout: float,
        cooldown: float,
        max_waiting: int,
        wake: Callable[[bool], object],
    ) -> None:
        if isinstance(max_waiting, bool) or not isinstance(max_waiting, int) or max_waiting < 1:
            raise invalid("max_waiting", max_waiting, "an integer >= 1")
        self.fallback = None if fallback is None else checked_text("fallback", fallback)
        self.timeout = checked_seconds("timeout", timeout)
        self.clock = caller.clock
        self.caller = caller
        self.availability = Availability(checked_seconds("cooldown", cooldown), self.timeout, self.clock)
        self.outbox = Outbox(max_waiting)
        self.edges: weakref.WeakSet[Any] = weakref.WeakSet()
        """Edges of this client, which end before it."""
        self._wake = wake

    @property
    def closed(self) -> bool:
        """Whether the client is closed."""
        return self.outbox.closed

    # --- calls --------------------------------------------------------------------------------------------------------

    async def create(self, name: str, settings: dict[str, Any]) -> None:
        """Create an experiment, or find it with the same settings."""
        await self._experiment("PUT", checked_text("name", name), encoded(settings))

    async def show(self, name: str) -> dict[str, Any]:
        """Return an experiment with its counts, estimates and warnings."""
        return await self._experiment("GET", name, None)

    async def explain(self, name: str, decision: Decision | str) -> dict[str, Any]:
        """Return a decision with what was known when it was made."""
        id = _decision_id(name, decision)
        read = partial(explanation_of, name=name, id=id)
        return await self._call("GET", name, f"decisions/{quote(id, safe='')}", None, read, patient=True)

    async def standing(self, name: str) -> dict[str, Any]:
        """Return how the arms of an experiment stand."""
        return await self._call("GET", name, "standing", None, partial(standing_of, name=name), patient=True)

    async def _experiment(self, method: str, name: str, body: bytes | None) -> dict[str, Any]:
        return await self._call(method, name, "", body, partial(experiment_of, name=name), patient=True)

    async def minimizes(self, name: str) -> bool:
        """Return whether the rewards of an experiment are costs."""
        try:
            shown = await self.show(name)
            return bool(shown["settings"]["minimize"])
        except ServiceUnavailable as error:
            raise ServiceUnavailable(
                f"{error}; timed() reads once whether the experiment minimises: pass minimize= to experiment() instead"
            ) from error

    async def decide(self, name: str, fallback: str | None, **asked: Any) -> Decision:
        """Return a decision; that of the fallback, if there is one and the service is away."""
        request = _request(asked)
        body = encoded_choice(**request)
        chosen = self._fallback(request, fallback)
        if chosen is not None and not self.availability.may_try(name):
            return self._chosen_here(name, request, chosen)
        made: Decision | RobanditError
        try:
            made = await self._call("POST", name, "decisions", body, _reader(name, request))
        except AWAY as error:
            made = error
        return self._or_fallback(name, request, made, chosen)

    async def decide_many(
        self, name: str, asked: int | Iterable[DecisionRequest], fallback: str | None
    ) -> list[Decision]:
        """Return decisions in the order of the requests. Raise `BatchError` if the service rejects some."""
        if isinstance(asked, int) and (asked < 0 or isinstance(asked, bool)):
            raise invalid("requests", asked, "an integer >= 0, or dicts")
        requests = [_request(each) for each in ([{}] * asked if isinstance(asked, int) else asked)]
        bodies = [encoded_choice(**request) for request in requests]
        chosen = [self._fallback(request, fallback) for request in requests]
        readers = [_reader(name, request) for request in requests]
        answers = await self._send(name, "decision", bodies, readers, all(arm is not None for arm in chosen))
        made = [_caught(self._or_fallback, name, *each) for each in zip(requests, answers, chosen)]
        return _all(made, "decision")

    def _or_fallback(
        self, name: str, request: dict[str, Any], made: Decision | RobanditError, chosen: str | None
    ) -> Decision:
        """Return what was made of a request, or the fallback of the client, if it has one and the service is away. Raise errors.

        The service does not store its own fallback, so that one is reported like a fallback of the client.
        """
        if isinstance(made, AWAY) and chosen is not None:
            return self._chosen_here(name, request, chosen)
        if isinstance(made, RobanditError):
            raise made
        return self._chosen_here(name, request, made.arm) if made.fallback else made

    async def reward(
        self, name: str, decision: Decision | str, value: Any, metrics: Any = None, final: Any = True, part: Any = None
    ) -> Reward:
        """Send a reward, or an amount of one. Keep it for later, if the service is away."""
        report = _report(name, decision, value, metrics, checked_part(part, final, metrics))
        done = self._with_its_choice(report)
        if done is not None:
            return done
        if self.availability.may_try(name):
            try:
                return await self._call(
                    "POST", name, "rewards", encoded_reward(report), partial(reward_of, report=report)
                )
            except AWAY as error:
                return self._kept(report, error)
            except BaseException as stop:
                self._keep_if_stopped([report], stop)
                raise
        return self._kept(report, None)

    async def fail(self, name: str, decision: Decision | str, metrics: Any = None) -> Reward | None:
        """Report a failure. Keep nothing: if the service does not learn of it, the decision times out at the same cost."""
        id, checked = _decision_id(name, decision), checked_metrics(metrics)
        body = {"id": checked_id(id)} if checked is None else {"id": checked_id(id), "metrics": checked}
        if self.outbox.get((name, id, True)) is not None or not self.availability.may_try(name):
            return None
        read = partial(failure_of, experiment=name, id=id)
        try:
            return await self._call("POST", name, "failures", encoded(body), read)
        except AWAY:
            return None

    async def reward_many(self, name: str, pairs: Iterable[tuple[Any, ...]]) -> list[Reward]:
        """Send rewards. Keep those for later that cannot be delivered. Raise `BatchError` if the service rejects some."""
        reports = [_report(name, *each) for each in pairs]
        answers: list[Reward | RobanditError | None] = [_caught(self._with_its_choice, report) for report in reports]
        places = [i for i, answer in enumerate(answers) if answer is None]
        bodies = [encoded_reward(reports[i]) for i in places]
        readers = [partial(reward_of, report=reports[i]) for i in places]
        try:
            sent = await self._send(name, "reward", bodies, readers, True)
        except BaseException as stop:
            self._keep_if_stopped([reports[i] for i in places], stop)
            raise
        for i, each in zip(places, sent):
            answers[i] = _caught(self._kept, reports[i], each) if isinstance(each, AWAY) else each
        return _all([answer for answer in answers if answer is not None], "reward")

    async def _send(
        self, name: str, noun: str, bodies: list[bytes], readers: Sequence[Callable[[Any], Any]], can_wait: bool
    ) -> list[Any]:
        """Return an answer or an error for each item, from as many calls as needed. None is made if it can wait, and must."""
        answers: list[Any] = []
        for end in chunks(bodies) if bodies else ():
            part = bodies[len(answers) : end]
            try:
                if can_wait and not self.availability.may_try(name):
                    raise ServiceUnavailable("the service did not answer a moment ago")
                read = partial(items_of, noun=noun, readers=readers[len(answers) : end])
                answers += await self._call("POST", name, f"{noun}s/batch", joined(part), read)
            except RobanditError as error:
                rest = bodies[len(answers) :] if isinstance(error, AWAY) else part
                answers += [error] * len(rest)
                if isinstance(error, AWAY):
                    break
        return answers

    async def _call(
        self,
        method: str,
        name: str,
        path: str,
        body: bytes | None,
        read: Callable[[Any], Result],
        *,
        patient: bool = False,
        seconds: float | None = None,
    ) -> Result:
        """Make a call, and remember whether the service answered. Without ``seconds``, the client must not be closed."""
        if self.closed and seconds is None:
            raise RobanditError("the client is closed: make a new one")
        limit = self.timeout if seconds is None else seconds
        try:
            answer = await self.caller.call(method, path_of(name, path), body, read, seconds=limit, patient=patient)
        except ServiceUnavailable:
            if not patient:  # an experiment may take long to show, and decisions are made meanwhile
                self.availability.failed("")
            raise
        except Overloaded:
            self.availability.failed(name)
            raise
        except RobanditError:
            self.availability.answered(name)
            raise
        is_back = self.availability.answered(name)
        if self.outbox and seconds is None:
            self._wake(is_back)
        return answer

    # --- what is kept -------------------------------------------------------------------------------------------------

    def _fallback(self, request: dict[str, Any], fallback: str | None) -> str | None:
        """Return the arm to use while the service is away; None if the caller gave none."""
        if request["arm"] is not None:
            return str(request["arm"])  # chosen elsewhere already
        chosen = self.fallback if fallback is None else checked_text("fallback", fallback)
        if chosen is not None and request["among"] is not None and chosen not in request["among"]:
            rule = "one of the arms in among"
            raise invalid("fallback", chosen, rule, hint=f"they are {formatted(list(request['among']))}")
        return chosen

    def _chosen_here(self, name: str, request: dict[str, Any], arm: str) -> Decision:
        """Keep a choice that was made here, and return its decision.

        The fallback has a new id: the call that failed may have been stored, with another arm.
        """
        fallback = request["arm"] is None
        id = new_id() if fallback else request["id"]
        context = json.loads(encoded(request["context"]))  # a copy, which the caller cannot change
        self._keep(Report(name, id, arm=arm, context=context))
        return Decision(id, arm, name, None, time.time(), None, fallback)

    def _with_its_choice(self, report: Report) -> Reward | None:
        """Keep a reward if its choice waits here. Return None if the service knows the choice."""
        assert report.value is not None
        outcome = self.outbox.add_to_choice(report)
        if outcome is None:
            return None
        self._wake(False)
        return Reward(report.id, report.experiment, report.value, "kept" if outcome == "kept" else "rejected")

    def _kept(self, report: Report, error: RobanditError | None) -> Reward:
        assert report.value is not None
        try:
            self._keep(report)
        except Overloaded as full:
            raise full from error
        return Reward(report.id, report.experiment, report.value, "kept")

    def _keep_if_stopped(self, reports: Iterable[Report], stop: BaseException) -> None:
        """Keep rewards whose call was cancelled or interrupted: the caller gets no answer, and would not send them again."""
        for report in () if isinstance(stop, Exception) else reports:
            kept = _caught(self._kept, report, None)
            if isinstance(kept, RobanditError):
                log.error("%s was interrupted and is not kept: %s", report, kept)

    def _keep(self, report: Report) -> None:
        self.outbox.add(report)
        self._wake(False)

    # --- delivery -----------------------------------------------------------------------------------------------------

    async def deliver(self, seconds: float) -> None:
        """Deliver what waits. Raise the error if the service is away, or does not accept the key."""
        until = self.clock() + seconds
        most = MOST_ITEMS
        refused: Refused = {}
        while batch := self.outbox.batch(most, refused):
            noun = "decision" if batch[0].is_choice else "reward"
            body = joined(report.body for report in batch)
            read = partial(items_of, noun=noun, readers=[partial(delivery_of, report=report) for report in batch])
            left = max(until - self.clock(), 1e-3)
            try:
                items = await self._call("POST", batch[0].experiment, f"{noun}s/batch", body, read, seconds=left)
            except AWAY:
                self.outbox.postpone(batch)
                raise
            except RobanditError as error:
                if isinstance(error, AccessDenied):  # the key may still be accepted for other experiments
                    refused[batch[0].experiment, batch[0].is_choice] = error
                    continue
                if len(batch) > 1 and not isinstance(error, NotFound):
                    most = len(batch) // 2  # finds the report that spoils the batch
                    continue
                items = [error] * len(batch)
            refused |= self._settle(batch, items)
        if refused:
            raise next(iter(refused.values()))

    def _settle(self, batch: Sequence[Report], items: Sequence[Any]) -> Refused:
        """Take the answers to a batch. Return those that cannot be read: only their reports are repeated, in the next delivery.

        Raise the error of the service, if it has one for reports that must be repeated.
        """
        again: Refused = {report.key: item for report, item in zip(batch, items) if isinstance(item, AWAY)}
        self.outbox.settle(report for report, item in zip(batch, items) if not isinstance(item, RobanditError))
        for report, item in zip(batch, items):
            if isinstance(item, RobanditError) and not isinstance(item, AWAY):
                for rejected in self.outbox.reject([report], item):
                    log.error("the service rejected %s: %s", rejected, item)
        self.outbox.postpone(report for report in batch if report.key in again)
        for error in again.values():
            if not isinstance(error.__cause__, Unexpected):
                raise error
        return again

    async def flush(self, seconds: float) -> None:
        """Deliver what waits, repeatedly. Raise `Undelivered` if reports are left, or were rejected."""
        await deliver_all(self.outbox, self.deliver, self.caller, seconds)


async def deliver_all(
    outbox: Outbox, deliver: Callable[[float], Awaitable[object]], caller: Caller, seconds: float
) -> None:
    """Call ``deliver`` with the seconds that are left, until nothing waits.

    Raise `Undelivered` if reports are left, or were rejected.
    """
    until = caller.clock() + seconds
    failures, last = 0, None
    while waiting := outbox.waiting:
        try:
            await deliver(max(until - caller.clock(), 1e-3))
        except RobanditError as error:
            failures, last = failures + 1, error
            pause = caller.pause(failures)
            if isinstance(error, AccessDenied) or caller.clock() + pause >= until:
                waiting = outbox.waiting
                break
            await caller.wire.sleep(pause)
    rejected = tuple(outbox.rejected)
    if waiting or rejected:
        reason = last or rejected[0].error
        left = f"not delivered: {counted(len(waiting), 'report')}, rejected: {counted(len(rejected), 'report')}"
        raise Undelivered(f"{left}; {reason}", reports=[*waiting, *(each.report for each in rejected)]) from reason


class BaseClient:
    """What the blocking client and that for asyncio have in common."""

    _wire: type[Sockets | Streams]

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
        caller = Caller(
            self._wire(),
            parsed(url),
            checked_key(key),
            connect_timeout=checked_seconds("connect_timeout", connect_timeout),
            read_timeout=checked_seconds("read_timeout", read_timeout),
        )
        self._core = Core(caller, fallback, timeout, cooldown, max_waiting, self._wake)
        self._lock = ProcessLock()  # of what delivers in the background

    def _wake(self, at_once: bool) -> None:
        raise NotImplementedError

    async def _try_delivery(self, failures: int) -> int:
        """Deliver what waits. Return the number of failures since the last success, of which the first one is logged."""
        try:
            await self._core.deliver(self._core.timeout)
        except Exception as error:  # an unexpected one must not end the delivery either
            if not failures:
                log.warning("reports wait for the service: %s", error, exc_info=not isinstance(error, RobanditError))
            return failures + 1
        return 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._core.caller.address.url!r})"

    @property
    def waiting(self) -> tuple[Report, ...]:
        """The reports that are not delivered yet."""
        return self._core.outbox.waiting

    @property
    def rejected(self) -> list[Rejection]:
        """The kept reports that the service rejected, and why. They count towards ``max_waiting`` until you clear the list."""
        return self._core.outbox.rejected


class BaseExperiment:
    """What the experiments of both clients have in common."""

    def __init__(self, core: Core, name: str, fallback: str | None, minimize: bool | None) -> None:
        self.name = name
        self._core = core
        self._fallback = None if fallback is None else checked_text("fallback", fallback)
        self._minimize = minimize

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def _prepare(self, on_error: float | str | None) -> None:
        """Check the arguments of `timed`, and learn what it must know of the experiment."""
        if on_error is not None and on_error != "fail":
            checked_value(on_error)
        if self._minimize is None:
            self._minimize = await self._core.minimizes(self.name)

    def _latency(self, start: float) -> float:
        """Return the seconds since a start as a reward."""
        seconds = time.perf_counter() - start
        return seconds if self._minimize else 0.0 - seconds

    async def _reward_error(self, decision: Decision, on_error: float | str | None, error: Exception) -> None:
        """Send the reward, or the failure, of a block that has raised an error."""
        if on_error is not None:
            try:
                if on_error == "fail":
                    await self._core.fail(self.name, decision)
                else:
                    await self._core.reward(self.name, decision, on_error)
            except RobanditError as failure:
                add_note(error, f"robandit.client: the reward of on_error was not sent: {failure}")


def settings_of(arms: Sequence[str], *others: Any, **later: Any) -> dict[str, Any]:
    """Return the settings of a new experiment: its arms, those of `_SETTINGS`, and later ones, which services of 0.2 reject."""
    if isinstance(arms, str):
        raise invalid("arms", arms, "a list of names")
    given = {name: value for name, value in later.items() if value is not None}
    if isinstance(given.get("features"), Mapping):  # robandit.Number and robandit.Category become data
        given["features"] = {
            name: each.to_dict() if hasattr(each, "to_dict") else each for name, each in given["features"].items()
        }
    return {"arms": list(arms), **dict(zip(_SETTINGS, others)), **given}


def _request(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return all fields of a request, with a new id if it has none."""
    unknown = set(asked) - {"id", "among", "arm", "context", "unit"}
    if unknown:
        raise invalid("request", asked, "a dict with the keys id, among, arm, context and unit")
    id = asked.get("id")
    among = asked.get("among")
    return {
        "id": new_id() if id is None else id,
        "among": among if among is None or isinstance(among, str) else tuple(among),
        "arm": asked.get("arm"),
        "context": asked.get("context"),
        "unit": asked.get("unit"),
    }


def _report(name: str, decision: Any, value: Any, metrics: Any = None, part: str | None = None) -> Report:
    id = _decision_id(name, decision)
    return Report(name, id, value=checked_value(value), metrics=checked_metrics(metrics), part=part)


def _reader(name: str, request: dict[str, Any]) -> Callable[[Any], Decision]:
    return partial(decision_of, experiment=name, id=request["id"], arm=request["arm"], among=request["among"])


def _caught(function: Callable[..., Any], *values: Any) -> Any:
    try:
        return function(*values)
    except RobanditError as error:
        return error


def _all(answers: list[Any], noun: str) -> list[Any]:
    """Return the answers, if there is no error among them. If all failed for the same reason, raise that one."""
    errors = [answer for answer in answers if isinstance(answer, RobanditError)]
    if not errors:
        return answers
    if len({(type(error), str(error)) for error in errors}) == 1 and len(errors) == len(answers):
        raise errors[0]
    rejected = f"{len(errors):,} of {counted(len(answers), noun)} failed"
    raise BatchError(f"{rejected}; the first one: {errors[0]}", answers=answers) from errors[0]


def _decision_id(name: str, decision: Any) -> str:
    """Return the id of a decision of this experiment, or an id as it is."""
    if isinstance(decision, Decision):
        if decision.experiment != name:
            raise InvalidInput(
                f"decision {formatted(decision.id)} is of experiment {decision.experiment!r}, not of {name!r}",
                parameter="decision",
                value=decision,
            )
        return decision.id
    return checked_id(decision)


def add_note(error: BaseException, text: str) -> None:
    """Add a note to an error. Python has no notes before 3.11: there, the text is logged."""
    if sys.version_info >= (3, 11):
        error.add_note(text)
    else:
        log.warning("%s", text)

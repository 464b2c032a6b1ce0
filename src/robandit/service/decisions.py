"""The calls that decide, reward and explain."""

from __future__ import annotations

import gc
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from robandit.decisions.base import without_frames
from robandit.decisions.engine import outcome_of
from robandit.decisions.events import amount_id
from robandit.decisions.experiment import LiveExperiment, MadeEvent
from robandit.errors import InvalidReward, StoreUnavailable, formatted
from robandit.service import bodies
from robandit.service.answers import decision_of, reward_of
from robandit.service.bodies import LONGEST_CONTEXT
from robandit.service.counting import received
from robandit.service.decoding import check_context, decoder, items_of
from robandit.service.http import REPLAYED, Answer, Request, answer
from robandit.service.metrics import Calls
from robandit.service.problems import Refusal, problem_of
from robandit.service.state import State

T = TypeVar("T")
SPARE_LEVELS = 50
MOST_LEVELS = 200  # of a context: stores and other programs read it, too, and SQLite stops at 1,000
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_STEPS = bytes(1 if char in b"[{" else 255 if char in b"]}" else 0 for char in range(256))  # 255 is -1 in 8 bits
_decision = decoder(bodies.NewDecision)
_reward = decoder(bodies.NewReward)
_failure = decoder(bodies.NewFailure)


async def decide(state: State, request: Request) -> Answer:
    """Choose an arm.

    Repeating the call with the same id gives the same answer, with the header Idempotent-Replayed: true. With arm, the call
    records a choice that was made elsewhere.
    """
    calls = await received(state, request.parameters[0], "decision", 1)
    name = request.parameters[0]
    asked = None
    try:
        asked = _asked(request.body)
        made = await state.engine.change(name, asked.decide, ids=asked.ids)
    except StoreUnavailable:
        fallback = None if asked is None else _fallback(state, name, asked)
        calls.outcomes["decision", "rejected"] += 1
        if fallback is None:
            raise
        calls.fallbacks += 1
        return answer(fallback)
    except BaseException:
        calls.outcomes["decision", "rejected"] += 1
        raise
    calls.outcomes["decision", outcome_of(made)] += 1
    return answer(decision_of(name, made), headers=REPLAYED if made.replayed else ())


async def reward(state: State, request: Request) -> Answer:
    """Send the reward of a decision. It counts once: repeating the call changes nothing, and another value is a conflict."""
    return await _end(state, request, _Rewarding)


async def fail(state: State, request: Request) -> Answer:
    """Report that a decision failed. It costs the failure_cost of an experiment with a deadline, however fast it failed."""
    return await _end(state, request, _Failing)


async def _end(state: State, request: Request, kind: type[_Rewarding | _Failing]) -> Answer:
    calls = await received(state, request.parameters[0], "reward", 1)
    name = request.parameters[0]
    try:
        given = kind(request.body)
        made = await state.engine.change(name, given.learn, ids=given.ids, closes=True)
    except BaseException:
        calls.outcomes["reward", "rejected"] += 1
        raise
    _count_reward(calls, made)
    return answer(reward_of(name, made), _status(made), REPLAYED if made.replayed else ())


async def decide_batch(state: State, request: Request) -> Answer:
    """Make up to 1,000 decisions. They are stored in one commit, and each item gets its own answer."""
    name = request.parameters[0]
    calls, items = await _items_of(state, request, "decision", _asked)
    try:
        made = await state.engine.change_all(
            name, [item if isinstance(item, Exception) else item.decide for item in items], ids=_ids(items)
        )
    except BaseException as error:
        calls.outcomes["decision", "rejected"] += len(items)
        if not isinstance(error, StoreUnavailable):
            raise
        fallbacks = []
        async for item in state.engine.slices.paced(items):
            fallbacks.append(item if isinstance(item, Exception) else _fallback(state, name, item))
            if fallbacks[-1] is None:
                raise
        calls.fallbacks += sum(isinstance(each, bodies.Decision) for each in fallbacks)
        return answer(bodies.Decisions(items=[_decision_item(each) for each in fallbacks]))
    answers = []
    async for each in state.engine.slices.paced(_freed(made, items)):
        if isinstance(each, Exception):
            calls.outcomes["decision", "rejected"] += 1
            answers.append(_decision_item(each))
        else:
            calls.outcomes["decision", outcome_of(each)] += 1
            answers.append(_decision_item(decision_of(name, each), each.replayed))
    return answer(bodies.Decisions(items=answers))


def _decision_item(made: bodies.Decision | Exception | None, replayed: bool = False) -> bodies.DecisionItem:
    if isinstance(made, Exception):
        problem = problem_of(made)[0]
        return bodies.DecisionItem(status=problem.status, problem=problem)
    return bodies.DecisionItem(status=200, replayed=replayed, decision=made)


async def reward_batch(state: State, request: Request) -> Answer:
    """Send up to 1,000 rewards. They are stored in one commit, and each item gets its own answer."""
    return await _end_batch(state, request, _Rewarding)


async def fail_batch(state: State, request: Request) -> Answer:
    """Report up to 1,000 failures. They are stored in one commit, and each item gets its own answer."""
    return await _end_batch(state, request, _Failing)


async def _end_batch(state: State, request: Request, kind: type[_Rewarding | _Failing]) -> Answer:
    name = request.parameters[0]
    parse: Callable[[Any], _Rewarding | _Failing] = kind
    calls, items = await _items_of(state, request, "reward", parse)
    try:
        made = await state.engine.change_all(
            name, [item if isinstance(item, Exception) else item.learn for item in items], ids=_ids(items), closes=True
        )
    except BaseException:
        calls.outcomes["reward", "rejected"] += len(items)
        raise
    answers = []
    async for each in state.engine.slices.paced(_freed(made, items)):
        if isinstance(each, Exception):
            calls.outcomes["reward", "rejected"] += 1
            problem = problem_of(each)[0]
            answers.append(bodies.RewardItem(status=problem.status, problem=problem))
        else:
            _count_reward(calls, each)
            learned = reward_of(name, each)
            answers.append(bodies.RewardItem(status=_status(each), replayed=each.replayed, reward=learned))
    return answer(bodies.Rewards(items=answers))


async def explain(state: State, request: Request) -> Answer:
    """Explain a decision. Shows the arms, estimates and indices right before it, and its outcome."""
    return answer(await state.explanations.explain(*request.parameters))


async def _items_of(
    state: State, request: Request, kind: str, parse: Callable[[Any], T]
) -> tuple[Calls, list[T | Exception]]:
    """Return the items of a batch. One that is malformed is an error, and does not stop the others."""
    try:
        raw = items_of(request.body)
    except Exception:
        calls = await received(state, request.parameters[0], kind, 1)
        calls.outcomes[kind, "rejected"] += 1
        raise
    calls = await received(state, request.parameters[0], kind, len(raw))
    items: list[T | Exception] = []
    async for each in state.engine.slices.paced(raw):
        try:
            items.append(parse(each))
        except Exception as error:
            items.append(without_frames(error))
    return calls, items


def _freed(made: list[T], items: list[Any]) -> Iterator[T]:
    """Yield each result of a batch, and free it and its item: to free 400,000 names at once would take 60 ms."""
    made.reverse()
    items.reverse()
    while made:
        items.pop()
        yield made.pop()


def _ids(items: Sequence[_Asking | _Rewarding | _Failing | Exception]) -> list[str]:
    return [id for item in items if not isinstance(item, Exception) for id in item.ids]


class _Asking:
    """A request for a decision."""

    __slots__ = ("_among", "_given", "ids")

    def __init__(self, given: bodies.NewDecision) -> None:
        self._given = given
        self._among = None if given.among is None else tuple(given.among)
        given.among = None  # the garbage collector searches a list each time, for up to 60 ms, but a tuple once
        self.ids = () if given.id is None else (given.id,)

    def decide(self, experiment: LiveExperiment) -> MadeEvent:
        given = self._given
        if experiment.settings.features is not None and given.context is not msgspec.UNSET:
            check_context(bytes(given.context))
        return experiment.decide(given.id, among=self._among, arm=given.arm, context=given.context, unit=given.unit)

    def fallback(self, experiment: LiveExperiment) -> bodies.Decision | None:
        """Return the fallback of an experiment. There is none if it cannot be chosen, or if the choice was made elsewhere.

        It has a new id: the one in the request may be stored, with another arm.
        """
        arm, given = experiment.settings.fallback, self._given
        chosen = arm is not None and given.arm is None and (self._among is None or arm in self._among)
        if arm is None or not chosen or experiment.paused or experiment.bandit.states.get(arm) != "active":
            return None
        id, now = f"fallback-{secrets.token_hex(8)}", experiment.now()
        return bodies.Decision(
            id=id, experiment=experiment.name, arm=arm, propensity=None, time=now, seq=0, fallback=True
        )


class _Rewarding:
    """A reward in a request."""

    __slots__ = ("_given", "ids")

    def __init__(self, body: Any) -> None:
        self._given = given = _reward(body)
        self.ids = (given.id,) if given.part is None else (given.id, amount_id(given.id, given.part))
        if given.final and given.part is not None:
            raise Refusal("invalid", "part is for amounts: leave it out, or send final = false", parameter="part")
        if not given.final and given.part is None:
            rule = "a name of the amount, unique for this decision, so that the call can be repeated"
            raise Refusal("invalid", f"part is missing: with final = false, send {rule}", parameter="part", rule=rule)
        if not given.final and given.metrics is not None:
            raise Refusal("invalid", "metrics come with the final reward: leave them out", parameter="metrics")

    def learn(self, experiment: LiveExperiment) -> MadeEvent:
        given = self._given
        try:
            if not given.final:
                return experiment.add(given.id, given.value, given.part)
            return experiment.reward(given.id, given.value, given.metrics)
        except InvalidReward as error:
            detail = f"value = {formatted(error.value)} must be {error.rule}"
            raise Refusal("invalid", detail, parameter="value", rule=error.rule) from None


class _Failing:
    """A failure in a request."""

    __slots__ = ("_given", "ids")

    def __init__(self, body: Any) -> None:
        self._given = _failure(body)
        self.ids = (self._given.id,)

    def learn(self, experiment: LiveExperiment) -> MadeEvent:
        return experiment.fail(self._given.id, self._given.metrics)


_ANYTHING = _Asking(bodies.NewDecision())


def _asked(body: Any) -> _Asking:
    """Return the request in a body, which may be empty."""
    if not body:
        return _ANYTHING
    given = _decision(body)
    if given.arm is not None and given.among is not None:
        raise Refusal("invalid", "arm and among exclude each other: send one of them", parameter="arm")
    if given.arm is not None and given.unit is not None:
        raise Refusal("invalid", "arm and unit exclude each other: send one of them", parameter="unit")
    context = given.context
    if context is not msgspec.UNSET and len(bytes(context)) > LONGEST_CONTEXT:
        rule = f"at most {LONGEST_CONTEXT >> 10} KiB of JSON"
        size = f"{len(bytes(context)):,} bytes"
        raise Refusal("invalid", f"context has {size} and must be {rule}", parameter="context", rule=rule)
    if context is not msgspec.UNSET:
        _check_context(bytes(context))
    return _Asking(given)


def _fallback(state: State, name: str, asked: _Asking) -> bodies.Decision | None:
    experiment = state.engine.experiments.get(name)
    return None if experiment is None else asked.fallback(experiment)


def _check_context(context: bytes) -> None:
    """Refuse a context that could be stored but not be read again. `msgspec.Raw` only finds where it ends.

    The brackets leave room for the levels of the answers that will hold it.
    """
    rule = f"JSON in UTF-8 with numbers that fit 64-bit floats, nested at most {MOST_LEVELS} levels deep"
    if context.count(b"[") + context.count(b"{") > MOST_LEVELS and _depth(context) > MOST_LEVELS:
        raise Refusal("invalid", f"context must be {rule}", parameter="context", rule=rule)
    collects = gc.isenabled()
    gc.disable()  # what is decoded is freed at once: a collection would only search all objects of the server
    try:
        msgspec.json.decode(b"[" * SPARE_LEVELS + context + b"]" * SPARE_LEVELS)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Refusal("invalid", f"context must be {rule}", parameter="context", rule=rule) from None
    finally:
        if collects:
            gc.enable()


def _depth(context: bytes) -> int:
    """Return the number of levels of valid JSON. A loop in Python over 64 KiB would take 60 ms."""
    steps = np.frombuffer(_STRINGS.sub(b"", context).translate(_STEPS), dtype=np.int8)
    return int(steps.cumsum(dtype=np.int32).max(initial=0))


def _status(made: MadeEvent) -> int:
    return 202 if made.event.kind == "late" else 200


def _count_reward(calls: Calls, made: MadeEvent) -> None:
    calls.outcomes["reward", outcome_of(made)] += 1
    if not (made.replayed or made.event.kind == "added"):
        calls.delays.add(max(0.0, made.event.time - made.payload.decided))

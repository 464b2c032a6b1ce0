"""The calls that decide, reward and explain."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import msgspec

from robandit.decisions.engine import outcome_of
from robandit.decisions.experiment import Experiment, Recorded
from robandit.errors import InvalidReward
from robandit.service import bodies
from robandit.service.answers import decision_of, reward_of
from robandit.service.bodies import LONGEST_CONTEXT, decoder
from robandit.service.http import REPLAYED, Answer, Request, answer
from robandit.service.metrics import Calls
from robandit.service.problems import Refusal, problem_of
from robandit.service.state import State

SPARE_LEVELS = 50
MOST_LEVELS = 200  # of a context: stores and other programs read it, too, and SQLite stops at 1,000
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_decision = decoder(bodies.NewDecision)
_reward = decoder(bodies.NewReward)
_items = decoder(bodies.Items)


async def decide(state: State, request: Request) -> Answer:
    """Handle POST decisions."""
    experiment, calls = _found(state, request, "decision", 1)
    try:
        made = _decide(experiment, request.body)
        await state.engine.stored(made)
    except BaseException:
        calls.outcomes["decision", "rejected"] += 1
        raise
    calls.outcomes["decision", outcome_of(made)] += 1
    return answer(decision_of(experiment, made), headers=REPLAYED if made.replayed else ())


async def reward(state: State, request: Request) -> Answer:
    """Handle POST rewards."""
    experiment, calls = _found(state, request, "reward", 1)
    try:
        made = _learn(experiment, request.body)
        await state.engine.stored(made)
    except BaseException:
        calls.outcomes["reward", "rejected"] += 1
        raise
    _count_reward(calls, made)
    return answer(reward_of(experiment, made), _status(made), REPLAYED if made.replayed else ())


async def decide_batch(state: State, request: Request) -> Answer:
    """Handle POST decisions/batch: one commit, and an answer per item."""
    experiment, calls, made = await _batch(state, request, "decision", _decide)
    answers = []
    for each in made:
        if isinstance(each, Exception):
            calls.outcomes["decision", "rejected"] += 1
            problem = problem_of(each)[0]
            answers.append(bodies.DecisionItem(status=problem.status, problem=problem))
        else:
            calls.outcomes["decision", outcome_of(each)] += 1
            decision = decision_of(experiment, each)
            answers.append(bodies.DecisionItem(status=200, replayed=each.replayed, decision=decision))
    return answer(bodies.Decisions(items=answers))


async def reward_batch(state: State, request: Request) -> Answer:
    """Handle POST rewards/batch: one commit, and an answer per item."""
    experiment, calls, made = await _batch(state, request, "reward", _learn)
    answers = []
    for each in made:
        if isinstance(each, Exception):
            calls.outcomes["reward", "rejected"] += 1
            problem = problem_of(each)[0]
            answers.append(bodies.RewardItem(status=problem.status, problem=problem))
        else:
            _count_reward(calls, each)
            learned = reward_of(experiment, each)
            answers.append(bodies.RewardItem(status=_status(each), replayed=each.replayed, reward=learned))
    return answer(bodies.Rewards(items=answers))


async def explain(state: State, request: Request) -> Answer:
    """Handle GET decisions/{id}."""
    experiment = state.engine.find(request.parameters[0])
    explanation = await state.explanations.explain(experiment, request.parameters[1])
    return answer(explanation)


def _found(state: State, request: Request, kind: str, count: int) -> tuple[Experiment, Calls]:
    """Return the experiment and its counters, and count what was received."""
    name = request.parameters[0]
    if name not in state.engine.experiments:
        state.metrics.unknown.received[kind] += count
        state.metrics.unknown.outcomes[kind, "rejected"] += count
    experiment = state.engine.find(name)
    calls = state.metrics.calls[name]
    calls.received[kind] += count
    try:
        state.engine.check_room()
    except Exception:
        calls.outcomes[kind, "rejected"] += count
        raise
    return experiment, calls


async def _batch(
    state: State, request: Request, kind: str, apply: Callable[[Experiment, Any], Recorded]
) -> tuple[Experiment, Calls, list[Recorded | Exception]]:
    """Apply all items of a batch in one go, so that they are stored in one commit. An item that fails does not stop the others."""
    made: list[Recorded | Exception] = []
    async with state.batches:
        experiment, calls, items = _items_of(state, request, kind)
        for item in items:
            try:
                made.append(apply(experiment, item))
            except Exception as error:
                made.append(error)
        await asyncio.sleep(0)
    await _settled(state, calls, kind, made)
    return experiment, calls, made


def _items_of(state: State, request: Request, kind: str) -> tuple[Experiment, Calls, list[msgspec.Raw]]:
    try:
        items: list[msgspec.Raw] = _items(request.body).items
    except Exception:
        _, calls = _found(state, request, kind, 1)
        calls.outcomes[kind, "rejected"] += 1
        raise
    experiment, calls = _found(state, request, kind, len(items))
    return experiment, calls, items


async def _settled(state: State, calls: Calls, kind: str, made: list[Any]) -> None:
    try:
        await state.engine.settled()
    except BaseException:
        calls.outcomes[kind, "rejected"] += len(made)
        raise


def _decide(experiment: Experiment, body: Any) -> Recorded:
    if not body:
        return experiment.decide()
    given = _decision(body)
    if given.arm is not None and given.among is not None:
        raise Refusal("invalid", "arm and among exclude each other: send one of them", parameter="arm")
    context = given.context
    if context is not msgspec.UNSET and len(bytes(context)) > LONGEST_CONTEXT:
        rule = f"at most {LONGEST_CONTEXT >> 10} KiB of JSON"
        size = f"{len(bytes(context)):,} bytes"
        raise Refusal("invalid", f"context has {size} and must be {rule}", parameter="context", rule=rule)
    if context is not msgspec.UNSET:
        _check_context(bytes(context))
    return experiment.decide(given.id, among=given.among, arm=given.arm, context=context)


def _check_context(context: bytes) -> None:
    """Refuse a context that could be stored but not be read again. `msgspec.Raw` only finds where it ends.

    The brackets leave room for the levels of the answers that will hold it.
    """
    rule = f"JSON in UTF-8 with numbers that fit 64-bit floats, nested at most {MOST_LEVELS} levels deep"
    if context.count(b"[") + context.count(b"{") > MOST_LEVELS and _depth(context) > MOST_LEVELS:
        raise Refusal("invalid", f"context must be {rule}", parameter="context", rule=rule)
    try:
        msgspec.json.decode(b"[" * SPARE_LEVELS + context + b"]" * SPARE_LEVELS)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error).partition(" - at ")[0][:100]
        raise Refusal("invalid", f"context must be {rule}: {reason}", parameter="context", rule=rule) from None


def _depth(context: bytes) -> int:
    depth = deepest = 0
    for byte in _STRINGS.sub(b"", context):
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    return deepest


def _learn(experiment: Experiment, body: Any) -> Recorded:
    given = _reward(body)
    try:
        return experiment.reward(given.id, given.value)
    except InvalidReward as error:
        detail = str(error).replace("reward =", "value =", 1)
        raise Refusal("invalid", detail, parameter="value", rule=error.rule) from None


def _status(made: Recorded) -> int:
    return 202 if made.event.kind == "late" else 200


def _count_reward(calls: Calls, made: Recorded) -> None:
    calls.outcomes["reward", outcome_of(made)] += 1
    if not made.replayed:
        calls.delays.add(max(0.0, made.event.time - made.payload.decided))

"""Writes and reads saved bandits: a header (a name, the format's version, a SHA-256 checksum), then the fields in MessagePack."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np

from robandit.anytime.evidence import Evidence, SavedEvidence
from robandit.errors import CorruptFile, InvalidInput
from robandit.files import check_format
from robandit.kernel.lazy import forget_lines
from robandit.kernel.types import Bools, Ints
from robandit.live.amounts import Amounts
from robandit.live.arms import ACTIVE, Arm, State, checked_arms
from robandit.live.contexts import Contexts, SavedContexts
from robandit.live.deadlines import Deadline, SavedDeadline, checked_deadline
from robandit.live.ids import life_and_number
from robandit.live.memory import Memory, SavedMemory
from robandit.live.open_decisions import LARGEST_NUMBER, DecisionId, OpenDecisions, SavedDecisions
from robandit.live.outcomes import Outcomes, SavedOutcomes
from robandit.live.sticky import Assignments, SavedAssignments
from robandit.objectives import objective_from
from robandit.policies.base import Policy, growing_fields, with_arms, without_arms
from robandit.policies.index import no_outlook
from robandit.policies.wrapping import notices_changes
from robandit.validation import LARGEST_COUNT

Among: TypeAlias = tuple[int, ...] | None
"""Arms that a choice is restricted to; None for all that are available."""

MAGIC = b"robandit"
FORMAT_VERSION = 2  # version 1, of Robandit 0.1, had neither states of arms nor times of decisions
HEADER = len(MAGIC) + 4 + 32
"""The number of bytes before the fields."""
_encoder = msgspec.msgpack.Encoder()
_thread = threading.local()


class _Saved(msgspec.Struct, kw_only=True):
    """The fields of a saved bandit, in the order of the file."""

    policy: dict[str, Any]
    arms: list[Any]
    states: list[State]
    minimize: bool
    max_open: int | None
    received: list[int]
    open: SavedDecisions
    issued: dict[str, int]
    expired: int
    pick: int
    asked: list[Among]
    among: Among
    state: dict[str, tuple[str, list[int], bytes]]
    record: SavedMemory | None
    unrewarded: list[int] = []
    """See `robandit.policies.base`. Empty in files of 0.2, whose rule did not count these pulls."""
    sticky: SavedAssignments | None = None
    outcomes: SavedOutcomes | None = None
    amounts: dict[str | int, dict[str, float]] = {}
    evidence: SavedEvidence | None = None
    deadline: SavedDeadline | None = None
    objective: str = "mean"
    contexts: SavedContexts | None = None


class _SavedByVersion1(msgspec.Struct, kw_only=True):
    """The fields of version 1. Fields with a default are missing in some files."""

    policy: dict[str, Any]
    arms: list[Any]
    received: list[int]
    open: list[tuple[int, int, float]]
    next: int
    expired: int = 0
    pick: int
    state: dict[str, tuple[str, list[int], bytes]]
    record: SavedMemory | None = None

    def renewed(self, weighted: bool) -> _Saved:
        """Return the fields of today's version. Decisions without a time get the time 0, so they count as old."""
        decisions = OpenDecisions()
        for number, arm, mark in self.open:
            decisions.add(number, arm, mark, mark if weighted else None, 0.0)
        return _Saved(
            policy=self.policy,
            arms=self.arms,
            states=[ACTIVE] * len(self.arms),
            minimize=False,
            max_open=None,
            received=self.received,
            open=decisions.pack(),
            issued={"": self.next} if self.next else {},
            expired=self.expired,
            pick=self.pick,
            asked=[],
            among=None,
            state=self.state,
            record=self.record,
        )


@dataclass
class Fields:
    """What is saved of a bandit."""

    policy: Policy
    arms: list[Arm]
    states: list[State]
    minimize: bool
    max_open: int | None
    received: list[int]
    """The number of rewards of each arm."""
    open: OpenDecisions
    issued: dict[str, int]
    """The number of known decisions of each life (`robandit.live.ids`)."""
    expired: int
    pick: int
    """The selected arm, or -1."""
    asked: list[Among]
    """The arms that earlier choices since the last event were restricted to."""
    among: Among
    """The arms that the last choice was restricted to."""
    state: Any
    record: Memory
    unrewarded: list[int]
    sticky: Assignments | None = None
    outcomes: Outcomes | None = None
    amounts: Amounts = field(default_factory=Amounts)
    evidence: Evidence | None = None
    deadline: Deadline | None = None
    objective: str = "mean"
    contexts: Contexts | None = None


def pack(fields: Fields) -> bytes:
    """Return the saved form of a bandit with these fields."""
    state = without_arms(fields.state)._asdict()  # what is allowed follows from ``states`` and ``among``
    saved = vars(fields) | {
        "policy": fields.policy.to_dict(),
        "open": fields.open.pack(),
        "state": {name: [array.dtype.str, array.shape, array.tobytes()] for name, array in state.items()},
        "record": fields.record.save(),
        "sticky": None if fields.sticky is None else fields.sticky.pack(fields.open),
        "outcomes": None if fields.outcomes is None else fields.outcomes.save(),
        "evidence": None if fields.evidence is None else fields.evidence.save(),
        "deadline": None if fields.deadline is None else fields.deadline.save(),
        "contexts": None if fields.contexts is None else fields.contexts.save(fields.open),
    }
    # One buffer per thread is used again and again, because fresh memory for megabytes costs more than writing them.
    buffer: bytearray = vars(_thread).setdefault("buffer", bytearray())
    _encoder.encode_into(saved, buffer, HEADER)
    checksum = hashlib.sha256(memoryview(buffer)[HEADER:]).digest()
    buffer[:HEADER] = MAGIC + FORMAT_VERSION.to_bytes(4, "big") + checksum
    return bytes(buffer)


def unpack(data: bytes, source: str) -> Fields:
    """Return the fields of the bandit that `pack` wrote. Errors name the ``source``, such as a file."""
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "big")
    if data[: len(MAGIC)] != MAGIC or len(data) < HEADER or version < 1:
        raise CorruptFile(f"{source} is not a bandit that Robandit saved")
    check_format(version, FORMAT_VERSION, source)
    payload = data[HEADER:]
    if hashlib.sha256(payload).digest() != data[HEADER - 32 : HEADER]:
        raise CorruptFile(f"{source} is damaged: its checksum does not match; restore it from a copy")
    damaged = (msgspec.MsgspecError, RecursionError, InvalidInput, ValueError, OverflowError)
    try:
        found: _Saved | _SavedByVersion1 = (
            msgspec.msgpack.decode(payload, type=_SavedByVersion1)
            if version == 1
            else msgspec.msgpack.decode(payload, type=_Saved)
        )
    except damaged as error:
        raise CorruptFile(f"{source} is damaged: {error}") from error
    try:
        policy = Policy.from_dict(found.policy).prepared(None)
    except RecursionError as error:
        raise CorruptFile(f"{source} is damaged: its policy is nested too deeply") from error
    try:
        saved = found.renewed(policy.weighted) if isinstance(found, _SavedByVersion1) else found
        arms = checked_arms(saved.arms)
        objective_from(saved.objective)
    except damaged as error:
        raise CorruptFile(f"{source} is damaged: {error}") from error
    decisions = OpenDecisions.unpack(saved.open, len(arms), weighted=policy.weighted)
    if decisions is None or not _fit_together(saved, decisions):
        raise CorruptFile(f"{source} is damaged: its counts, decisions and arms do not fit together")
    sticky = None
    if saved.sticky is not None:
        sticky = Assignments.unpack(saved.sticky, decisions, len(arms), weighted=policy.weighted)
        if sticky is None:
            raise CorruptFile(f"{source} is damaged: its sticky units do not fit its arms and decisions")
    deadline = None
    if saved.deadline is not None:
        limit, cost = saved.deadline.limit, saved.deadline.failure_cost
        try:
            checked_deadline(limit, cost, policy, minimize=saved.minimize, alone=sticky is None)
        except InvalidInput as error:
            raise CorruptFile(f"{source} is damaged: {error}") from error
        deadline = Deadline.load(saved.deadline, decisions, len(arms))
        if deadline is None:
            raise CorruptFile(f"{source} is damaged: its deadline does not fit its arms and decisions")
    allowed = _allowed(source, policy, saved)
    unrewarded = np.array(saved.unrewarded or [0] * (len(arms) + 1), dtype=np.int64)
    state = _restored(source, policy, allowed, unrewarded, saved.state)
    memory = Memory.load(saved.record, len(arms), watching=not notices_changes(policy))
    if memory is None:
        raise CorruptFile(f"{source} is damaged: its record of rewards does not fit its arms")
    checked = {"policy": policy, "arms": list(arms), "open": decisions, "state": state, "record": memory}
    outcomes = None if saved.outcomes is None else Outcomes.load(saved.outcomes, len(arms))
    if (saved.outcomes is not None and outcomes is None) or not all(id in decisions for id in saved.amounts):
        raise CorruptFile(f"{source} is damaged: its metrics or amounts do not fit its arms and decisions")
    evidence = None
    if saved.evidence is not None:
        evidence = Evidence.load(saved.evidence, len(arms))
        if evidence is None or not _waits_for_open(saved.evidence, decisions):
            raise CorruptFile(f"{source} is damaged: its evidence does not fit its arms and decisions")
    contexts = None
    if saved.contexts is not None:
        contexts = Contexts.load(saved.contexts, list(decisions), len(saved.asked) + (saved.pick >= 0))
        if contexts is None or getattr(state, "x", contexts.encoder.columns).__len__() != len(contexts.encoder.columns):
            raise CorruptFile(f"{source} is damaged: its contexts do not fit its decisions or its policy")
    checked |= {"contexts": contexts}
    checked |= {"sticky": sticky, "outcomes": outcomes, "amounts": Amounts.load(saved.amounts), "evidence": evidence}
    checked |= {"deadline": deadline}
    return Fields(**msgspec.structs.asdict(saved) | checked)


def _fit_together(saved: _Saved, decisions: OpenDecisions) -> bool:
    count = len(saved.arms)
    choices = [each for each in [*saved.asked, saved.among] if each is not None]
    return (
        len(saved.received) == len(saved.states) == count
        and all(0 <= number <= LARGEST_COUNT for number in [saved.expired, *saved.received])
        and all(0 <= number <= LARGEST_NUMBER + 1 for number in saved.issued.values())
        and (saved.max_open is None or saved.max_open >= 1)
        and -1 <= saved.pick < count
        and (not saved.unrewarded or _unrewarded_fit(saved.unrewarded, count))
        and all(choice and all(0 <= arm < count for arm in choice) for choice in choices)
        and all(_known(decision_id, saved.issued) for decision_id in decisions)
    )


def _waits_for_open(evidence: SavedEvidence, decisions: OpenDecisions) -> bool:
    """Return whether each decision that rewards wait for is open."""
    ids = [(arm, id) for arm, rows in enumerate(evidence.waiting) for is_open, id in rows if is_open]
    return all(type(id) in (str, int) and (decisions.facts(id) or (-1,))[0] == arm for arm, id in ids)


def _unrewarded_fit(unrewarded: list[int], arms: int) -> bool:
    return (
        len(unrewarded) == arms + 1
        and all(0 <= number <= LARGEST_COUNT for number in unrewarded)
        and (unrewarded[-1] == 1 or not any(unrewarded))
    )


def _known(decision_id: DecisionId, issued: Mapping[str, int]) -> bool:
    parsed = life_and_number(decision_id)
    return parsed is not None and parsed[1] < issued.get(parsed[0], 0)


def _allowed(source: str, policy: Policy, saved: _Saved) -> Bools:
    """Return which arms the last choice could select. Raise `CorruptFile` unless the policy can leave out the others."""
    active = np.array([state == ACTIVE for state in saved.states], dtype=np.bool_)
    if not policy.respects_allowed and not (active.all() and saved.among is None and set(saved.asked) <= {None}):
        raise CorruptFile(f"{source} is damaged: {policy.label} chooses among all arms, and some are left out")
    allowed = active.copy()
    if saved.among is not None:
        allowed[:] = False
        allowed[list(saved.among)] = True
        if not active[allowed].all():
            raise CorruptFile(f"{source} is damaged: its last choice was among arms that are not active")
    if saved.pick >= 0 and not allowed[saved.pick]:
        raise CorruptFile(f"{source} is damaged: it selected an arm that it could not choose")
    return allowed


def _restored(source: str, policy: Policy, allowed: Bools, unrewarded: Ints, saved: dict[str, Any]) -> Any:
    """Return the saved arrays as the policy's state. Raise `CorruptFile` unless names, types and sizes fit the policy."""
    fresh = policy.init(len(allowed), None)
    saved = {name: array for name, array in saved.items() if name not in policy.former_fields}
    later = {name: getattr(fresh, name) for name in policy.later_fields if name not in saved}
    known = {name: array for name, array in fresh._asdict().items() if name not in later}
    if set(saved) != set(known) or not all(_fits(policy, n, saved[n], now) for n, now in known.items()):
        raise CorruptFile(f"{source}: {policy.label} cannot use this state, which another version of the policy saved")
    arrays = {n: np.frombuffer(data, dtype=kind).reshape(shape).copy() for n, (kind, shape, data) in saved.items()}
    state = with_arms(type(fresh)(**arrays, **later), allowed, unrewarded)
    if getattr(policy, "outlook", None) is no_outlook:  # version 0.2 saved lines of such policies, which may be too low
        forget_lines(state.lines)
    return state


def _fits(policy: Policy, name: str, saved: tuple[str, list[int], bytes], fresh: Any) -> bool:
    """Return whether a saved array has the type and the size of the fresh one, or a larger size along an axis that grows."""
    kind, shape, data = saved
    if kind != fresh.dtype.str or len(shape) != fresh.ndim:
        return False
    grows = growing_fields(policy)
    longer = set(range(fresh.ndim)) if grows is None else {grows[name] % fresh.ndim} if name in grows else set()
    sizes = zip(shape, fresh.shape, strict=True)
    fit = all(now == first or (axis in longer and now > first) for axis, (now, first) in enumerate(sizes))
    return fit and math.prod(shape) * fresh.itemsize == len(data)

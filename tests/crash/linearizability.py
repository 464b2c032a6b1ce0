"""Checks recorded histories of calls against the log: is there an order of all calls that explains every answer?

The log is that order. Every answer has the number of its event (``seq``), so nothing needs to be searched:

1. Each answer to a write is the row of the log with its number, and one call at most was told that it made this row. A row that
   no answer reports belongs to a call that was cut off. Such a call may have happened, once, as a whole, or not at all.
2. Real time: if the answer to A was read before B was sent, then A comes before B. A new event of B has a larger number than
   all that A reports. A read B sees at least what A reports. An answer "not found" to B means that no earlier row made it.
3. Each read is what a plain loop over the log up to its number gives.
4. A new bandit with the same seed chooses the recorded arms again, one after the other.

Together these are linearizability: the calls in the order of the log, reads after the row that they report, give the recorded
answers, and the order respects real time.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import robandit as rb
from crash.model import Model, Row, require
from robandit.experiments.notation import policies_from

DONE = (200, 202)
SINGLE = {"decisions": "decide", "rewards": "reward"}
"""What the items of a batch are."""


@dataclass
class Call:
    """A call of a client. ``responded`` is None if the answer was not read to its end, or said that the server is not available."""

    number: int
    kind: str
    """decide, reward, decisions (a batch), rewards (a batch), show, log or explain."""
    experiment: str
    body: Any
    invoked: int
    """Nanoseconds of a clock that all clients share."""
    responded: int | None = None
    status: int = 0
    answer: Any = None
    replayed: bool = False
    life: int = 0
    """The server's start that the call was sent to."""
    tries: int = field(default=0)
    """How often the same call was sent before without an answer."""

    def decisions(self) -> list[Mapping[str, Any]]:
        """Return the decisions in the answer."""
        if self.kind == "decide" and self.status == 200:
            return [self.answer]
        if self.kind == "decisions" and self.status == 200:
            return [each["decision"] for each in self.answer["items"] if each.get("decision")]
        return []


class Operation(NamedTuple):
    """A call, or an item of a batch."""

    call: Call
    kind: str
    body: Any
    status: int
    answer: Any
    replayed: bool

    @property
    def is_new(self) -> bool:
        """Whether the answer says that the call made the event."""
        return self.status in DONE and self.kind in ("decide", "reward") and not self.replayed

    def __str__(self) -> str:
        return f"call {self.call.number} ({self.call.kind} {self.body}) answered {self.status} {self.answer}"


def operations(history: Iterable[Call]) -> Iterator[Operation]:
    """Yield the answered calls, and each item of the answered batches."""
    for call in history:
        if call.responded is None:
            continue
        if call.kind in ("decisions", "rewards") and call.status == 200:
            kind = SINGLE[call.kind]
            answers = call.answer["items"]
            require(len(answers) == len(call.body["items"]), f"call {call.number}: {len(answers)} answers to a batch")
            for body, each in zip(call.body["items"], answers, strict=True):
                answer = each.get("decision") or each.get("reward") or each.get("problem")
                yield Operation(call, kind, body, each["status"], answer, each.get("replayed", False))
        else:
            yield Operation(call, call.kind, call.body, call.status, call.answer, call.replayed)


def check(
    history: Sequence[Call], logs: Mapping[str, Sequence[Row]], settings: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise a `Violation` unless the history is linearizable. ``settings`` are the bodies with which experiments were created."""
    by_name: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations(history):
        by_name[operation.call.experiment].append(operation)
    unanswered: dict[str, list[Call]] = defaultdict(list)
    for call in history:
        if call.responded is None:
            unanswered[call.experiment].append(call)
    for name, rows in logs.items():
        check_answers(rows, by_name[name])
        check_origins(rows, by_name[name], unanswered[name])
        check_order(rows, by_name[name])
        check_reads(name, rows, by_name[name])
        check_choices(name, rows, settings[name])


# --- 1: answers are rows --------------------------------------------------------------------------------------------------


def check_answers(rows: Sequence[Row], done: Iterable[Operation]) -> None:
    """Compare each answer to a write with the row of its number."""
    makers: dict[int, Operation] = {}
    for each in done:
        if each.kind not in ("decide", "reward") or each.status not in DONE:
            continue
        answer = each.answer
        require(
            1 <= answer["seq"] <= len(rows), f"{each}: the log has {len(rows)} events, so an acknowledged one is lost"
        )
        row = rows[answer["seq"] - 1]
        same = (row.id, row.payload.get("arm"), row.time) == (answer["id"], answer["arm"], answer["time"])
        require(same, f"{each}: the log has {row}")
        if each.kind == "decide":
            require(row.kind == "decided", f"{each}: the log has {row}")
            asked = each.body or {}
            require(asked.get("id") in (None, row.id), f"{each}: it asked for another id")
            require(asked.get("context") == row.payload.get("context"), f"{each}: the log has another call's {row}")
            require(asked.get("arm") in (None, row.payload["arm"]), f"{each}: it reported another arm")
            require(asked.get("among") is None or row.payload["arm"] in asked["among"], f"{each}: an arm not asked for")
        else:
            outcome = {"rewarded": "applied", "late": "late"}.get(row.kind)
            values = (each.body["id"], each.body["value"], answer["value"], answer["outcome"])
            require(
                values == (row.id, row.payload.get("value"), row.payload.get("value"), outcome), f"{each}: log {row}"
            )
            require(each.status == (202 if outcome == "late" else 200), f"{each}: wrong status")
        if each.is_new:
            other = makers.setdefault(row.seq, each)
            require(other is each, f"{each}: also {other} was told that it is new")


def check_origins(rows: Sequence[Row], done: Iterable[Operation], unanswered: Iterable[Call]) -> None:
    """Check that each row was asked for, and that batches are stored as a whole or not at all.

    A decision is recognized by its context, which differs from call to call, since not all have an id.
    """
    made = {each.answer["seq"] for each in done if each.is_new}
    stored = {origin: row.seq for row in rows if (origin := _origin_of(row)) is not None}
    decided = {row.id for row in rows if row.kind == "decided"}
    cut_off: set[Any] = set()
    for call in unanswered:
        kind = SINGLE.get(call.kind, call.kind)
        if kind not in ("decide", "reward"):
            continue
        items = call.body["items"] if call.kind in SINGLE else [call.body or {}]
        if kind == "reward":  # those of decisions that do not exist are refused
            items = [item for item in items if item["id"] in decided]
        origins = [_origin(kind, item) for item in items]
        cut_off.update(origins)
        found = [stored[origin] for origin in origins if origin in stored]
        require(
            len(found) in (0, len(items)),
            f"batch {call.number} of {len(items)} is stored in part: {len(found)}, {found}",
        )
        if call.kind == "decisions" and found:
            together = sorted(set(found)) == list(range(min(found), max(found) + 1))
            require(together, f"batch {call.number} is not stored as one: {found}")
    for row in rows:
        origin = _origin_of(row)
        if origin is not None and row.seq not in made:
            require(
                origin in cut_off, f"{row}: no answer says that a call made it, and no call was cut off that could have"
            )


def _origin_of(row: Row) -> Any:
    """Return what tells the call that made a row, or None if the server made it by itself."""
    if row.kind == "decided":
        return _origin("decide", row.payload)
    return _origin("reward", {"id": row.id}) if row.kind in ("rewarded", "late") else None


def _origin(kind: str, body: Mapping[str, Any]) -> Any:
    return (kind, repr(body.get("context"))) if kind == "decide" else (kind, body["id"])


# --- 2: real time ---------------------------------------------------------------------------------------------------------


class Floor:
    """The largest number of an event that clients had been told of, at any moment."""

    def __init__(self, told: Iterable[tuple[int, int]]) -> None:
        """Take pairs of a time and a number."""
        self._times: list[int] = []
        self._largest: list[int] = []
        for time, seq in sorted(told):
            self._times.append(time)
            self._largest.append(max(seq, self._largest[-1] if self._largest else 0))

    def at(self, time: int) -> int:
        """Return the largest number in answers that were read before this time."""
        place = bisect_left(self._times, time)
        return self._largest[place - 1] if place else 0


def check_order(rows: Sequence[Row], done: Sequence[Operation]) -> None:
    """Check that the numbers respect real time."""
    decided = {row.id: row.seq for row in rows if row.kind == "decided"}
    rewarded = {row.id: row for row in rows if row.kind in ("rewarded", "late")}

    def told_of(each: Operation) -> int:
        if each.status == 409:
            require(each.kind == "reward", f"{each}: nobody has used its id for another decision")
            row = rewarded.get(each.body["id"])
            require(row is not None and row.payload["value"] != each.body["value"], f"{each}: the log has {row}")
            assert row is not None
            return row.seq
        if each.kind == "explain" and each.status == 200 and each.answer["reward"] is not None:
            return int(each.answer["reward"]["seq"])
        return int(each.answer["seq"]) if each.status in DONE else 0

    floor = Floor((each.call.responded or 0, told_of(each)) for each in done)
    for each in done:
        least = floor.at(each.call.invoked)
        if each.is_new:
            require(each.answer["seq"] > least, f"{each}: event {least} was acknowledged before the call was sent")
        elif each.status == 404:
            seq = decided.get(each.body["id"], least + 1)
            require(seq > least, f"{each}: the decision is event {seq}, and event {least} was acknowledged before")
        elif each.kind in ("show", "log"):
            require(each.answer["seq"] >= least, f"{each}: a stale read, event {least} was acknowledged before")
        elif each.kind == "explain" and each.answer["reward"] is None:
            row = rewarded.get(each.body["id"])
            require(row is None or row.seq > least, f"{each}: a stale read, the log has {row}")
        else:
            require(each.status in (*DONE, 409), f"{each}: unexpected")


# --- 3: reads -------------------------------------------------------------------------------------------------------------


def check_reads(name: str, rows: Sequence[Row], done: Iterable[Operation]) -> None:
    """Compare what was read with a plain loop over the log up to the number of the answer."""
    reads: dict[int, list[Operation]] = defaultdict(list)
    for each in done:
        if each.status == 200 and each.kind in ("show", "log"):
            reads[each.answer["seq"]].append(each)
        elif each.status == 200 and each.kind == "explain":
            _check_explanation(rows, each)
    most = max(reads, default=0)
    require(
        most <= len(rows), f"{reads.get(most)}: the log has {len(rows)} events, so the read saw one that was not stored"
    )
    model = Model(name)
    for row in rows:
        model.apply(row)
        for each in reads.get(row.seq, ()):
            if each.kind == "show":
                pulls = {arm["arm"]: arm["pulls"] for arm in each.answer["arms"]}
                require(each.answer["counts"] == model.shown(), f"{each}: the log gives {model.shown()}")
                require(
                    +model.pulls == {arm: n for arm, n in pulls.items() if n}, f"{each}: the log gives {model.pulls}"
                )
            else:
                expected = [(r.seq, r.kind, r.id, r.time) for r in rows[each.body["after"] : row.seq]]
                found = [(r["seq"], r["kind"], r["id"], r["time"]) for r in each.answer["rows"]]
                require(
                    found == expected,
                    f"call {each.call.number}: log after {each.body}: {found[-2:]}, not {expected[-2:]}",
                )


def _check_explanation(rows: Sequence[Row], each: Operation) -> None:
    answer = each.answer
    require(answer["seq"] <= len(rows), f"{each}: the decision is lost")
    row = rows[answer["seq"] - 1]
    require((row.kind, row.id, row.payload["arm"]) == ("decided", each.body["id"], answer["arm"]), f"{each}: log {row}")
    told = answer["reward"]
    if told is not None:
        require(told["seq"] <= len(rows), f"{each}: the reward that it tells of is lost")
        reward = rows[told["seq"] - 1]
        require((reward.id, reward.payload.get("value")) == (row.id, told["value"]), f"{each}: the log has {reward}")


# --- 4: choices -----------------------------------------------------------------------------------------------------------


def check_choices(name: str, rows: Sequence[Row], settings: Mapping[str, Any]) -> None:
    """Let a new bandit choose again, and compare its arms with the recorded ones."""
    (policy,) = policies_from(settings.get("policy") or "AdaKLUCB")
    bandit = rb.Bandit(settings["arms"], policy, settings["seed"], minimize=settings.get("minimize", False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the rewards, which are made up
        _choose_again(name, rows, bandit)


def _choose_again(name: str, rows: Sequence[Row], bandit: Any) -> None:
    opened: dict[str, Any] = {}
    for row in rows:
        payload = row.payload
        if row.kind == "decided":
            given = payload.get("given", False)
            decision = bandit.decide(arm=payload["arm"]) if given else bandit.decide(payload.get("among"))
            require(decision.arm == payload["arm"], f"{name}: the model chooses {decision.arm}, the log has {row}")
            opened[row.id] = decision
        elif row.kind == "rewarded" or (row.kind == "expired" and payload.get("value") is not None):
            bandit.reward(opened.pop(row.id), payload["value"])
        elif row.kind == "expired":
            bandit.expire(opened.pop(row.id))

"""Read the answers of the service. One that the service would not give to this call raises `Unexpected`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from robandit_client.errors import (
    AccessDenied,
    Conflict,
    InvalidInput,
    NotFound,
    Overloaded,
    RobanditError,
    ServiceUnavailable,
    formatted,
)
from robandit_client.http import Unexpected
from robandit_client.values import Allocation, Decision, Report, Reward, is_text
from robandit_client.wording import visible

LONGEST_DETAIL = 600  # of a message of the service
_VERSION = re.compile(r"[!#-~]+")  # fits between the quotes of an ETag

_ERRORS: dict[int, type[RobanditError]] = {404: NotFound, 409: Conflict, 429: Overloaded}

_WAYS_OUT = {
    "no-key": "pass a key to Client(url, key)",
    "unknown-key": "check the key that you passed to Client(url, key)",
    "unknown-experiment": "create it with client.create(name, arms)",
    "no-allocation": "use client.experiment(name).decide(context=...)",
}
"""What to do with the client about some codes of the service, whose own advice is for callers over HTTP."""


def decoded(body: bytes) -> Any:
    """Return the value of a body. NaN, infinities and names that occur twice are not JSON of the service."""
    try:
        return json.loads(body, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unexpected(f"not JSON: {visible(body[:60].decode('latin-1')) or 'an empty body'}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def error_of(status: int, problem: Any) -> RobanditError:
    """Return the error that stands for a problem of the service. Its class follows from the status, not the code."""
    fields = _fields(problem)
    detail, code, parameter, rule = (
        text if is_text(text := fields.get(name)) else None for name in ("detail", "code", "parameter", "rule")
    )
    if detail is None or code is None:
        raise Unexpected(f"a problem with the status {status}, without the fields detail and code")
    detail = visible(detail[:LONGEST_DETAIL])
    if code in _WAYS_OUT:
        detail = f"{detail}. In Python: {_WAYS_OUT[code]}"
    if status >= 500:
        return ServiceUnavailable(detail, code=code)
    if status in (401, 403):
        return AccessDenied(detail, parameter="key", code=code)
    return _ERRORS.get(status, InvalidInput)(detail, parameter=parameter, rule=rule, code=code)


def decision_of(answer: Any, experiment: str, id: str, arm: str | None, among: Sequence[str] | None) -> Decision:
    """Return the decision in the answer to a request. A fallback of the service has a new id, and is not stored."""
    fields = _fields(answer)
    fallback = fields.get("fallback", False)
    _check(fields, "fallback", fallback is False or (fallback is True and arm is None), "a boolean")
    _check(fields, "experiment", fields.get("experiment") == experiment, repr(experiment))
    _check(fields, "id", fallback or fields.get("id") == id, repr(id))
    repeat = fields.get("repeat", False)
    _check(fields, "repeat", isinstance(repeat, bool), "a boolean")
    chosen, propensity, time, seq = (fields.get(name) for name in ("arm", "propensity", "time", "seq"))
    allowed = among if arm is None else (arm,)
    _check(fields, "arm", is_text(chosen) and (allowed is None or chosen in allowed), "an arm that the request allows")
    _check(fields, "propensity", propensity is None or _is_number(propensity, 1.0), "a probability or null")
    _check(fields, "time", _is_number(time, 1e18), "a time")
    _check(fields, "seq", fallback or (type(seq) is int and 1 <= seq < 1 << 63), "an integer >= 1")
    number = None if fallback else seq
    return Decision(id, str(chosen), experiment, propensity, float(time), number, fallback, repeat)  # type: ignore[arg-type]


def reward_of(answer: Any, report: Report) -> Reward:
    """Return what became of a reward, from the answer to it."""
    fields = _fields(answer)
    value, outcome = fields.get("value"), fields.get("outcome")
    _check(fields, "experiment", fields.get("experiment") == report.experiment, repr(report.experiment))
    _check(fields, "id", fields.get("id") == report.id, repr(report.id))
    _check(fields, "value", not isinstance(value, bool) and value == report.value, repr(report.value))
    _check(
        fields,
        "outcome",
        outcome in (("applied", "late") if report.part is None else ("added", "late")),
        "how it counts",
    )
    return Reward(report.id, report.experiment, report.value, outcome)  # type: ignore[arg-type]


def failure_of(answer: Any, experiment: str, id: str) -> Reward:
    """Return what became of a failure, from the answer to it. The experiment knows its cost."""
    value = _fields(answer).get("value")
    _check(_fields(answer), "value", _is_number(value, 1e150), "a cost")
    return reward_of(answer, Report(experiment, id, value=value))


def delivery_of(answer: Any, report: Report) -> Decision | Reward:
    """Return what became of a report."""
    if report.is_choice:
        return decision_of(answer, report.experiment, report.id, report.arm, None)
    return reward_of(answer, report)


OUTCOMES = ("learned", "late", "expired", "replayed")


def allocation_of(answer: Any, experiment: str, known: Allocation | None) -> Allocation:
    """Return an allocation, or the known one if the answer is None, because it is still current."""
    if answer is None and known is not None:
        return known
    fields = _fields(answer)
    arms, chances, version, decisions = (fields.get(name) for name in ("arms", "probabilities", "version", "decisions"))
    _check(fields, "experiment", fields.get("experiment") == experiment, repr(experiment))
    _check(fields, "version", is_text(version) and len(version) <= 200 and _VERSION.fullmatch(version), "a version")
    are_arms = isinstance(arms, list) and arms and all(map(is_text, arms)) and len(set(arms)) == len(arms)
    _check(fields, "arms", are_arms, "a list of different arms")
    are_chances = isinstance(chances, list) and all(_is_number(chance, 1.0) for chance in chances)
    is_law = are_chances and len(chances) == len(arms) and abs(sum(chances) - 1.0) < 1e-6  # type: ignore[arg-type]
    _check(fields, "probabilities", is_law, "a probability for each arm, with the sum 1")
    for name in ("made", "valid_for"):
        _check(fields, name, _is_number(fields.get(name), 1e18), "a number of seconds")
    _check(fields, "decisions", type(decisions) is int and decisions >= 1, "an integer >= 1")
    window = fields.get("reward_window")
    _check(fields, "reward_window", window is None or _is_number(window, 1e18), "a number of seconds, or null")
    made, valid_for = float(fields["made"]), float(fields["valid_for"])
    numbers = made, valid_for, int(decisions), None if window is None else float(window)  # type: ignore[arg-type]
    return Allocation(str(version), tuple(arms), tuple(map(float, chances)), *numbers)  # type: ignore[arg-type]


def outcomes_of(answer: Any, size: int) -> tuple[dict[str, int], dict[int, RobanditError]]:
    """Return how many observations of a batch had each outcome, and the errors of those that were refused, by position."""
    fields = _fields(answer)
    counts = {name: fields.get(name) for name in OUTCOMES}
    for name, number in counts.items():
        _check(fields, name, type(number) is int and 0 <= number <= size, "a number of items")
    refused = fields.get("refused")
    _check(fields, "refused", isinstance(refused, list), "a list")
    errors = {}
    for each in map(_fields, refused):  # type: ignore[arg-type]
        i, problem = each.get("index"), _fields(each.get("problem"))
        _check(each, "index", type(i) is int and 0 <= i < size and i not in errors, "the position of an item")
        status = problem.get("status", 400)
        _check(problem, "status", type(status) is int and 400 <= status < 600, "that of an error")
        errors[i] = error_of(status, problem)
    return counts, errors  # type: ignore[return-value]


def items_of(answer: Any, noun: str, readers: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Return what the readers make of the answers to a batch, or the error of an item. ``noun`` is the field to read.

    An item that cannot be read is an error of that item alone: the others count.
    """
    items = _fields(answer).get("items")
    if not isinstance(items, list) or len(items) != len(readers):
        raise Unexpected(f"a batch whose items are not {len(readers):,}")
    return [_readable(item, noun, read) for item, read in zip(items, readers)]


def _readable(item: Any, noun: str, read: Callable[[Any], Any]) -> Any:
    try:
        return _item(_fields(item), noun, read)
    except Unexpected as reason:
        error = ServiceUnavailable(f"an item is not one of the decision service: {reason}; repeat the call later")
        error.__cause__ = reason
        return error


def _item(fields: dict[str, Any], noun: str, read: Callable[[Any], Any]) -> Any:
    status = fields.get("status")
    _check(fields, "status", type(status) is int and (200 <= status < 300 or 400 <= status < 600), "that of an item")
    return read(fields.get(noun)) if status < 300 else error_of(status, fields.get("problem"))  # type: ignore[operator, arg-type]


def standing_of(answer: Any, name: str) -> dict[str, Any]:
    """Return how arms stand, after a check of its name and of the sentence about the leader."""
    fields = _fields(answer)
    _check(fields, "experiment", fields.get("experiment") == name, repr(name))
    _check(fields, "leader", is_text(_fields(fields.get("leader")).get("sentence")), "a leader with a sentence")
    return fields


def explanation_of(answer: Any, name: str, id: str) -> dict[str, Any]:
    """Return a decision with its reasons, after a check of its id and of its arms."""
    fields = _fields(answer)
    _check(fields, "experiment", fields.get("experiment") == name, repr(name))
    _check(fields, "id", fields.get("id") == id, repr(id))
    _check_arms(fields)
    return fields


def experiment_of(answer: Any, name: str) -> dict[str, Any]:
    """Return an experiment, after a check of what the client uses: its name, its arms, and whether it minimises."""
    fields = _fields(answer)
    _check(fields, "name", fields.get("name") == name, repr(name))
    minimize = _fields(fields.get("settings")).get("minimize")
    _check(fields, "settings", isinstance(minimize, bool), "settings that say whether to minimise")
    _check_arms(fields)
    return fields


def _check_arms(fields: dict[str, Any]) -> None:
    arms = fields.get("arms")
    are_arms = isinstance(arms, list) and arms and all(is_text(_fields(each).get("arm")) for each in arms)
    _check(fields, "arms", are_arms, "a list of arms")


def _fields(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise Unexpected(f"{formatted(answer)} is not an object")
    return answer


def _check(fields: dict[str, Any], name: str, is_right: Any, rule: str) -> None:
    if not is_right:
        raise Unexpected(f"{name} = {formatted(fields.get(name))}, not {rule[:100]}")


def _is_number(value: Any, most: float) -> bool:
    return type(value) in (int, float) and 0.0 <= value <= most

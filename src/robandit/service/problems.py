"""Errors as answers: `application/problem+json` (RFC 9457), with a status and a code for programs."""

from __future__ import annotations

import traceback
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from robandit.errors import (
    Conflict,
    DecisionError,
    HorizonReached,
    InvalidInput,
    NotFound,
    Overloaded,
    RobanditError,
    StoreError,
    StoreUnavailable,
    UnavailableArm,
    UnknownArm,
)
from robandit.wording import visible

LONGEST_DETAIL = 600
MEDIA = b"application/problem+json"


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why a call failed."""

    title: Annotated[str, Meta(description="The kind of problem, for people.")]
    status: Annotated[int, Meta(ge=400, le=599, description="The HTTP status.")]
    detail: Annotated[str, Meta(description="What was wrong, the rule, and the way out.")]
    code: Annotated[str, Meta(description="The kind of problem, for programs: a fixed word.")]
    parameter: Annotated[str | None, Meta(description="The invalid field, if there is one.")] = None
    rule: Annotated[str | None, Meta(description="What the field must be.")] = None


class Refusal(Exception):
    """A call that the HTTP layer itself refuses."""

    def __init__(self, code: str, detail: str, headers: tuple[tuple[bytes, bytes], ...] = (), **fields: Any) -> None:
        """Store what the answer needs. ``code`` is one of `STATUS`."""
        super().__init__(detail)
        self.problem = problem(code, detail, **fields)
        self.headers = headers


STATUS: dict[str, tuple[int, str]] = {
    "malformed": (400, "Malformed request"),
    "no-key": (401, "No valid key"),
    "forbidden": (403, "Not allowed"),
    "not-found": (404, "Not found"),
    "no-such-method": (405, "Method not allowed"),
    "conflict": (409, "Conflict"),
    "too-large": (413, "Request too large"),
    "invalid": (422, "Invalid value"),
    "too-many": (429, "Too many requests"),
    "internal": (500, "Internal error"),
    "unavailable": (503, "Not available"),
}
"""The status and the title of each code."""

RETRY = ((b"retry-after", b"1"),)

# The first class that fits counts.
_CODES: tuple[tuple[type[RobanditError], str], ...] = (
    (NotFound, "not-found"),
    (Conflict, "conflict"),
    (Overloaded, "too-many"),
    (HorizonReached, "conflict"),
    (UnavailableArm, "conflict"),
    (DecisionError, "conflict"),
    (UnknownArm, "invalid"),
    (InvalidInput, "invalid"),
)


def problem(code: str, detail: str, **fields: Any) -> Problem:
    """Return a problem. Characters that cannot be seen are escaped."""
    status, title = STATUS[code]
    texts = {name: text and visible(text) for name, text in fields.items()}
    return Problem(title=title, status=status, detail=visible(detail)[:LONGEST_DETAIL], code=code, **texts)


def problem_of(error: Exception) -> tuple[Problem, tuple[tuple[bytes, bytes], ...]]:
    """Return the problem that stands for an error, and headers. An unexpected error is printed, with its trace."""
    if isinstance(error, Refusal):
        return error.problem, error.headers
    if isinstance(error, StoreUnavailable):
        detail = "The store cannot be reached, or is busy. A call that writes may have been stored: repeat it with the same id."
        return problem("unavailable", detail), RETRY
    if isinstance(error, StoreError):  # its text names files, which are none of the caller's business
        return problem(
            "unavailable", "The store cannot be used: try again later. The log of the server has the reason."
        ), RETRY
    for kind, code in _CODES:
        if isinstance(error, kind):
            fields = {"parameter": error.parameter, "rule": error.rule}
            return problem(code, str(error), **fields), RETRY if code == "too-many" else ()
    traceback.print_exception(error)
    return problem("internal", "The server met an unexpected error; its log has the details."), ()

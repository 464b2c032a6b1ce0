"""Errors as answers: `application/problem+json` (RFC 9457), with a status and a code for programs."""

from __future__ import annotations

import traceback
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from robandit.errors import RobanditError, StoreError, StoreUnavailable
from robandit.wording import visible

LONGEST_DETAIL = 600
MEDIA = b"application/problem+json"


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why a call failed."""

    title: Annotated[str, Meta(description="The kind of problem, for people.")]
    status: Annotated[int, Meta(ge=400, le=599, description="The HTTP status.")]
    detail: Annotated[str, Meta(description="What was wrong, the rule, and the way out.")]
    code: Annotated[str, Meta(description="The kind of problem, for programs: a word of the table of problems.")]
    parameter: Annotated[str | None, Meta(description="The invalid field, if there is one.")] = None
    rule: Annotated[str | None, Meta(description="What the field must be.")] = None


class Refusal(Exception):
    """A call that the HTTP layer itself refuses."""

    def __init__(self, code: str, detail: str, headers: tuple[tuple[bytes, bytes], ...] = (), **fields: Any) -> None:
        """Store what the answer needs. ``code`` is one of `CODES`."""
        super().__init__(detail)
        self.problem = problem(code, detail, **fields)
        self.headers = headers


class Code(NamedTuple):
    """What a code stands for."""

    status: int
    about: str
    """When it occurs, and what to do."""


TITLES = {
    400: "Malformed request",
    401: "No valid key",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Request too large",
    422: "Invalid value",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}
CODES = {
    "malformed": Code(400, "The path, the query or the body cannot be read. Correct the request."),
    "no-key": Code(401, "The call has no key. Send one."),
    "unknown-key": Code(401, "The server does not know the key. Check it."),
    "ended-key": Code(401, "The key is revoked or has expired. Ask for a new one."),
    "forbidden": Code(403, "The key lacks the scope, or is for other experiments. Use another key."),
    "not-found": Code(404, "There is no such path, arm or key."),
    "unknown-experiment": Code(404, "There is no experiment of this name. Create it."),
    "unknown-decision": Code(404, "The experiment has no decision with this id."),
    "no-such-method": Code(405, "The path does not have this method. The header Allow lists its methods."),
    "conflict": Code(
        409, "The id or name was used with other content, or the arm's state forbids the call. Do not repeat it."
    ),
    "unknown-allocation": Code(
        409,
        "The version is not that of one of the newest allocations since the last reset, so the decision cannot be counted.",
    ),
    "too-old": Code(409, "Whether the decision of an edge was counted is not known any more. Do not repeat it."),
    "no-allocation": Code(
        409,
        "The experiment has features: its probabilities differ from context to context. Ask the server for each decision.",
    ),
    "paused": Code(409, "The experiment is paused. Resume it."),
    "no-arm": Code(409, "All arms, or all that the call allows, are paused or retired. Resume or add one."),
    "horizon-reached": Code(
        409, "The policy was made for a number of decisions, and has made them. Create another experiment."
    ),
    "too-large": Code(413, "The body is larger than 4 MiB, or a call in it has too many parts. Send smaller batches."),
    "invalid": Code(422, "A field breaks its rule: see parameter and rule. Nothing was changed."),
    "propensity": Code(422, "The propensity is not the probability of the arm in the allocation."),
    "too-many": Code(
        429,
        "Too many calls with this key, or too many calls or events wait. Repeat the call after the seconds in Retry-After.",
    ),
    "too-many-open": Code(429, "max_open decisions wait for their rewards. Send rewards, then repeat the call."),
    "broken": Code(
        500,
        "The policy of the experiment cannot use its state any more. Correct the policy, and restart the server: the log is kept.",
    ),
    "internal": Code(
        500,
        "An unexpected error. The server prints it to standard error. The call may have been stored: repeat it with the same id.",
    ),
    "unavailable": Code(
        503,
        "The server is starting or overloaded, or its store has failed. Repeat the call with the same id after the seconds in "
        "Retry-After.",
    ),
}
"""Every code of a problem. Programs depend on them: they stay, and their status, too."""

RETRY = ((b"retry-after", b"1"),)


def wrong_value(name: str, given: str, rule: str) -> Refusal:
    """Return the refusal of a value that breaks a rule."""
    return Refusal("invalid", f"{name} = {given[:40]!r} must be {rule}", parameter=name, rule=rule)


def problem(code: str, detail: str, **fields: Any) -> Problem:
    """Return a problem. Characters that cannot be seen are escaped."""
    status = CODES[code].status
    texts = {name: text and visible(text) for name, text in fields.items()}
    return Problem(title=TITLES[status], status=status, detail=visible(detail)[:LONGEST_DETAIL], code=code, **texts)


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
    if isinstance(error, RobanditError) and error.code in CODES:
        known = problem(error.code, str(error), parameter=error.parameter, rule=error.rule)
        return known, RETRY if known.status == 429 else ()
    traceback.print_exception(error)
    return problem("internal", "The server met an unexpected error; its log has the details."), ()

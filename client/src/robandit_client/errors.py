"""Every error that the client raises on purpose. `robandit.errors` has the same classes, and those of the other components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from robandit_client.wording import visible

__all__ = [
    "AccessDenied",
    "BatchError",
    "Conflict",
    "InvalidInput",
    "InvalidReward",
    "NotFound",
    "Overloaded",
    "RobanditError",
    "ServiceUnavailable",
    "Undelivered",
]


class RobanditError(Exception):
    """The base class of every error that Robandit raises on purpose."""

    code: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        parameter: str | None = None,
        value: Any = None,
        rule: str | None = None,
        code: str | None = None,
    ) -> None:
        """Store the message, and the parameter, value and rule that it is about. ``code`` replaces that of the class."""
        super().__init__(message)
        self.parameter = parameter
        self.value = value
        self.rule = rule
        if code is not None:
            self.code = code


class InvalidInput(RobanditError, ValueError):
    """A value breaks a rule."""

    code = "invalid"


class AccessDenied(InvalidInput):
    """The decision service does not accept the key, or the key does not allow the call. ``parameter`` is ``"key"``."""

    code = "forbidden"


class InvalidReward(InvalidInput):
    """A reward that no policy can learn from: NaN, infinite, not a number, or too large or small to square."""


class NotFound(RobanditError):
    """The decision service has no experiment, decision or key of this name."""

    code = "not-found"


class Conflict(RobanditError):
    """An id or a name was used before with other content, or the state of an experiment does not allow the call."""

    code = "conflict"


class Overloaded(RobanditError):
    """The decision service, or its client, cannot take more work now. The same call may succeed later."""

    code = "too-many"


class ServiceUnavailable(RobanditError):
    """The decision service cannot be reached, or did not answer in time. The call may have been stored: repeat it with its id."""

    code = "unavailable"


class Undelivered(RobanditError):
    """A client of the decision service has reports that are not delivered, or were rejected. ``reports`` are these."""

    def __init__(self, message: str = "", *, reports: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.reports = tuple(reports)


class BatchError(RobanditError):
    """The decision service rejected items of a batch. ``answers`` has an answer or an error for each item, in order."""

    def __init__(self, message: str = "", *, answers: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.answers = tuple(answers)


def formatted(value: Any) -> str:
    """Return the repr of a value for a message: on one line, printable, at most 80 characters."""
    try:
        # Names may differ only by spaces; the repr of other values may have several lines.
        text = repr(value) if type(value) is str else " ".join(repr(value).split())
    except (ValueError, RecursionError, MemoryError):  # an integer of thousands of digits, or a deeply nested list
        return "a value that is too large to print"
    except Exception:
        return f"{type(value).__name__[:60]} object whose repr fails"
    return visible(text if len(text) <= 80 else f"{text[:60]} ... {text[-10:]}")

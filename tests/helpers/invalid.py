"""Checks of errors by what they carry (parameter, value, rule and code) instead of by their English."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from robandit.errors import InvalidInput, RobanditError

Error = TypeVar("Error", bound=RobanditError)


@contextmanager
def raises(kind: type[Error], *, match: str | None = None, **carried: Any) -> Iterator[pytest.ExceptionInfo[Error]]:
    """Expect an error with these attributes; of the rule, a part is enough. ``match`` is for tests of the prose itself."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    for name, expected in carried.items():
        given = getattr(caught.value, name)
        fits = expected in (given or "") if name == "rule" else given == expected
        assert fits, f"{name} is {given!r}, not {expected!r}: {caught.value}"


def assert_invalid(call: Callable[[], Any], parameter: str, rule: str) -> InvalidInput:
    """The call raises `InvalidInput` about this parameter, the rule contains this text, and the message has both."""
    with raises(InvalidInput, parameter=parameter, rule=rule) as caught:
        call()
    error = caught.value
    assert f"{parameter} = " in str(error)
    assert f" must be {error.rule}" in str(error)
    return error

"""Checks of errors by what they carry instead of by their English."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from robandit.errors import InvalidInput


def assert_invalid(call: Callable[[], Any], parameter: str, rule: str) -> InvalidInput:
    """The call raises `InvalidInput` about this parameter, and the rule contains this text."""
    with pytest.raises(InvalidInput) as caught:
        call()
    error = caught.value
    assert error.parameter == parameter, str(error)
    assert error.rule is not None
    assert rule in error.rule, str(error)
    assert f"{parameter} = " in str(error)
    assert f" must be {error.rule}" in str(error)
    return error

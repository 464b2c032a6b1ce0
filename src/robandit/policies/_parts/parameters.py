"""Checks of the parameters that many policies need."""

from __future__ import annotations

from functools import partial
from typing import Any

from robandit.validation import integer, order, positive


def check_known(policy: Any) -> None:
    """Raise `InvalidInput` unless the policy's ``eps``, ``u``, ``v`` and ``horizon``, if it has them, are valid or None."""
    checks: dict[str, Any] = {"eps": order, "u": positive, "v": positive, "horizon": partial(integer, least=1)}
    for name, check in checks.items():
        if (value := getattr(policy, name, None)) is not None:
            check(value, name, owner=type(policy).__name__)

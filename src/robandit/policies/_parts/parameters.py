"""Checks of the parameters that many policies need."""

from __future__ import annotations

from typing import Any

from robandit.validation import integer, order, positive


def check_known(policy: Any) -> None:
    """Raise `InvalidInput` unless the policy's ``eps``, ``u``, ``v`` and ``horizon``, where it has them, are valid or None."""
    owner = type(policy).__name__
    for name in ("eps", "u", "v", "horizon"):
        value = getattr(policy, name, None)
        if value is None:
            continue
        if name == "eps":
            order(value, owner=owner)
        elif name == "horizon":
            integer(value, name, 1, owner=owner)
        else:
            positive(value, name, owner=owner)

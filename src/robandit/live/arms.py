"""The names and states of arms. Names are checked, so that they can be looked up, saved and loaded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

import msgspec

from robandit.inputs import listed
from robandit.validation import invalid, plain

Arm: TypeAlias = Any
RULE = "a string, a finite number of up to 64 bits, None, or a tuple of them"

State: TypeAlias = Literal["active", "paused", "retired"]
ACTIVE: Final = "active"
PAUSED: Final = "paused"
RETIRED: Final = "retired"


def checked_arms(arms: Iterable[Arm], parameter: str = "arms") -> tuple[Arm, ...]:
    """Return the names as a tuple. Raise `InvalidInput` unless there are one or more different names that can be saved."""
    names = tuple(checked_name(arm) for arm in listed(parameter, arms, "a list of names, such as ['a', 'b']"))
    if not names:
        raise invalid(parameter, [], "a list of at least one arm")
    if len(set(names)) < len(names):
        hint = "pass the unique() of the column" if hasattr(arms, "unique") else "1, 1.0 and True are equal in Python"
        raise invalid("arm", Counter(names).most_common(1)[0][0], "given once", hint=hint)
    return names


def checked_name(arm: Arm) -> Arm:
    """Return a name in hashable form. Raise `InvalidInput` if it cannot be saved."""
    name = hashable(arm)
    _check_saveable(name)
    return name


def hashable(arm: Arm) -> Arm:
    """Return a name in hashable form: NumPy scalars become Python values, and lists (from files) become tuples."""
    if isinstance(arm, (list, tuple)):
        try:
            return tuple(hashable(a) for a in arm)
        except Exception as error:  # RecursionError, or an error of the caller's own type
            raise invalid("arm", arm, RULE) from error
    return arm if isinstance(arm, Fraction) else plain(arm)  # a float would be a different name


def _check_saveable(arm: Arm) -> None:
    if isinstance(arm, tuple):
        for part in arm:
            _check_saveable(part)
        return
    saveable = arm is None or isinstance(arm, (str, int, float))
    try:
        msgspec.msgpack.encode(arm)  # rejects integers beyond 64 bits, lone surrogates, and most subclasses
    except Exception:
        saveable = False
    if not saveable or (isinstance(arm, float) and not math.isfinite(arm)):
        raise invalid("arm", arm, RULE)

"""Records for hooks, whose fields are named where they are made: the parameters ``p`` and the state ``s``."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

from robandit.kernel.lazy import lazy_state
from robandit.policies.index import no_pulls


def params_of(**numbers: float) -> Any:
    """Return parameters with these numbers."""
    return _record("Params", tuple(numbers))(*numbers.values())


def state_of(**arrays: Any) -> Any:
    """Return a state with these arrays. Their order is a saved format."""
    return _record("State", tuple(arrays))(*arrays.values())


def index_state(count: int, /, **arrays: Any) -> Any:
    """Return the state of an index policy with ``count`` arms: these arrays, the pulls, and the lazy arg-max."""
    lines, lead = lazy_state(count)
    return state_of(**arrays, pulls=no_pulls(count), lines=lines, lead=lead)


@cache
def _record(name: str, fields: tuple[str, ...]) -> Any:
    return cast(Any, NamedTuple)(name, [(field, Any) for field in fields])

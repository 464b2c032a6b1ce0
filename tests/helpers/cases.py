"""Many small cases in one test: a test of its own costs more than such a case, for pytest, for xdist and for the report."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def cases(names: str | Iterable[str], values: Iterable[Any], ids: Any = None) -> Callable[[Any], Any]:
    """Do as `pytest.mark.parametrize` does, in a loop. The error of a case names it; the cases after it do not run."""
    keys = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    rows = [_row(value, len(keys)) for value in values]

    def decorated(function: Any) -> Any:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def run(*args: Any, **given: Any) -> None:
            for number, row in enumerate(rows):
                try:
                    function(*args, **given, **dict(zip(keys, row, strict=True)))
                except BaseException as error:
                    error.add_note(f"case {number}: {', '.join(keys)} = {row!r}"[:1_000])
                    raise

        rest = [each for name, each in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorated


def _row(value: Any, count: int) -> tuple[Any, ...]:
    if hasattr(value, "marks"):  # pytest.param
        assert not value.marks, "a case has no marks"
        return tuple(value.values)
    return (value,) if count == 1 else tuple(value)

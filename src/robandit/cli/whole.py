"""Whole numbers as options: 1.5 is refused, where it would be rounded otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

__all__ = ["Number", "Whole", "Wholes"]


def _one(kind: Any, tokens: Sequence[Token]) -> int:
    return _several(kind, tokens)[0]


def _several(kind: Any, tokens: Sequence[Token]) -> list[int]:
    for token in tokens:
        try:
            int(token.value)
        except ValueError:
            raise ValueError(f"{token.value!r} is not a whole number") from None
    return [int(token.value) for token in tokens]


Number = Annotated[int, Parameter(converter=_one)]
Whole = Annotated[int | None, Parameter(converter=_one)]
Wholes = Annotated[list[int] | None, Parameter(converter=_several)]

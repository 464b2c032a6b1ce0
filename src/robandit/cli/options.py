"""Kinds of options: whole numbers, of which 1.5 is none (it would be rounded otherwise), and flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

__all__ = ["Flag", "Number", "Numbers", "Whole", "Wholes"]


def _one(kind: Any, tokens: Sequence[Token]) -> int:
    return _several(kind, tokens)[0]


def _several(kind: Any, tokens: Sequence[Token]) -> list[int]:
    for token in tokens:
        try:
            int(token.value)
        except ValueError:
            raise ValueError(f"{token.value!r} is not a whole number") from None
    return [int(token.value) for token in tokens]


Flag = Annotated[bool, Parameter(show_default=False)]  # that it is off unless given goes without saying
Number = Annotated[int, Parameter(converter=_one)]
Numbers = Annotated[tuple[int, ...], Parameter(converter=lambda kind, tokens: tuple(_several(kind, tokens)))]
Whole = Annotated[int | None, Parameter(converter=_one)]
Wholes = Annotated[list[int] | None, Parameter(converter=_several)]

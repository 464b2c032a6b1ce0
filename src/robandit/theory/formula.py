"""The notation in which policies state their rates, such as ``sum (u/gap)^(1/eps) log T``, as a function of its names.

::

    sum of terms        a + b - c
    product             a b / c: a product needs no sign, and goes from left to right with the quotient
    power               a^b
    log x, sqrt(x)      of the next number, name or pair of parentheses: log T^2 is (log T)^2
    sum a b / c         the product that follows, added up over the arms with a positive gap
    names               one word, or one of `PHRASES`

Names that stand inside a sum may be one number for all arms, or one for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

__all__ = ["COPIES", "PER_ARM", "PHRASES", "Formula", "parsed"]

PHRASES = ("P(X != 0)", "KLinf(arm, best mean)", "min gap", "f(T)", "g(T)")
"""Names of more than a word."""
PER_ARM = ("gap", "P(X != 0)", "KLinf(arm, best mean)", "variance", "Var", "tau")
"""Names that differ from arm to arm: their last axis is the arm."""
COPIES = "copies"
"""How many arms each place of that axis stands for; 1 if it is not said."""

Values = Mapping[str, Floats]
Part = Callable[[Values], Floats]
_TOKEN = re.compile("|".join([*map(re.escape, PHRASES), r"\d+(?:\.\d+)?", r"[A-Za-z]+", r"[-+/^()]", r"\S"]))
_FUNCTIONS: dict[str, Any] = {"log": np.log, "sqrt": np.sqrt}
_ENDS = ("", ")", "+", "-")


class Formula(NamedTuple):
    """A text with its meaning."""

    text: str
    names: frozenset[str]
    """What must be known."""
    value: Part
    """From an array for each name."""


def parsed(text: str) -> Formula:
    """The meaning of a formula.

    >>> import numpy as np
    >>> formula = parsed("sum (u/gap)^2 log K + 3 u/K u")
    >>> sorted(formula.names)
    ['K', 'gap', 'u']
    >>> float(formula.value({"u": np.array(2.0), "K": np.array(np.e), "gap": np.array([1.0, 0.5])}))
    24.4145533
    """
    parser = _Parser(text)
    value = parser.terms()
    if parser.next():
        raise InvalidInput(f"{text!r} cannot be read as a rate: {parser.next()!r} is not expected there")
    return Formula(text, frozenset(parser.names), value)


class _Parser:
    """Recursive descent: a method for each line of the notation."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.names = text, _TOKEN.findall(text), set[str]()

    def next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def terms(self) -> Part:
        parts = [(1.0, self.product())]
        while self.next() in ("+", "-"):
            sign = 1.0 if self.tokens.pop(0) == "+" else -1.0
            parts.append((sign, self.product()))
        return lambda values: sum((sign * part(values) for sign, part in parts), np.zeros(()))

    def product(self) -> Part:
        if self.next() == "sum":
            self.tokens.pop(0)
            self.names.add("gap")  # they say how many arms there are
            return _over_arms(self.product())
        parts = [(1, self.power())]
        while self.next() not in _ENDS:
            divided = self.next() == "/"
            if divided:
                self.tokens.pop(0)
            parts.append((-1 if divided else 1, self.power()))
        first, *rest = (part for _, part in parts)
        signs = [sign for sign, _ in parts[1:]]

        def value(values: Values) -> Floats:
            result = first(values)
            for sign, part in zip(signs, rest, strict=True):
                result = result * part(values) if sign > 0 else result / part(values)
            return result

        return value

    def power(self) -> Part:
        base = self.primary()
        if self.next() != "^":
            return base
        self.tokens.pop(0)
        exponent = self.primary()
        return lambda values: np.asarray(base(values) ** exponent(values))

    def primary(self) -> Part:
        token = self.tokens.pop(0) if self.tokens else ""
        if token == "(":
            inner = self.terms()
            if self.next() != ")":
                raise InvalidInput(f"{self.text!r} cannot be read as a rate: a parenthesis is not closed")
            self.tokens.pop(0)
            return inner
        if token in _FUNCTIONS:
            argument, function = self.primary(), _FUNCTIONS[token]
            return lambda values: np.asarray(function(argument(values)))
        if token[:1].isdigit() or token == "e":
            number = np.asarray(np.e if token == "e" else float(token))
            return lambda _: number
        if token in PHRASES or (token.isalpha() and token != "sum"):
            self.names.add(token)
            return lambda values: values[token]
        raise InvalidInput(
            f"{self.text!r} cannot be read as a rate: {token or 'its end'!r} stands where a number should be"
        )


def _over_arms(term: Part) -> Part:
    """The sum over the last axis. A negative term says nothing about its arm: the bound does not reach there."""

    def value(values: Values) -> Floats:
        wide = {name: value if name in PER_ARM else value[..., np.newaxis] for name, value in values.items()}
        terms = term(wide)
        terms = np.broadcast_to(terms, np.broadcast_shapes(terms.shape, values["gap"].shape))
        return np.asarray(np.where(terms < 0.0, np.nan, terms).sum(axis=-1) * values.get(COPIES, 1.0))

    return value

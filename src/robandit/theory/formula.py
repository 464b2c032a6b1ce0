"""A parser for the notation of policies' rates, such as ``sum (u/gap)^(1/eps) log T``; it returns a function of the names.

::

    sum of terms        a + b - c
    product             a b / c: products need no sign; products and quotients are evaluated from left to right
    power               a^b
    log x, sqrt(x)      of the next number, name or parenthesis: log T^2 is (log T)^2
    sum a b / c         the sum of the product that follows over the arms with a positive gap
    names               one word, or one of `PHRASES`

A name inside a sum may have one value for all arms, or one per arm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

PHRASES = ("P(X != 0)", "KLinf(arm, best mean)", "min gap", "f(T)", "g(T)")
"""Names of more than one word."""
PER_ARM = ("gap", "P(X != 0)", "KLinf(arm, best mean)", "variance", "Var", "tau")
"""Names with a value per arm: their last axis is the arm."""
COPIES = "copies"
"""The number of arms that each entry of that axis represents; 1 by default."""

Values = Mapping[str, Floats]
Part = Callable[[Values], Floats]
_TOKEN = re.compile("|".join([*map(re.escape, PHRASES), r"\d+(?:\.\d+)?", r"[A-Za-z]+", r"[-+/^()]", r"\S"]))
_FUNCTIONS: dict[str, Any] = {"log": np.log, "sqrt": np.sqrt}
_ENDS = ("", ")", "+", "-")


class Formula(NamedTuple):
    """A parsed formula."""

    text: str
    names: frozenset[str]
    """The names that need a value."""
    value: Part
    """Evaluates the formula, from an array for each name."""


def parsed(text: str) -> Formula:
    """Parse a formula.

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
        raise parser.error(f"{parser.next()!r} is not expected there")
    return Formula(text, frozenset(parser.names), value)


class _Parser:
    """Recursive descent, with a method for each line of the notation."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.names = text, _TOKEN.findall(text), set[str]()

    def error(self, reason: str) -> InvalidInput:
        return InvalidInput(f"{self.text!r} is not a rate: {reason}")

    def next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, token: str) -> bool:
        """Return whether the next token is this one, and skip it if so."""
        return self.next() == token and bool(self.tokens.pop(0))

    def terms(self) -> Part:
        parts = [(1.0, self.product())]
        while self.next() in ("+", "-"):
            sign = 1.0 if self.tokens.pop(0) == "+" else -1.0
            parts.append((sign, self.product()))
        return lambda values: sum((sign * part(values) for sign, part in parts), np.zeros(()))

    def product(self) -> Part:
        if self.take("sum"):
            self.names.add("gap")  # the gaps give the number of arms
            return _over_arms(self.product())
        first, rest = self.power(), []
        while self.next() not in _ENDS:
            rest.append((self.take("/"), self.power()))

        def value(values: Values) -> Floats:
            result = first(values)
            for divided, part in rest:
                result = result / part(values) if divided else result * part(values)
            return result

        return value

    def power(self) -> Part:
        base = self.primary()
        if not self.take("^"):
            return base
        exponent = self.primary()
        return lambda values: np.asarray(base(values) ** exponent(values))

    def primary(self) -> Part:
        if self.take("("):
            inner = self.terms()
            if not self.take(")"):
                raise self.error("a parenthesis is not closed")
            return inner
        token = self.tokens.pop(0) if self.tokens else ""
        if token in _FUNCTIONS:
            argument, function = self.primary(), _FUNCTIONS[token]
            return lambda values: np.asarray(function(argument(values)))
        if token[:1].isdigit() or token == "e":
            number = np.asarray(np.e if token == "e" else float(token))
            return lambda _: number
        if token in PHRASES or (token.isalpha() and token != "sum"):
            self.names.add(token)
            return lambda values: values[token]
        raise self.error(f"{token or 'its end'!r} is where a number should be")


def _over_arms(term: Part) -> Part:
    """Sum over the last axis. A negative term makes the sum NaN: the bound does not apply to that arm."""

    def value(values: Values) -> Floats:
        wide = {name: value if name in PER_ARM else value[..., np.newaxis] for name, value in values.items()}
        terms = term(wide)
        terms = np.broadcast_to(terms, np.broadcast_shapes(terms.shape, values["gap"].shape))
        return np.asarray(np.where(terms < 0.0, np.nan, terms).sum(axis=-1) * values.get(COPIES, 1.0))

    return value

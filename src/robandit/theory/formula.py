"""A parser for the rates of policies, such as ``sum (u/gap)^(1/eps) log T``. It returns a function of the names.

::

    sum of terms        a + b - c
    product             a b / c, without a sign for products, evaluated from left to right
    power               a^b
    log x, sqrt(x)      functions of the next number, name or parenthesis: log T^2 is (log T)^2
    sum a b / c         the sum of the product over the arms with a positive gap
    names               one word, or one of `PHRASES`

A name inside a sum may have one value for all arms, or one value per arm.
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
"""Names with one value per arm, along the last axis."""
COPIES = "copies"
"""The number of arms that each entry of the last axis represents; 1 by default."""

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
    """A function that evaluates the formula. It takes an array for each name."""


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
    """A recursive-descent parser, with one method per line of the notation."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.names = text, _TOKEN.findall(text), set[str]()

    def error(self, reason: str) -> InvalidInput:
        return InvalidInput(f"{self.text!r} is not a rate: {reason}")

    def next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, token: str) -> bool:
        """Return whether the next token equals ``token``, and skip it if so."""
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
        raise self.error(f"a number or name is expected in place of {token or 'its end'!r}")


def _over_arms(term: Part) -> Part:
    """Sum over the last axis. A negative term makes the sum NaN, because the bound does not apply to that arm."""

    def value(values: Values) -> Floats:
        wide = {name: value if name in PER_ARM else value[..., np.newaxis] for name, value in values.items()}
        terms = term(wide)
        terms = np.broadcast_to(terms, np.broadcast_shapes(terms.shape, values["gap"].shape))
        return np.asarray(np.where(terms < 0.0, np.nan, terms).sum(axis=-1) * values.get(COPIES, 1.0))

    return value

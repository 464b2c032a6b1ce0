"""A parser for the rates of policies, such as ``sum (u/gap)^(1/eps) log T``. A parsed rate has a value.

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

import operator
import re
from collections.abc import Mapping
from functools import reduce
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
Part = tuple[Any, ...]
"""A part of a formula: its kind, then its tokens and parts."""
_TOKEN = re.compile("|".join([*map(re.escape, PHRASES), r"\d+(?:\.\d+)?", r"[A-Za-z]+", r"[-+/^()]", r"\S"]))
_FUNCTIONS: dict[str, Any] = {"log": np.log, "sqrt": np.sqrt}
_ENDS = ("", ")", "+", "-")


class Formula(NamedTuple):
    """A parsed formula."""

    text: str
    names: frozenset[str]
    """The names that need a value."""
    part: Part

    def value(self, values: Values) -> Floats:
        """Evaluate the formula. It takes an array for each name."""
        return _value(self.part, values)


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
    part = parser.terms()
    if parser.next():
        raise parser.error(f"{parser.next()!r} is not expected there")
    return Formula(text, frozenset(parser.names), part)


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
        parts = [("+", self.product())]
        while self.next() in ("+", "-"):
            parts.append((self.tokens.pop(0), self.product()))
        return ("terms", *parts) if len(parts) > 1 else parts[0][1]

    def product(self) -> Part:
        if self.take("sum"):
            self.names.add("gap")  # the gaps give the number of arms
            return "over arms", self.product()
        factors = [self.power()]
        while self.next() not in _ENDS:
            if self.take("/"):
                factors = [("quotient", _product(factors), self.power())]
            else:
                factors.append(self.power())
        return _product(factors)

    def power(self) -> Part:
        base = self.primary()
        return ("power", base, self.primary()) if self.take("^") else base

    def primary(self) -> Part:
        if self.take("("):
            inner = self.terms()
            if not self.take(")"):
                raise self.error("a parenthesis is not closed")
            return "group", inner
        token = self.tokens.pop(0) if self.tokens else ""
        if token in _FUNCTIONS:
            return "call", token, self.primary()
        if token[:1].isdigit() or token == "e":
            return "number", token
        if token in PHRASES or (token.isalpha() and token != "sum"):
            self.names.add(token)
            return "name", token
        raise self.error(f"a number or name is expected in place of {token or 'its end'!r}")


def _product(factors: list[Part]) -> Part:
    return ("product", *factors) if len(factors) > 1 else factors[0]


def _value(part: Part, values: Values) -> Floats:
    match part:
        case "number", token:
            return np.asarray(np.e if token == "e" else float(token))
        case "name", token:
            return values[token]
        case "call", function, argument:
            return np.asarray(_FUNCTIONS[function](_value(argument, values)))
        case "power", base, exponent:
            return np.asarray(_value(base, values) ** _value(exponent, values))
        case "product", *factors:
            return reduce(operator.mul, (_value(factor, values) for factor in factors))
        case "quotient", above, below:
            return _value(above, values) / _value(below, values)
        case "terms", *terms:
            return reduce(operator.add, (_value(term, values) * (1.0 if sign == "+" else -1.0) for sign, term in terms))
        case "over arms", term:
            wide = {name: value if name in PER_ARM else value[..., np.newaxis] for name, value in values.items()}
            each = _value(term, wide)
            each = np.broadcast_to(each, np.broadcast_shapes(each.shape, values["gap"].shape))
            # A negative term makes the sum NaN, because the bound does not apply to that arm.
            return np.asarray(np.where(each < 0.0, np.nan, each).sum(axis=-1) * values.get(COPIES, 1.0))
    return _value(part[1], values)  # a group

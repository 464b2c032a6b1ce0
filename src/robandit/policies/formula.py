r"""A parser for the rates of policies, such as ``sum (u/gap)^(1/eps) log T``. A parsed rate has a value, and is written in TeX.

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
from typing import Any, NamedTuple, Protocol

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

PHRASES = ("P(X != 0)", "KLinf(arm, best mean)", "min gap", "f(T)", "g(T)")
"""Names of more than one word."""
PER_ARM = ("gap", "P(X != 0)", "KLinf(arm, best mean)", "variance", "Var", "tau")
"""Names with one value per arm, along the last axis."""
COPIES = "copies"
"""The number of arms that each entry of the last axis represents; 1 by default."""
SYMBOLS = {
    "K": "K",
    "KLinf(arm, best mean)": r"\mathrm{KL_{inf}}(\nu_i, \mu_\star)",
    "P(X != 0)": r"P(X_i \neq 0)",
    "T": "T",
    "Var": "V_i",
    "e": "e",
    "eps": r"\varepsilon",
    "f(T)": "f(T)",
    "g(T)": "g(T)",
    "gap": r"\Delta_i",
    "kappa": r"\kappa",
    "min gap": r"\Delta_{\min}",
    "range": "R",
    "rho": r"\rho",
    "scale": r"\sigma",
    "tau": r"\tau_i",
    "u": "u",
    "v": "v",
    "variance": "V_i",
}
"""Names in TeX. The site of a repository reads Markdown first: a backslash must precede a letter, and an underscore follow one."""

Values = Mapping[str, Floats]
_TOKEN = re.compile("|".join([*map(re.escape, PHRASES), r"\d+(?:\.\d+)?", r"[A-Za-z]+", r"[-+/^()]", r"\S"]))
_FUNCTIONS: dict[str, Any] = {"log": np.log, "sqrt": np.sqrt}
_ENDS = ("", ")", "+", "-")


class Part(Protocol):
    """A part of a formula."""

    def value(self, values: Values) -> Floats:
        """Evaluate it."""

    def tex(self) -> str:
        """Write it in TeX, on one line: quotients have a slash, except where that would be ambiguous."""


class Formula(NamedTuple):
    """A parsed formula."""

    text: str
    names: frozenset[str]
    """The names that need a value."""
    part: Part

    def value(self, values: Values) -> Floats:
        """Evaluate the formula. It takes an array for each name."""
        return self.part.value(values)

    def tex(self) -> str:
        r"""Write the formula in TeX, without signs for the mathematics around it.

        >>> print(parsed("sum (u/gap)^(1/eps) log T").tex())
        \sum_i (u/\Delta_i)^{1/\varepsilon} \log T
        """
        try:
            return _displayed(self.part)
        except KeyError as error:
            raise InvalidInput(f"{self.text!r}: {error.args[0]!r} has no symbol; add it to formula.SYMBOLS") from None


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
        return _Terms(parts) if len(parts) > 1 else parts[0][1]

    def product(self) -> Part:
        if self.take("sum"):
            self.names.add("gap")  # the gaps give the number of arms
            return _OverArms(self.product())
        factors = [self.power()]
        while self.next() not in _ENDS:
            if self.take("/"):
                factors = [_Quotient(_product(factors), self.power())]
            else:
                factors.append(self.power())
        return _product(factors)

    def power(self) -> Part:
        base = self.primary()
        return _Power(base, self.primary()) if self.take("^") else base

    def primary(self) -> Part:
        if self.take("("):
            inner = self.terms()
            if not self.take(")"):
                raise self.error("a parenthesis is not closed")
            return _Group(inner)
        token = self.tokens.pop(0) if self.tokens else ""
        if token in _FUNCTIONS:
            return _Call(token, self.primary())
        if token[:1].isdigit() or token == "e":
            return _Number(token)
        if token in PHRASES or (token.isalpha() and token != "sum"):
            self.names.add(token)
            return _Name(token)
        raise self.error(f"a number or name is expected in place of {token or 'its end'!r}")


class _Number(NamedTuple):
    token: str

    def value(self, values: Values) -> Floats:
        return np.asarray(np.e if self.token == "e" else float(self.token))

    def tex(self) -> str:
        return self.token


class _Name(NamedTuple):
    token: str

    def value(self, values: Values) -> Floats:
        return values[self.token]

    def tex(self) -> str:
        return SYMBOLS[self.token]


class _Group(NamedTuple):
    inner: Part

    def value(self, values: Values) -> Floats:
        return self.inner.value(values)

    def tex(self) -> str:
        return f"({self.inner.tex()})"


class _Call(NamedTuple):
    function: str
    argument: Part

    def value(self, values: Values) -> Floats:
        return np.asarray(_FUNCTIONS[self.function](self.argument.value(values)))

    def tex(self) -> str:
        if self.function == "sqrt":
            return rf"\sqrt{{{_bare(self.argument)}}}"
        space = "" if isinstance(self.argument, _Group) else " "
        return rf"\{self.function}{space}{self.argument.tex()}"


class _Power(NamedTuple):
    base: Part
    exponent: Part

    def value(self, values: Values) -> Floats:
        return np.asarray(self.base.value(values) ** self.exponent.value(values))

    def tex(self) -> str:
        base = self.base.tex()
        return f"{f'({base})' if isinstance(self.base, _Call) else base}^{{{_bare(self.exponent)}}}"


class _Product(NamedTuple):
    factors: list[Part]

    def value(self, values: Values) -> Floats:
        result = self.factors[0].value(values)
        for part in self.factors[1:]:
            result = result * part.value(values)
        return result

    def tex(self, fraction: str = r"\frac") -> str:
        result = ""
        for part, following in zip(self.factors, [*self.factors[1:], None], strict=True):
            text = part.fraction(fraction) if isinstance(part, _Quotient) else part.tex()
            if following is not None and _is_open(part) and not _is_log(following):
                text = f"({text})"  # log T e^u would be read as log(T e^u)
            result += rf" \cdot {text}" if result and isinstance(part, _Number) else f" {text}"
        return result.strip()


class _Quotient(NamedTuple):
    above: Part
    below: Part

    def value(self, values: Values) -> Floats:
        return self.above.value(values) / self.below.value(values)

    def tex(self) -> str:
        if isinstance(self.above, _Quotient) or _is_open(self.above):
            return self.fraction(r"\frac")
        return f"{self.above.tex()}/{self.below.tex()}"

    def fraction(self, command: str) -> str:
        return rf"{command}{{{_bare(self.above)}}}{{{_bare(self.below)}}}"


class _Terms(NamedTuple):
    parts: list[tuple[str, Part]]
    """Each term, and its sign."""

    def value(self, values: Values) -> Floats:
        result = np.zeros(())
        for sign, part in self.parts:
            result = result + part.value(values) if sign == "+" else result - part.value(values)
        return result

    def tex(self) -> str:
        return _joined(self.parts, lambda part: part.tex())


class _OverArms(NamedTuple):
    term: Part

    def value(self, values: Values) -> Floats:
        """Sum over the last axis. A negative term makes the sum NaN, because the bound does not apply to that arm."""
        wide = {name: value if name in PER_ARM else value[..., np.newaxis] for name, value in values.items()}
        terms = self.term.value(wide)
        terms = np.broadcast_to(terms, np.broadcast_shapes(terms.shape, values["gap"].shape))
        return np.asarray(np.where(terms < 0.0, np.nan, terms).sum(axis=-1) * values.get(COPIES, 1.0))

    def tex(self) -> str:
        return rf"\sum_i {self.term.tex()}"


def _product(factors: list[Part]) -> Part:
    return _Product(factors) if len(factors) > 1 else factors[0]


def _displayed(part: Part) -> str:
    """Write a formula outside parentheses and exponents, where quotients are fractions of full size."""
    match part:
        case _Terms(parts):
            return _joined(parts, _displayed)
        case _OverArms(term):
            return rf"\sum_i {_displayed(term)}"
        case _Product():
            return part.tex(r"\dfrac")
        case _Quotient():
            return part.fraction(r"\dfrac")
    return part.tex()


def _joined(parts: list[tuple[str, Part]], tex: Callable[[Part], str]) -> str:
    return " ".join([tex(parts[0][1]), *(f"{sign} {tex(part)}" for sign, part in parts[1:])])


def _bare(part: Part) -> str:
    """Write it without the parentheses around it."""
    return part.inner.tex() if isinstance(part, _Group) else part.tex()


def _is_log(part: Part) -> bool:
    return isinstance(part, _Call) and part.function == "log"


def _is_open(part: Part) -> bool:
    """Return whether it ends with a logarithm without parentheses, which would seem to include what follows."""
    if isinstance(part, _Product):
        return _is_open(part.factors[-1])
    return isinstance(part, _Call) and part.function == "log" and not isinstance(part.argument, _Group)

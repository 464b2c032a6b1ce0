"""The declarations of features: numbers and categories."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from robandit.errors import InvalidInput, formatted
from robandit.hints import close, guided, question
from robandit.validation import finite, flag, integer, invalid, items_of, mapping, plain, positive

MOST_BUCKETS = 64


@guided
@dataclass(frozen=True, kw_only=True)
class Number:
    """A feature that is a number: one column, (value - center) / scale.

    Parameters
    ----------
    center, scale
        Declare both if you know them. None: the median and the spread (the interquartile range / 1.349) of the first 100 values,
        which are then fixed for ever. Until then, the column is 0: the number is not learned from.
    log
        Whether to take the logarithm of the value first, which must then be above 0. Use it for sizes, such as token counts.
    missing
        Whether the value may be missing (absent, None or NaN). A second column then says so. Otherwise, this is an error.

    Examples
    --------
    >>> import robandit as rb
    >>> rb.Number(center=6.0, scale=1.5, log=True)
    Number(center=6.0, scale=1.5, log=True, missing=False)
    """

    center: float | None = None
    scale: float | None = None
    log: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        _set(self, log=flag(self.log, "log", owner="Number"), missing=flag(self.missing, "missing", owner="Number"))
        if (self.center is None) != (self.scale is None):
            lacking = "center" if self.center is None else "scale"
            raise invalid(lacking, None, "given, if the other one is", owner="Number", hint="declare both, or neither")
        if self.center is not None:
            _set(self, center=finite(self.center, "center", owner="Number"))
            _set(self, scale=positive(self.scale, "scale", owner="Number"))

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as JSON-able data."""
        return {"type": "number", **vars(self)}


@guided
@dataclass(frozen=True)
class Category:
    """A feature that is one of several values: one column per value, which is 1 for this value and 0 for others.

    Parameters
    ----------
    values
        The values: strings, integers or booleans. Any other value is an error.
    buckets
        In place of ``values``: the number of columns to which values are hashed, at most 64. The hash is the same in all processes
        and versions. Values that share a column share what is learned.
    missing
        Whether the value may be missing (absent, None or NaN). One more column then says so. Otherwise, this is an error.

    Examples
    --------
    >>> import robandit as rb
    >>> rb.Category(["eu", "us"])
    Category(values=('eu', 'us'), buckets=None, missing=False)
    >>> rb.Category(buckets=32).bucket("ann"), rb.Category(buckets=32).bucket("bob")
    (16, 28)
    """

    values: tuple[str | int, ...] | Iterable[str | int] | None = None
    buckets: int | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        _set(self, missing=flag(self.missing, "missing", owner="Category"))
        if (self.values is None) == (self.buckets is None):
            rule = "given without buckets, or left out with them"
            raise invalid("values", self.values, rule, owner="Category", hint="such as Category(['eu', 'us'])")
        if self.buckets is not None:
            _set(self, buckets=integer(self.buckets, "buckets", 1, MOST_BUCKETS, owner="Category"))
            return
        values = items_of(self.values, "values", "values of a category", owner="Category")
        values = tuple(checked_value(value, f"values[{i}]") for i, value in enumerate(values))
        if not values or len({(type(value), value) for value in values}) < len(values):
            raise invalid("values", values, "one or more different values", owner="Category")
        _set(self, values=values)

    def bucket(self, value: str | int) -> int:
        """Return the column that a value is hashed to, from 0."""
        assert self.buckets is not None
        text = f"{type(value).__name__}:{value}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % self.buckets

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as JSON-able data."""
        values = self.values if self.values is None else list(self.values)
        return {"type": "category", "values": values, "buckets": self.buckets, "missing": self.missing}


Feature: TypeAlias = Number | Category
_TYPES: dict[str, Any] = {"number": Number, "category": Category}


def checked_features(features: Any) -> dict[str, Feature]:
    """Return declarations by name, given as such or as the data of their ``to_dict``."""
    rule = 'a mapping from names to features, such as {"region": Category(["eu", "us"])}'
    given = mapping(features, "features", rule)
    if not given:
        raise invalid("features", features, rule, hint="leave it out for a bandit without contexts")
    for name in given:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise invalid("features", name, "names that are printable strings")
    return {name: _feature(name, feature) for name, feature in given.items()}


def _feature(name: str, given: Any) -> Feature:
    if isinstance(given, (Number, Category)):
        return given
    what = f"features[{formatted(name)}]"
    rule = 'a Number or a Category, or an object such as {"type": "number", "log": true}'
    if not isinstance(given, Mapping) or given.get("type") not in list(_TYPES):
        hint = "write the parentheses: Number()" if given in (Number, Category) else ""
        raise invalid(what, given, rule, hint=hint)
    cls = _TYPES[given["type"]]
    fields = {key: value for key, value in given.items() if key != "type"}
    for key in fields:
        if key not in cls.__dataclass_fields__:
            known = ", ".join(cls.__dataclass_fields__)
            hint = question(close(str(key), cls.__dataclass_fields__))
            raise InvalidInput(f"{what} has no field {formatted(key)}{hint}: a {given['type']} has {known}")
    try:
        feature: Feature = cls(**fields)
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}", parameter=what, value=error.value, rule=error.rule) from error
    return feature


def checked_value(value: Any, name: str) -> str | int:
    """Return the value of a category."""
    value = plain(value)
    if not isinstance(value, (str, int)) or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        rule = "a string, an integer of at most 64 bits or a boolean"
        raise invalid(name, value, rule, hint="declare a Number for other numbers")
    return value


def _set(feature: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(feature, name, value)

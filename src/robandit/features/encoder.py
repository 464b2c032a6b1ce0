"""The encoding of contexts: from the declared features of a decision to the vector x that a policy learns from.

x[0] is the intercept, 1. Then come the columns of each feature, in the order of the declarations. The scale of a number that does
not declare it is that of its first `FIRST` values, and never changes again: the x of past decisions would not fit another one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from robandit.errors import InvalidInput, formatted
from robandit.features.declared import Category, Feature, Number, checked_features, checked_value
from robandit.hints import close, question
from robandit.kernel.types import Floats
from robandit.validation import finite, invalid, mapping, plain, positive

FIRST = 100
"""Values of a number that decide its scale."""
MOST_COLUMNS = 64
"""Columns of all features, without the intercept."""
FARTHEST = 1e4  # scaled numbers beyond it would leave too few digits for the others


class Scale(NamedTuple):
    """The scale of a number: x = (value - center) / scale."""

    center: float
    scale: float


class Encoder:
    """Encodes contexts as vectors. It changes only when a number gets its scale."""

    def __init__(self, features: Mapping[str, Any]) -> None:
        """Take declarations, or the data of their ``to_dict``."""
        self.features: dict[str, Feature] = checked_features(features)
        self.scales: dict[str, Scale] = {}
        """The scales of numbers that have one."""
        self.first: dict[str, list[float]] = {}
        """The values so far of the numbers that have none, in the order of the declarations."""
        columns = ["intercept"]
        self._places: list[tuple[str, Feature, int]] = []
        self._values: dict[str, dict[Any, int]] = {}
        for name, feature in self.features.items():
            self._places.append((name, feature, len(columns)))
            columns += _columns(name, feature)
            if isinstance(feature, Category) and feature.values is not None:
                self._values[name] = {(type(value), value): i for i, value in enumerate(feature.values)}
            elif isinstance(feature, Number):
                if feature.center is None or feature.scale is None:
                    self.first[name] = []
                else:
                    self.scales[name] = Scale(feature.center, feature.scale)
        self.columns = tuple(columns)
        """The names of the columns of x."""
        if len(set(columns)) < len(columns):
            twice = next(column for column in columns if columns.count(column) > 1)
            raise invalid("features", list(self.features), f"features whose columns differ; two are named {twice!r}")
        if len(columns) - 1 > MOST_COLUMNS:
            rule = f"features with at most {MOST_COLUMNS} columns"
            hint = f"these have {len(columns) - 1}; hash categories to fewer buckets"
            raise invalid("features", list(self.features), rule, hint=hint)

    def encode(self, context: Any) -> tuple[Floats, tuple[float | None, ...]]:
        """Return x, and the values of the numbers that have no scale yet, for `collect`; None for those that are missing.

        >>> from robandit.features import Category, Encoder, Number
        >>> encoder = Encoder({"tokens": Number(center=100.0, scale=50.0), "region": Category(["eu", "us"])})
        >>> encoder.encode({"tokens": 200, "region": "us"})[0].tolist()
        [1.0, 2.0, 0.0, 1.0]
        """
        given = context if type(context) is dict else mapping(context, "context", "a mapping from features to values")
        if given.keys() - self.features.keys():
            self._refuse_unknown(given)
        x = np.zeros(len(self.columns))
        x[0] = 1.0
        raw: list[float | None] = []
        for name, feature, place in self._places:
            value = given.get(name)
            if value is None or value != value:  # NaN
                if not feature.missing:
                    raise invalid(
                        "context",
                        given,
                        f"a mapping with a value for {formatted(name)}",
                        hint="or declare missing=True",
                    )
                x[place + _width(feature) - 1] = 1.0
                if name in self.first:
                    raw.append(None)
            elif isinstance(feature, Category):
                x[place + self._position(name, feature, value)] = 1.0
            else:
                number = _number(name, feature, value)
                if name in self.first:
                    raw.append(number)
                else:
                    center, scale = self.scales[name]
                    x[place] = z = (number - center) / scale
                    if not -FARTHEST <= z <= FARTHEST:
                        rule = f"within {FARTHEST:g} scales of its center, {center:g}"
                        raise invalid(_of(name), value, rule, hint="declare a larger scale, or log=True")
        return x, tuple(raw)

    @property
    def groups(self) -> dict[str, range]:
        """The columns of each feature."""
        return {name: range(place, place + _width(feature)) for name, feature, place in self._places}

    def contrasts(self, used: Floats) -> Floats:
        """Return one row c for each column but the intercept: c' theta is the effect of the column.

        That of a value of a category is its difference from the average of the other values, since the intercept may hold what all
        share. ``used`` is the number of decisions with each column, which are the weights of that average.
        """
        rows = np.eye(len(self.columns))
        for name, columns in self.groups.items():
            if isinstance(self.features[name], Category) and len(columns) > 1:
                for column in columns:
                    others = [other for other in columns if other != column]
                    weights = used[others] if used[others].any() else np.ones(len(others))
                    rows[column, others] = -weights / weights.sum()
        return rows[1:]

    def collect(self, raw: Sequence[float | None]) -> None:
        """Take in values that `encode` returned."""
        for values, value in zip(self.first.values(), raw, strict=True):
            if value is not None:
                values.append(value)

    def due(self) -> tuple[str, Scale] | None:
        """Return a number that has its first values but no scale yet, and its scale; None if there is none."""
        ready = ((name, scale_of(values[:FIRST])) for name, values in self.first.items() if len(values) >= FIRST)
        return next(ready, None)

    def set_scale(self, name: str, scale: Scale) -> None:
        """Fix the scale of a number."""
        if name not in self.first:
            rule = "a number without a scale"
            raise invalid("feature", name, rule, hint=f"those are {', '.join(self.first) or 'none'}")
        self.scales[name] = Scale(finite(scale[0], "center"), positive(scale[1], "scale"))
        del self.first[name]

    def _position(self, name: str, feature: Category, value: Any) -> int:
        value = checked_value(value, _of(name))
        if feature.buckets is not None:
            return feature.bucket(value)
        position = self._values[name].get((type(value), value))
        if position is None:
            known = [str(each) for each in feature.values or ()]
            rule = f"one of {', '.join(known[:20])}{', ...' * (len(known) > 20)}"
            hint = question(close(value, known)).strip("; ()") if isinstance(value, str) else ""
            raise invalid(_of(name), value, rule, hint=hint or "list it, or declare buckets")
        return position

    def _refuse_unknown(self, given: Mapping[Any, Any]) -> None:
        name = next(name for name in given if name not in self.features)
        known = ", ".join(self.features)
        hint = question(close(name, self.features)) if isinstance(name, str) else ""
        message = f"context: feature {formatted(name)} is not declared{hint}: there are {known}"
        raise InvalidInput(message, parameter="context", value=name, rule=f"one of {known}")


def _columns(name: str, feature: Feature) -> list[str]:
    if isinstance(feature, Number):
        columns = [name]
    elif feature.buckets is None:
        columns = [f"{name}={value}" for value in feature.values or ()]
    else:
        columns = [f"{name}#{i}" for i in range(feature.buckets)]
    return columns + [f"{name} is missing"] * feature.missing


def _width(feature: Feature) -> int:
    return len(_columns("", feature))


def _number(name: str, feature: Number, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)):
        raise invalid(_of(name), value, "a number", hint="declare a Category for booleans")
    number = finite(plain(value), _of(name))
    if not feature.log:
        return number
    if number <= 0.0:
        raise invalid(_of(name), value, "above 0, because its logarithm is used", hint="or declare log=False")
    return math.log(number)


def scale_of(values: Sequence[float]) -> Scale:
    """Return the median, and the interquartile range / 1.349; the standard deviation, or 1, if it is 0."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return Scale(middle, (high - low) / 1.349 or float(np.std(values)) or 1.0)


def _of(name: str) -> str:
    return f"context[{formatted(name)}]"

"""Guardrails: limits on metrics of each arm, such as the rate of errors. An arm that breaks one is paused.

What counts as a break is decided by the e-process of `robandit.anytime.bernoulli`, so it may be looked at after every outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

import msgspec

from robandit import validation
from robandit.hints import close
from robandit.kernel.loops import LARGEST_REWARD
from robandit.wording import share

LONGEST_NAME = 100
MOST_METRICS = 20
METRIC = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{1,{LONGEST_NAME}}}")


class Guardrail(msgspec.Struct, frozen=True):
    """A limit on a metric of each arm. An arm that breaks it is paused until it is resumed by hand.

    Parameters
    ----------
    metric
        The name of the metric.
    at_most
        Without ``quantile``: the largest acceptable mean of a metric whose values are 0 or 1, or between, such as an error rate.
        With ``quantile``: the largest acceptable quantile.
    quantile
        Such as 0.95, for a limit on the 95 % quantile of any numbers.
    alpha
        The probability with which an arm that keeps the limit is ever paused, over all arms together: each gets ``alpha`` / arms.

    Examples
    --------
    >>> import robandit as rb
    >>> print(rb.Guardrail("error", at_most=0.05))
    error at most 5 %
    >>> print(rb.Guardrail("latency_ms", quantile=0.95, at_most=2000))
    latency_ms above 2000 in at most 5 %
    """

    metric: str
    at_most: float
    quantile: float | None = None
    alpha: float = 0.05

    def __post_init__(self) -> None:
        """Check the parameters."""
        keep = partial(msgspec.structs.force_setattr, self)
        keep("metric", checked_metric(self.metric))
        keep("alpha", validation.probability(self.alpha, "alpha", owner="Guardrail"))
        if self.quantile is None:
            hint = "such as 0.05 for 5 %; a limit on other numbers needs a quantile, such as quantile=0.95"
            ends = {"open_low": True, "open_high": True, "owner": "Guardrail", "hint": hint}
            keep("at_most", validation.within(self.at_most, "at_most", 0.0, 1.0, **ends))  # type: ignore[arg-type]
        else:
            keep("quantile", validation.probability(self.quantile, "quantile", owner="Guardrail"))
            keep("at_most", validation.finite(self.at_most, "at_most", owner="Guardrail"))

    @property
    def limit(self) -> float:
        """The largest acceptable share of violations."""
        return self.at_most if self.quantile is None else round(1.0 - self.quantile, 12)

    def violation(self, value: float) -> float:
        """Return how much a value of the metric counts, from 0 to 1."""
        return value if self.quantile is None else float(value > self.at_most)

    def __str__(self) -> str:
        """Return the guardrail in words."""
        above = "" if self.quantile is None else f" above {self.at_most:g} in"
        return f"{self.metric}{above} at most {100.0 * self.limit:g} %"


class Broken(msgspec.Struct, frozen=True):
    """A guardrail that an arm broke, with the numbers at that time."""

    guardrail: Guardrail
    share: float
    """The mean of the violations."""
    count: int
    """The number of outcomes."""
    log_e: float
    """The logarithm of the e-process."""

    def __str__(self) -> str:
        """Return the numbers in words, such as "error 9.1 % of 146, at most 5 %"."""
        rail = self.guardrail
        what = rail.metric if rail.quantile is None else f"{rail.metric} above {rail.at_most:g} in"
        return f"{what} {share(self.share)} of {self.count:,}, at most {100.0 * rail.limit:g} %"


def checked_metric(name: object) -> str:
    """Return the name of a metric, if it is valid."""
    rule = f"a string of 1 to {LONGEST_NAME} characters, without control characters"
    if not isinstance(name, str) or not METRIC.fullmatch(name):
        raise validation.invalid("metric", name, rule)
    return name


def checked_metrics(metrics: Iterable[str] | None, guardrails: Iterable[Guardrail] | None) -> tuple[str, ...]:
    """Return the names of the declared metrics, with those that have a guardrail. Raise `InvalidInput` if one is given twice."""
    given = [checked_metric(each) for each in validation.items_of(metrics or (), "metrics", "names")]
    rails = validation.items_of(guardrails or (), "guardrails", "Guardrail(...)")
    hint = 'such as Guardrail("error", at_most=0.05)'
    for i, each in enumerate(rails):
        validation.instance(each, Guardrail, f"guardrails[{i}]", "a Guardrail", hint=hint)
    for name, items in (("metrics", given), ("guardrails", rails)):
        for i, item in enumerate(items):
            if item in items[:i]:
                raise validation.invalid(f"{name}[{i}]", item, "given once")
    names = tuple(dict.fromkeys([*given, *(each.metric for each in rails)]))
    if len(names) > MOST_METRICS:
        raise validation.invalid("number of metrics", len(names), f"at most {MOST_METRICS}")
    return names


def checked_values(given: object, names: tuple[str, ...], guardrails: Iterable[Guardrail]) -> dict[str, float]:
    """Return the metrics of one reward as floats. True and False count as 1 and 0."""
    values = validation.mapping(given, "metrics", 'a mapping from names to numbers, such as {"error": 0}')
    checked: dict[str, float] = {}
    for name, value in values.items():
        if name not in names:
            meant = close(name, names) if isinstance(name, str) else []
            listed = ", ".join(map(repr, names)) or "empty: no metrics are declared"
            hint = f"did you mean {meant[0]!r}?" if meant else "declare it in the setting metrics"
            raise validation.invalid("metrics", name, f"one of {listed}", hint=hint)
        number = validation.plain(value)
        if type(number) in (bool, int, float) and abs(number) <= LARGEST_REWARD:  # the usual case
            checked[name] = float(number)
        else:
            checked[name] = validation.within(number, f"metrics[{name!r}]", -LARGEST_REWARD, LARGEST_REWARD)
    for rail in guardrails:
        if rail.quantile is None and not 0.0 <= checked.get(rail.metric, 0.0) <= 1.0:
            rule, hint = "from 0 to 1, because its guardrail limits its mean", "limit other numbers by a quantile"
            raise validation.invalid(f"metrics[{rail.metric!r}]", checked[rail.metric], rule, hint=hint)
    return checked

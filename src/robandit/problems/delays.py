"""Delays of rewards: how many further decisions are made before a reward is known.

The reward of decision t (from 0) is known before decision t + 1 + delay. A delay of 0 is the usual bandit.

>>> from robandit.problems import delays
>>> delays.pareto(median=300)
delays.pareto(median=300.0, tail=1.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from robandit.errors import InvalidInput, excerpt
from robandit.hints import guided
from robandit.kernel.random import hashed
from robandit.kernel.types import Ints, UInts
from robandit.validation import choice, integer, invalid, mapping, plain, positive

__all__ = ["Delay", "batches", "constant", "delay_of", "geometric", "pareto"]


@dataclass(frozen=True, repr=False)
class Delay:
    """A law of delays, an immutable value. `constant`, `geometric`, `pareto` and `batches` make one."""

    kind: str
    parameters: tuple[tuple[str, float], ...]

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return f"delays.{self.kind}({', '.join(f'{name}={value!r}' for name, value in self.parameters)})"

    def drawn(self, horizon: int, stream: UInts) -> Ints:
        """Return the delay of each decision until the horizon. Delays beyond the horizon are equal to it.

        ``stream`` holds random words; the first is used.
        """
        given, times = dict(self.parameters), np.arange(horizon)
        if self.kind == "constant":
            delays = np.full(horizon, given["decisions"])
        elif self.kind == "batches":
            delays = given["size"] - 1 - times % given["size"]
        else:
            # Not from NumPy's Generator, which does not promise the same numbers in its next version.
            words = hashed(times.astype(np.uint64) + stream[0]) >> np.uint64(11)
            exponential = -np.log((words.astype(np.float64) + 1.0) * 2.0**-53)
            with np.errstate(over="ignore"):
                if self.kind == "geometric":
                    delays = exponential / math.log1p(1.0 / given["mean"])
                else:
                    delays = given["median"] * np.exp((exponential - math.log(2.0)) / given["tail"])
        return cast("Ints", np.minimum(delays, horizon).astype(np.int64))

    def to_dict(self) -> dict[str, Any]:
        """Return the delay as plain JSON data."""
        return {"kind": self.kind, **dict(self.parameters)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Delay:
        """Return the delay that `to_dict` wrote."""
        given = mapping(data, "delay", "an object with a kind and its parameters")
        make = KINDS[choice(given.pop("kind", None), "kind", KINDS, owner="delay")]
        try:
            return make(**given)
        except TypeError as error:
            raise InvalidInput(f"the delay {excerpt(data)} has other parameters than delays.{make.__name__}") from error


@guided
def constant(decisions: int) -> Delay:
    """Return a delay that is the same for all rewards."""
    return Delay("constant", (("decisions", integer(decisions, "decisions", 0)),))


@guided
def geometric(mean: float) -> Delay:
    """Return delays with a geometric law on 0, 1, 2, ... with this mean."""
    return Delay("geometric", (("mean", positive(mean, "mean", hint="use delay=0 for no delay")),))


@guided
def pareto(median: float, tail: float = 1.0) -> Delay:
    """Return delays with a Pareto law, rounded down. With ``tail`` <= 1 their mean is infinite."""
    return Delay("pareto", (("median", positive(median, "median")), ("tail", positive(tail, "tail"))))


@guided
def batches(size: int) -> Delay:
    """Return delays such that all rewards of ``size`` consecutive decisions come together, after the last of them."""
    return Delay("batches", (("size", integer(size, "size", 1)),))


KINDS: dict[str, Callable[..., Delay]] = {make.__name__: make for make in (constant, geometric, pareto, batches)}


def delay_of(value: Any) -> Delay:
    """Return a delay. An integer stands for a constant one.

    >>> delay_of(10)
    delays.constant(decisions=10)
    """
    if isinstance(value, Delay):
        return value
    if isinstance(plain(value), int):
        return constant(integer(value, "delay", 0))
    hint = "such as robandit.problems.delays.pareto(median=300)"
    raise invalid("delay", value, "an integer >= 0 or a delay", hint=hint)

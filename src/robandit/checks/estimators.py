"""Checks that every robust mean must pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from robandit.estimators import Estimate
from robandit.kernel.types import Floats
from robandit.laws import Gaussian, Law
from robandit.laws.base import checked_law
from robandit.validation import finite, flag, integer, invalid, mapping

FAILURE = 1e-6  # the probability with which the coverage check may reject a correct estimator
CLOSE = 1e-9  # relative tolerance for two computations of the same number
SHIFT = 1000.0  # in units of the spread
SCALE = 7.0


class _Subject(NamedTuple):
    """The estimator with its parameters, the claims about it, and the samples to test it on."""

    name: str
    estimator: Callable[..., Any]
    parameters: dict[str, Any]
    law: Law
    shift: bool
    scales: Mapping[str, float] | None
    size: int
    replications: int
    seed: int

    def sample(self, *shape: int) -> Floats:
        """Return a batch of samples of the law."""
        return self.law.sample(math.prod(shape) * self.size, self.seed).reshape(*shape, self.size)

    def fields(self, x: Any, **changes: Any) -> dict[str, Any]:
        """Return the numbers of the estimate of a sample or batch, by name."""
        return _fields(self.name, self.estimator(x, **(self.parameters | changes)))


def check_estimator(
    estimator: Callable[..., Any],
    parameters: Mapping[str, Any] | None = None,
    *,
    law: Law | None = None,
    shift: bool = False,
    scales: Mapping[str, float] | None = None,
    size: int = 400,
    replications: int = 400,
    seed: int = 0,
) -> None:
    """Run every check that a robust mean must pass. An AssertionError names the failed check and the reason.

    Bounds are ordered, the same input gives the same answer and is not changed, shapes and types are right for samples, batches and
    every axis, and NaN, infinities and empty samples raise a ValueError that names them. The interval contains the law's mean as
    often as its delta says. By the binomial law a correct estimator fails this for at most 1e-6 of all seeds.

    Parameters
    ----------
    estimator
        A function ``estimator(x, axis=-1, **parameters)`` that returns an `Estimate` or numbers.
    parameters
        Arguments of the function.
    law, size, replications, seed
        Parameters of the samples. The estimator's assumption must hold for the law. None: the standard Gaussian law.
    shift
        Whether adding a constant to the sample must add it to the value.
    scales
        If given, multiplying a sample by s must multiply the value by s, with each named parameter times s to its power (v: 2).

    Examples
    --------
    >>> from robandit.checks import check_estimator
    >>> from robandit.estimators import catoni_mean, sample_mean
    >>> check_estimator(catoni_mean, {"v": 1.0}, shift=True, scales={"v": 2})
    >>> def hopeful(x, axis=-1):
    ...     return sample_mean(x, v=0.01, axis=axis)  # the variance is 1
    >>> check_estimator(hopeful)
    Traceback (most recent call last):
    AssertionError: hopeful: 260 of 400 intervals missed the mean 0.0; at delta = 0.05 at most 44 may...
    """
    if not callable(estimator):
        raise invalid("estimator", estimator, "a function")
    law = Gaussian() if law is None else checked_law(law, "law")
    parameters = {} if parameters is None else mapping(parameters, "parameters", "a mapping from names to values")
    scales = None if scales is None else mapping(scales, "scales", "a mapping from parameters to powers")
    for key, power in (scales or {}).items():
        if key not in parameters:
            raise invalid("scales", key, "a mapping from names of parameters to powers")
        finite(power, f"scales[{key!r}]")
        finite(parameters[key], f"parameters[{key!r}]")
    inner = estimator.func if isinstance(estimator, partial) else estimator
    name = str(getattr(inner, "__name__", repr(estimator)))
    numbers = integer(size, "size", 2), integer(replications, "replications", 1), integer(seed, "seed")
    subject = _Subject(name, estimator, parameters, law, flag(shift, "shift"), scales, *numbers)
    for check in _CHECKS:
        check(subject)


def _fields(name: str, answer: Any) -> dict[str, Any]:
    """Return the fields of an answer by name. A plain number is a value without bounds."""
    if not isinstance(answer, Estimate):
        return {"value": answer}
    lower, value, upper, delta = answer.lower, answer.value, answer.upper, answer.delta
    ordered = np.all(lower <= value) and np.all(value <= upper)
    assert ordered, f"{name}: not {lower} <= {value} <= {upper}"
    unbounded = bool(np.all(np.isinf(lower) & np.isinf(upper)))
    if delta is None:
        assert unbounded, f"{name}: bounds {lower} and {upper} without a delta"
    else:
        assert 0.0 < delta < 1.0, f"{name}: delta = {delta} is not a probability"
        assert not unbounded, f"{name}: delta = {delta} although both bounds are infinite"
    assert answer.assumed, f"{name}: `assumed` is empty: it must state the assumption of the bounds"
    numbers = {field: getattr(answer, field) for field in ("value", "lower", "upper", "share_trimmed", "threshold")}
    return {field: number for field, number in numbers.items() if number is not None} | {"n": answer.n, "delta": delta}


def _agree(first: dict[str, Any], second: dict[str, Any], spread: float) -> bool:
    """Return whether two answers are equal up to rounding."""

    def same(one: Any, other: Any) -> bool:
        if one is None or other is None:
            return one is other
        return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=CLOSE, atol=CLOSE * spread)

    return first.keys() == second.keys() and all(same(first[field], second[field]) for field in first)


def _spread(x: Floats) -> float:
    return float(np.abs(x - np.median(x)).max()) or 1.0


def check_types(s: _Subject) -> None:
    """Check that one sample or list gives floats, that the answer is reproducible, and that the input is unchanged."""
    x = s.sample()
    before = x.copy()
    answer = s.fields(x)
    value = answer["value"]
    assert isinstance(value, float), f"{s.name}: the value of one sample is {type(value).__name__}, not a float"
    assert math.isfinite(value), f"{s.name}: the value of a finite sample is {value}"
    assert answer.get("n", s.size) == s.size, f"{s.name}: n is {answer['n']} for {s.size} values"
    assert x.tobytes() == before.tobytes(), f"{s.name}: the input was changed"
    assert s.fields(x) == answer, f"{s.name}: the same sample gave another answer"
    assert _agree(s.fields(x.tolist()), answer, _spread(x)), f"{s.name}: a list and an array differ"


def check_batches(s: _Subject) -> None:
    """Check that a batch gives arrays of its shape with the answers of its samples, along any axis."""
    batch = s.sample(2, 3)
    answers = s.fields(batch)
    for field in answers.keys() - {"n", "delta"}:
        shape = np.shape(answers[field])
        assert shape == (2, 3), f"{s.name}: {field} of a (2, 3) batch has shape {shape}"
    spread = _spread(batch)
    for place in np.ndindex(2, 3):
        row = {field: value[place] if np.ndim(value) else value for field, value in answers.items()}
        assert _agree(row, s.fields(batch[place]), spread), f"{s.name}: sample {place} of a batch differs from it alone"
    for axis in (0, 1, -2):
        other = s.fields(np.moveaxis(batch, -1, axis), axis=axis)
        assert _agree(other, answers, spread), f"{s.name}: axis = {axis} gives another answer"


def check_equivariance(s: _Subject) -> None:
    """Check that the value shifts and scales with the sample, if that is claimed."""
    x = s.sample()
    spread = _spread(x)
    value = s.fields(x)["value"]
    if s.shift:
        moved = s.fields(x + SHIFT * spread)["value"] - SHIFT * spread
        assert abs(moved - value) <= 1e-6 * spread, f"{s.name}: a shift moves the value from {value} to {moved}"
    if s.scales is not None:
        changes = {name: s.parameters[name] * SCALE**power for name, power in s.scales.items()}
        scaled = s.fields(x * SCALE, **changes)["value"] / SCALE
        assert abs(scaled - value) <= 1e-6 * spread, f"{s.name}: a scale turns the value {value} into {scaled}"


def _rejects(name: str, what: str, call: Callable[[], Any], word: str = "") -> None:
    try:
        answer = call()
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"{name}: {what} is not rejected; the answer is {answer}")
    assert word in message, f"{name}: the error for {what} does not name it: {message}"


def check_rejections(s: _Subject) -> None:
    """Check that NaN, infinities and empty samples raise a ValueError."""
    for bad in (math.nan, math.inf, -math.inf):
        for position in (0, s.size // 2, s.size - 1):
            x = s.sample()
            x[position] = bad
            _rejects(s.name, f"{bad} at position {position}", partial(s.fields, x), str(bad))
    _rejects(s.name, "an empty sample", partial(s.fields, []))
    _rejects(s.name, "a single number", partial(s.fields, 1.0))


def check_coverage(s: _Subject) -> None:
    """Check that intervals contain the law's mean as often as their delta says, by the binomial law."""
    answer = s.fields(s.sample(s.replications))
    delta = answer.get("delta")
    if delta is None:
        return
    from scipy.special import bdtrc

    most = next(k for k in range(s.replications + 1) if bdtrc(k, s.replications, delta) <= FAILURE)
    mean = s.law.mean
    misses = int(np.sum((mean < answer["lower"]) | (mean > answer["upper"])))
    missed = f"{misses} of {s.replications} intervals missed the mean {mean}"
    assert misses <= most, f"{s.name}: {missed}; at delta = {delta:g} at most {most} may"


_CHECKS = (check_types, check_batches, check_equivariance, check_rejections, check_coverage)

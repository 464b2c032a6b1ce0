"""The rates of policies' regret as functions of T, K, u, eps and the gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel.types import Floats
from robandit.policies.base import Policy, check_policy_given
from robandit.policies.formula import COPIES, PER_ARM, Formula, parsed
from robandit.policies.r_ucb.growth import decay, decay_number, growth, growth_kind
from robandit.validation import LARGEST_INTEGER, array, choice, invalid, order, within

Of = Literal["T", "K", "u", "gap"]
UNSCALED: dict[str, float] = {"T": 1.0, "K": 1.0, "u": 1.0, "gap": 1.0}
STEP = 1e-4  # step of a logarithm in derivatives, whose error is about 1e-8
KEYWORDS = {"P(X != 0)": "nonzero", "KLinf(arm, best mean)": "klinf", "Var": "variance"}
"""Python keywords for names that are not identifiers or are ambiguous."""
COMPUTED = ("T", "K", "gap", "min gap", "f(T)", "g(T)")
"""Names whose values are computed, not passed by the caller."""
OTHERS = ("kappa", "klinf", "nonzero", "range", "rho", "scale", "tau", "variance")
"""Keywords of our formulas besides T, K, u, eps and the gaps; your own formulas may use other names."""


def rate(policy: Policy) -> Rate:
    """Return the proved rate of a policy's regret, without constants.

    The formulas come from the table of policies (``policy.facts.instance`` and ``policy.facts.worst``).

    Parameters
    ----------
    policy
        The policy. Only the parameters in its formula matter, such as f of R-UCB-TEA.

    Returns
    -------
    A function of (T, K, u, eps, gaps). With gaps it returns the instance-dependent rate, otherwise the worst-case rate. See `Rate`.

    Examples
    --------
    >>> from robandit import RobustUCB
    >>> from robandit.theory import rate
    >>> growth = rate(RobustUCB())
    >>> growth
    <Rate of Robust UCB: sum (u/gap)^(1/eps) log T; worst case K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log T)^(eps/(1+eps))>
    >>> growth(1000, 2, 4.0, 0.5, [0.0, 1.0])
    110.5240845
    >>> growth.exponent("gap", 1000, 2, 4.0, 0.5, [0.0, 1.0])
    -2.0
    """
    check_policy_given(policy)
    return Rate(policy)


@dataclass(frozen=True, repr=False)
class Rate:
    """The rates of one policy. T and u may be arrays; the result is a number, or an array of their common shape.

    The result is NaN if the formula does not apply: for R-UCB-TEA if a gap is below 2 / log f(T), or if a logarithm is negative.

    Parameters of a call
    --------------------
    T, K
        The number of pulls, from 1 to 2^53, and the number of arms.
    u
        The bound on E|X|^(1+eps), or on E|X - mean|^(1+eps) if the formula has v. None: the policy's parameter.
    eps
        The order of the moments minus 1. None: the policy's parameter. Catoni's estimator does not need it.
    gaps
        The best mean minus each arm's mean; gaps of 0 are ignored. None: the worst case. If a worst-case formula has a sum over
        gaps, it uses K - 1 gaps of u^(1/(1+eps)), the largest that u allows.
    known
        Values of other names, one in total or one per gap: ``nonzero`` (P(X != 0), default 1), ``klinf``, ``variance``, ``tau``.
    """

    policy: Policy

    def __repr__(self) -> str:
        facts = self.policy.facts
        return f"<Rate of {self.policy.name}: {facts.instance or 'none'}; worst case {facts.worst or 'none'}>"

    def __call__(
        self,
        T: ArrayLike,
        K: float,
        u: ArrayLike | None = None,
        eps: float | None = None,
        gaps: ArrayLike | None = None,
        **known: ArrayLike,
    ) -> Any:
        """Return the rate."""
        value = self._value(T, K, u, eps, gaps, known)
        return float(value) if value.ndim == 0 else value

    def exponent(
        self,
        of: Of,
        T: ArrayLike,
        K: float,
        u: ArrayLike | None = None,
        eps: float | None = None,
        gaps: ArrayLike | None = None,
        **known: ArrayLike,
    ) -> Any:
        """Return the derivative of log rate by log T, log K, log u or log gap (all gaps at once), with the rest held fixed."""
        choice(of, "of", tuple(UNSCALED))
        if of == "gap" and gaps is None:
            raise invalid("gaps", None, "the gaps of the arms", hint="of = 'gap' needs gaps")
        above, below = (
            np.log(self._value(T, K, u, eps, gaps, known, {**UNSCALED, of: math.exp(step)})) for step in (STEP, -STEP)
        )
        slope = np.asarray((above - below) / (2.0 * STEP))
        return float(slope) if slope.ndim == 0 else slope

    def _value(
        self, T: Any, K: Any, u: Any, eps: Any, gaps: Any, known: dict[str, Any], factor: Mapping[str, float] = UNSCALED
    ) -> Floats:
        """Return the rate with T, K, u and the gaps multiplied by their factors."""
        formula = self._formula(gaps is None)
        if unknown := sorted(known.keys() - set(OTHERS) - (formula.names - set(COMPUTED) - {"v"})):
            rule = f"omitted: besides T, K, u, eps and gaps a rate may need {', '.join(OTHERS)}"
            raise invalid(unknown[0], known[unknown[0]], rule, owner="rate")
        values = {"T": _numbers("T", T, 1.0, float(LARGEST_INTEGER)) * factor["T"]}
        values["K"] = np.asarray(within(K, "K", 1.0, math.inf, owner="rate") * factor["K"])
        arguments = {"u": u, "eps": eps, "nonzero": 1.0} | known
        bound = "v" if "v" in formula.names else "u"
        for name in sorted(formula.names - set(COMPUTED)):
            values[name] = self._known(name, arguments)
        if bound in values:
            values[bound] = values[bound] * factor["u"]
        policy, level = cast(Any, self.policy), np.log(values["T"])
        if "f(T)" in formula.names:
            values["f(T)"] = np.vectorize(growth, otypes=[np.float64])(growth_kind(policy.f), level)
        if "g(T)" in formula.names:
            values["g(T)"] = np.vectorize(decay, otypes=[np.float64])(decay_number(policy.g), level)
        if {"gap", "min gap"} & formula.names:
            self._gaps(formula, values, gaps, factor["gap"])
        with np.errstate(all="ignore"):
            value = formula.value(values)
        shape = np.broadcast_shapes(values["T"].shape, *(values[name].shape for name in (bound,) if name in values))
        return np.broadcast_to(np.where(value < 0.0, np.nan, value), shape)

    def _formula(self, worst_case: bool) -> Formula:
        facts = self.policy.facts
        text, other = (facts.worst, facts.instance) if worst_case else (facts.instance, facts.worst)
        if not text:
            kind, way = (
                ("worst-case", "pass the gaps")
                if worst_case
                else ("instance-dependent", "omit the gaps for its worst-case rate")
            )
            raise NotApplicable(f"{self.policy.name} has no {kind} bound: {way if other else 'none is proved for it'}")
        return parsed(text)

    def _known(self, name: str, arguments: dict[str, Any]) -> Floats:
        """Return the value of a name: the caller's argument, else the policy's parameter."""
        keyword = KEYWORDS.get(name, "u" if name == "v" else name)
        value = arguments.get(keyword)
        if value is None:
            value = getattr(self.policy, name, None)
        if value is None or (isinstance(value, str) and arguments.get(keyword) is None):
            reason = f"the rate of {self.policy.name} needs {name}; pass it as {keyword}=..."
            raise InvalidInput(reason, parameter=keyword, rule="a number")
        if name == "eps":
            order(value, owner="rate")
        return _numbers(keyword, value, 0.0, above=True)

    def _gaps(self, formula: Formula, values: dict[str, Floats], gaps: ArrayLike | None, factor: float) -> None:
        """Add the positive gaps to ``values``, and reduce the values per arm to the same arms."""
        if gaps is None:
            exponent = 1.0 + float(values["eps"]) if "eps" in values else 2.0
            values["gap"] = (values["v" if "v" in values else "u"] ** (1.0 / exponent))[..., np.newaxis]
            values[COPIES] = values["K"] - 1.0
            array = np.ones(1)
        else:
            array = _numbers("gaps", gaps, 0.0)
            if array.ndim != 1 or not (array > 0.0).any():
                raise invalid("gaps", gaps, "a list of numbers >= 0, at least one of them > 0", owner="rate")
            values["gap"] = array[array > 0.0] * factor
            values["min gap"] = values["gap"].min()
        for name in (formula.names - {"gap"}).intersection(PER_ARM):
            if values[name].ndim and values[name].shape != array.shape:
                raise invalid(KEYWORDS.get(name, name), values[name], "one number, or one per gap", owner="rate")
            values[name] = np.broadcast_to(values[name], array.shape)[array > 0.0]


def _numbers(name: str, value: Any, least: float, most: float = math.inf, *, above: bool = False) -> Floats:
    """Return an array of finite numbers, at least ``least`` (or greater, with ``above``) and at most ``most``."""
    rule = f"a finite number, or an array of them, {'>' if above else '>='} {least:g}"
    rule += f" and <= {most:.0f}" if most < math.inf else ""
    try:
        numbers = array(value, name)
    except InvalidInput as error:
        raise invalid(name, value, rule, owner="rate") from error
    good = np.isfinite(numbers) & (numbers <= most) & (numbers > least if above else numbers >= least)
    if np.asarray(value).dtype == np.bool_ or not numbers.size or not good.all():
        raise invalid(name, value, rule, owner="rate")
    return numbers

"""How regret grows: the rates that policies state, as functions of T, K, u, eps and the gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel.types import Floats
from robandit.policies.base import Policy, check_eps, check_number, check_policy_given
from robandit.policies.r_ucb.growth import decay, decay_number, growth, growth_kind
from robandit.theory.formula import COPIES, PER_ARM, Formula, parsed
from robandit.theory.given import MOST, plain

__all__ = ["Rate", "rate"]

Of = Literal["T", "K", "u", "gap"]
STEP = 1e-4  # of a logarithm, for derivatives: their error is about 1e-8
KEYWORDS = {"P(X != 0)": "nonzero", "KLinf(arm, best mean)": "klinf", "Var": "variance"}
"""What names are called where Python must read them."""
MADE = ("T", "K", "gap", "min gap", "f(T)", "g(T)")
"""Names whose values are worked out, not looked up."""
OTHERS = ("kappa", "klinf", "nonzero", "range", "rho", "scale", "tau", "variance")
"""Keywords that a formula may need beyond T, K, u, eps and the gaps; one of your own may have other names."""


def rate(policy: Policy) -> Rate:
    """The growth of a policy's regret as it is proved, without constants.

    The formulas are those of the table of policies (``policy.facts.instance`` and ``policy.facts.worst``).

    Parameters
    ----------
    policy
        Of its parameters only those that the formula names matter, such as f of R-UCB-TEA.

    Returns
    -------
    A function of (T, K, u, eps, gaps): the instance-dependent rate, or without gaps the worst-case one. See `Rate`.

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

    It is NaN where the formula says nothing: for R-UCB-TEA, where a gap is below 2 / log f(T); for logarithms of less than 1.

    Parameters of a call
    --------------------
    T
        Pulls, from 1 to 2^53.
    K
        Arms.
    u
        The moment bound that the policy's bound is in: on E|X|^(1+eps), or on E|X - mean|^(1+eps) for those that say v. None: the
        policy's own.
    eps
        The moments' order minus 1. None: the policy's own; Catoni's needs none.
    gaps
        What each arm's mean lacks to the best one; those that are 0 are left out. None: the worst case. Where a worst-case formula
        has a sum over gaps all the same, K - 1 of them are as large as u allows, u^(1/(1+eps)).
    known
        What else the formula names: ``nonzero`` for P(X != 0), 1 unless given, ``klinf``, ``variance``, ``tau``: a number, or one
        for each gap.
    """

    policy: Policy

    def __repr__(self) -> str:
        """The formulas."""
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
        """The rate."""
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
        """The derivative of log rate by log T, log K, log u or log gap, of all gaps at once, with the rest held fixed."""
        if of not in ("T", "K", "u", "gap"):
            raise InvalidInput(f"of = {of!r} must be one of 'T', 'K', 'u', 'gap'")
        if of == "gap" and gaps is None:
            raise InvalidInput("of = 'gap' needs gaps: give those of the arms")
        ends = []
        for step in (STEP, -STEP):
            by = {name: math.exp(step if name == of else 0.0) for name in ("T", "K", "u", "gap")}
            ends.append(np.log(self._value(T, K, u, eps, gaps, known, by)))
        slope = np.asarray((ends[0] - ends[1]) / (2.0 * STEP))
        return float(slope) if slope.ndim == 0 else slope

    def _value(
        self,
        T: ArrayLike,
        K: float,
        u: ArrayLike | None,
        eps: float | None,
        gaps: ArrayLike | None,
        known: dict[str, ArrayLike],
        by: dict[str, float] | None = None,
    ) -> Floats:
        """With T, K, u and the gaps multiplied by what ``by`` says."""
        formula = self._formula("worst-case" if gaps is None else "instance-dependent")
        factor = by or {"T": 1.0, "K": 1.0, "u": 1.0, "gap": 1.0}
        if unknown := sorted(known.keys() - set(OTHERS) - (formula.names - set(MADE) - {"v"})):
            raise InvalidInput(
                f"rate: {unknown[0]} = {known[unknown[0]]!r} is not known: what a rate may need besides T, K, u, eps and gaps is "
                + ", ".join(OTHERS)
            )
        values = {"T": _numbers("T", T, least=1.0, most=float(MOST)) * factor["T"]}
        check_number("rate", "K", plain(K), least=1.0)
        values["K"] = np.asarray(float(K) * factor["K"])
        given = {"u": u, "eps": eps, "nonzero": 1.0} | known
        bound = "v" if "v" in formula.names else "u"
        for name in sorted(formula.names - set(MADE)):
            values[name] = self._known(name, given)
        if bound in values:
            values[bound] = values[bound] * factor["u"]
        self._functions(formula, values)
        if {"gap", "min gap"} & formula.names:
            self._gaps(formula, values, gaps, factor["gap"])
        with np.errstate(all="ignore"):
            value = formula.value(values)
        shape = np.broadcast_shapes(values["T"].shape, *(values[name].shape for name in (bound,) if name in values))
        return np.broadcast_to(np.where(value < 0.0, np.nan, value), shape)

    def _formula(self, kind: Literal["instance-dependent", "worst-case"]) -> Formula:
        facts = self.policy.facts
        text, other = (facts.worst, facts.instance) if kind == "worst-case" else (facts.instance, facts.worst)
        if not text:
            ways = {"instance-dependent": "leave the gaps out for its worst-case rate", "worst-case": "give the gaps"}
            raise NotApplicable(
                f"{self.policy.name} has no {kind} bound" + (f": {ways[kind]}" if other else ": none is proved for it")
            )
        return parsed(text)

    def _known(self, name: str, given: dict[str, Any]) -> Floats:
        """A name's value: as given, or the policy's own."""
        keyword = KEYWORDS.get(name, "u" if name == "v" else name)
        value = given.get(keyword)
        if value is None:
            value = getattr(self.policy, name, None)
        if value is None or (isinstance(value, str) and given.get(keyword) is None):
            raise InvalidInput(f"the rate of {self.policy.name} needs {name}: give it as {keyword}=...")
        if name == "eps":
            check_eps("rate", plain(value))
        return _numbers(keyword, value, above=0.0)

    def _functions(self, formula: Formula, values: dict[str, Floats]) -> None:
        policy: Any = self.policy
        level = np.log(values["T"])
        if "f(T)" in formula.names:
            values["f(T)"] = np.vectorize(growth, otypes=[np.float64])(growth_kind(policy.f), level)
        if "g(T)" in formula.names:
            values["g(T)"] = np.vectorize(decay, otypes=[np.float64])(decay_number(policy.g), level)

    def _gaps(self, formula: Formula, values: dict[str, Floats], gaps: ArrayLike | None, factor: float) -> None:
        """Put the positive gaps, and what belongs to their arms, into the last axis."""
        if gaps is None:
            order = 1.0 + float(values["eps"]) if "eps" in values else 2.0
            values["gap"] = (values["v" if "v" in values else "u"] ** (1.0 / order))[..., np.newaxis]
            values[COPIES] = values["K"] - 1.0
            given = np.ones(1)
        else:
            given = _numbers("gaps", gaps, least=0.0)
            if given.ndim != 1 or not (given > 0.0).any():
                raise InvalidInput(f"gaps = {gaps!r} must be a list of numbers, of which at least one is above 0")
            values["gap"] = given[given > 0.0] * factor
            values["min gap"] = values["gap"].min()
        for name in (formula.names - {"gap"}).intersection(PER_ARM):
            if values[name].ndim and values[name].shape != given.shape:
                raise InvalidInput(
                    f"{KEYWORDS.get(name, name)} has the shape {values[name].shape}: give one number, or one for each gap"
                )
            values[name] = np.broadcast_to(values[name], given.shape)[given > 0.0]


def _numbers(
    name: str, value: Any, *, above: float = -math.inf, least: float | None = None, most: float = math.inf
) -> Floats:
    """An array of finite numbers above, or from, a limit."""
    rule = f"above {above:g}" if least is None else f"at least {least:g}"
    if most < math.inf:
        rule += f" and at most {most:.0f}"
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} = {value!r} must be a number, or an array of numbers, {rule}") from None
    good = np.isfinite(array) & (array <= most) & (array > above if least is None else array >= least)
    if not array.size or not good.all():
        raise InvalidInput(f"{name} = {value!r} must be finite and {rule}")
    return array

"""Regret bounds of policies on problems. To add one, write a function from `Case` to `BoundSet` and add it to FORMULAS.

Robust MOSS, uniINF, RMM-UCB, MARS, APE2, MR-UCB, MR-APE, Kurtosis UCB and Clipped-SGD-UCB have rates, but no bounds with known
constants. The same is true for ForceMoM in the worst case. IMED and Maillard sampling have only rates here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robandit.errors import NotApplicable
from robandit.estimators.formulas.threshold import C
from robandit.policies import Policy
from robandit.policies.assumptions import assumption_met
from robandit.policies.base import check_policy_given
from robandit.problems import Problem
from robandit.theory.adakl_bounds import adakl_instance, adakl_worst_case
from robandit.theory.adar_bounds import printed_instance, printed_worst_case, repaired_instance, repaired_worst_case
from robandit.theory.bound import Bound, BoundSet, Case, Kind, check_problem, total
from robandit.theory.divergence import is_resolved, klinf
from robandit.theory.index_bounds import r_ucb_lt, r_ucb_mom, r_ucb_tea, robust_ucb, ucb1, ucb_v
from robandit.theory.tsallis_bounds import ada2_tinf, ada_tinf, htinf, opt_tinf
from robandit.validation import integer, invalid, order

_TRUST = {"proved": 0, "repaired": 0, "derived": 0, "asymptotic": 1, "printed": 2}


@dataclass(frozen=True)
class RegretBound:
    """The result of `regret_bound`; printing it shows a short table."""

    policy: Policy
    """The policy with all required parameters."""
    problem: Problem
    horizon: int
    eps: float | None
    """The order of the moments minus 1, or None if no bound uses moments."""
    moment: float | None
    """The bound on the moments: u, or v for a policy with that parameter."""
    assumption: str
    """The assumption of the bounds beyond the policy's parameters; empty if there is none."""
    met: bool | None
    """Whether the problem satisfies the assumption and the policy's moment. None: unknown. False: no guarantee."""
    bounds: tuple[Bound, ...]

    @property
    def instance(self) -> float | None:
        """The instance-dependent bound to use: the smallest without a known gap, else the asymptotic or the printed one."""
        return self._best("instance")

    @property
    def worst_case(self) -> float | None:
        """The worst-case bound to use, chosen in the same way."""
        return self._best("worst-case")

    def _best(self, kind: Kind) -> float | None:
        ranked = sorted((_TRUST[bound.status], bound.value) for bound in self.bounds if bound.kind == kind)
        return ranked[0][1] if ranked else None

    def __str__(self) -> str:
        numbers = [f"T = {self.horizon:,}", f"{self.problem.arms} arms"]
        numbers += [f"eps = {self.eps:.4g}"] if self.eps is not None else []
        numbers += [f"moment {self.moment:.4g}"] if self.moment is not None else []
        met = {True: "met", False: "NOT met: no guarantee", None: "unknown whether it is met"}[self.met]
        lines = [f"Regret bounds of {self.policy.name}: {', '.join(numbers)}"]
        if self.assumption or not self.met:
            lines.append(f"assumes {self.assumption or 'the moment in its parameters'}: {met}")
        for bound in self.bounds:
            lines.append(f"  {bound.kind:<10}  {bound.value:>10.4g}  {bound.status:<10}  {bound.source}")
            if bound.note:
                lines.append(f"{'':<24}  {bound.note}")
        most = self.horizon * float(np.max(self.problem.gaps))
        return "\n".join([*lines, f"  no policy   {most:>10.4g}  can lose more: T times the largest gap"])


def regret_bound(policy: Policy, problem: Problem, horizon: int, *, eps: float | None = None) -> RegretBound:
    """Return the bounds on a policy's expected regret on a problem, with the constants of their proofs.

    Parameters
    ----------
    policy
        The policy. Missing required parameters are taken from the problem, as in `Policy.informed_by`.
    problem
        The problem. The bounds use its gaps and moments.
    horizon
        Number of pulls, T, at least 2.
    eps
        Order of the moments minus 1, in (0, 1]. None: the policy's eps, if it has one, else min(1, 0.9 (tail index - 1)).

    Returns
    -------
    RegretBound
        Every bound with its source and status, in units of reward; ``instance`` and ``worst_case`` are the ones to use. They
        may exceed T times the largest gap, which regret never does.

    Raises
    ------
    NotApplicable
        No bound with constants is known for this policy, these parameters or this horizon, or the problem replays recorded
        rewards in their order. The message states the reason.

    Guarantee
    ---------
    If ``met`` is True, a bound holds for the expected regret. The "derived" bounds are our own. See the derivations in
    `robandit.theory.adakl_bounds`, `robandit.theory.index_bounds` and `robandit.theory.tsallis_bounds`.

    Examples
    --------
    >>> import robandit as rb
    >>> from robandit.theory import regret_bound
    >>> result = regret_bound(rb.UCB1(), rb.problems.bernoulli(means=[0.2, 0.8]), horizon=1000)
    >>> result.instance, result.met
    (94.7, True)
    >>> print(result)
    Regret bounds of UCB1: T = 1,000, 2 arms
    assumes rewards in an interval of known length: met
      instance          94.68  proved      Auer, Cesa-Bianchi, Fischer 2002, Theorem 1
      worst-case        237.7  derived     Auer, Cesa-Bianchi, Fischer 2002, Theorem 1
      no policy           600  can lose more: T times the largest gap
    """
    check_policy_given(policy)
    check_problem(problem, "regret_bound")
    horizon = integer(horizon, "horizon", 2, owner="regret_bound")
    if eps is not None:
        eps = order(eps, owner="regret_bound")
    if not problem.independent:
        raise NotApplicable(
            f"the rewards of {problem!r} depend on the time or come late, but bounds require independent draws from fixed laws, "
            f"known at once; for the bounds of its laws pass Problem(problem.laws{', minimize=True' * problem.minimize})"
        )
    if (formula := FORMULAS.get(policy.tag())) is None:
        raise NotApplicable(_why_not(policy))
    informed = policy.informed_by(problem, eps=eps).prepared(horizon)
    with np.errstate(over="ignore"):  # tiny gaps make a bound infinite
        result = formula(Case(informed, problem, horizon, eps))
    met = result.met if result.met is not None else assumption_met(informed, problem)
    met = met if result.moment_is_enough else False
    assumption = informed.facts.assumption
    return RegretBound(informed, problem, horizon, result.eps, result.moment, assumption, met, result.bounds)


def _why_not(policy: Policy) -> str:
    name = type(policy).__name__
    if ":" in policy.tag():
        return f"{name} is a policy of your own: bounds are known only for Robandit's policies"
    if policy.facts.bound:
        return f"{name}: no constants are known, only a rate ({policy.facts.bound}); see theory.rate(policy)"
    return f"{name}: no regret bound is proved"


def _adar_ucb(case: Case) -> BoundSet:
    """Return the bounds of Theorems 7 and 8, repaired and as printed, for the paper's constants."""
    constants: tuple[tuple[str, tuple[Any, ...]], ...] = (
        *(("c", (C,)), ("guard", (None, C)), ("bonus", ("paper", "tight", 10.0)), ("var_factor", (2.0,))),
        *(("delta_exp", (3.0,)), ("solver", ("exact",))),
    )
    for name, values in constants:
        if (value := getattr(case.policy, name)) not in values:
            raise case.error(f"the theorems need the paper's constants, and {name} is {value!r}; leave it out")
    eps, u = case.order_and_u()
    source = "Genalti, Marsigli, Gatti, Metelli 2024, Theorem"
    gap = "as printed, proof gap at (robust3)"
    at = (case.problem, case.horizon, eps)
    bounds = (
        Bound("instance", repaired_instance(*at), f"{source} 7", "repaired"),
        Bound("worst-case", repaired_worst_case(*at), f"{source} 8", "repaired"),
        Bound("instance", printed_instance(*at), f"{source} 7", "printed", gap),
        Bound("worst-case", printed_worst_case(*at), f"{source} 8", "printed", gap),
    )
    return BoundSet(bounds, eps, u)


def _adakl_proved(case: Case) -> BoundSet:
    """Return the bounds of our theorem, which covers either kind of pulls."""
    eps, u = case.order_and_u()
    at = (case.problem, case.horizon, eps, case.policy.pulls)
    source = "ours: docs/explanation/adakl-theorem.md"
    bounds = (
        Bound("instance", adakl_instance(*at), source, "derived", "each worse arm with its own E|X|^(1+eps)"),
        Bound("worst-case", adakl_worst_case(*at), source, "derived"),
    )
    return BoundSet(bounds, eps, u)


def _klinf_ucb(case: Case) -> BoundSet:
    """Return (1 + batch) times the sum of gap log T / KLinf(arm, best mean)."""
    policy, problem = case.policy, case.problem
    if policy.threshold != "proved":
        raise case.error("its bound needs threshold='proved'; nothing is proved for 'log'")
    eps, u = float(policy.eps), float(policy.u)
    best = max(law.mean for law in problem.reward_laws)
    value = 0.0
    for law, gap in zip(problem.reward_laws, problem.gaps.tolist(), strict=True):
        if gap > 0.0:
            distance = klinf(law, best, eps=eps, u=u)
            if not is_resolved(distance, law, best, eps=eps, u=u):
                reason = f"for {law!r} with a gap of {gap:.4g} is {distance:.2g}, too small to be accurate; take a larger gap"
                raise case.error(f"its bound divides by KLinf, which {reason}")
            value += gap * case.log / distance
    bound = Bound("instance", (1.0 + policy.batch) * value, "Agrawal, Juneja, Koolen 2021", "asymptotic")
    return BoundSet((bound,), eps, u, problem.u(eps))


def _normal_ucb(case: Case) -> BoundSet:
    return _normal(case, "Cowan, Honda, Katehakis 2018")


def _gaussian_ts(case: Case) -> BoundSet:
    if not case.policy.alpha < 0.0:
        raise case.error(f"its bound needs alpha < 0, and alpha is {case.policy.alpha:g}")
    return _normal(case, "Honda, Takemura 2014, Theorem 1")


def _normal(case: Case, source: str) -> BoundSet:
    """Return the sum of 2 gap log T / log(1 + gap^2/variance), the least for normal laws of unknown variance."""
    value = 0.0
    for law, gap in zip(case.problem.laws, case.problem.gaps.tolist(), strict=True):
        if gap > 0.0:
            if not 0.0 < law.variance < math.inf:
                raise case.error(f"its bound needs a finite variance above 0, which {law!r} lacks")
            value += 2.0 * case.log * _gap_over_log(gap, law.variance)
    return BoundSet((Bound("instance", value, source, "asymptotic"),))


def _gap_over_log(gap: float, variance: float) -> float:
    """Return gap / log(1 + gap^2/variance) without overflow or underflow of the square."""
    ratio = gap / math.sqrt(variance)
    if ratio < 1e-9:
        return variance / gap  # relative error below 1e-18
    return gap / (2.0 * math.log(ratio) if ratio > 1e9 else math.log1p(ratio**2))


def _force_mom(case: Case) -> BoundSet:
    """Return (T/K)^rho times the sum of the gaps; the constant of the worst case is unknown."""
    value = (case.horizon / case.problem.arms) ** float(case.policy.rho) * total(case.gaps)
    note = "the regret of its schedule; for the rate of the worst case see theory.rate(policy)"
    return BoundSet((Bound("instance", value, "Dewasurendra 2026 (preprint)", "asymptotic", note),))


def _uniform(case: Case) -> BoundSet:
    """Return T times the mean gap, which is exact."""
    value = case.horizon * float(np.mean(case.problem.gaps))
    return BoundSet((Bound("instance", value, "by definition", "proved", "exact"),))


def _oracle(case: Case) -> BoundSet:
    """Return T times the gap of its arm, which is exact; for the best arm it is 0, also in the worst case."""
    arm = case.policy.arm
    if arm >= case.problem.arms:
        raise invalid("arm", arm, f"below {case.problem.arms}, the number of arms", owner=case.policy.name)
    value = case.horizon * float(case.problem.gaps[arm])
    kinds: tuple[Kind, ...] = ("instance", "worst-case") if value == 0.0 else ("instance",)
    return BoundSet(tuple(Bound(kind, value, "by definition", "proved", "exact") for kind in kinds))


FORMULAS: dict[str, Callable[[Case], BoundSet]] = {
    "AdaKLProved": _adakl_proved,
    "AdaRUCB": _adar_ucb,
    "Ada2TINF": ada2_tinf,
    "AdaTINF": ada_tinf,
    "ForceMoM": _force_mom,
    "GaussianTS": _gaussian_ts,
    "HTINF": htinf,
    "KLinfUCB": _klinf_ucb,
    "NormalUCB": _normal_ucb,
    "OptTINF": opt_tinf,
    "Oracle": _oracle,
    "RobustUCB": robust_ucb,
    "RUCBLT": r_ucb_lt,
    "RUCBMoM": r_ucb_mom,
    "RUCBTEA": r_ucb_tea,
    "UCB1": ucb1,
    "UCBV": ucb_v,
    "Uniform": _uniform,
}
"""The formula of each policy, by `Policy.tag`."""

"""Robust UCB (Bubeck, Cesa-Bianchi, Lugosi 2013) with its three estimators, one per file."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, ClassVar, Literal

from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.reward_store import KeepsRewards
from robandit.policies.assumptions import FINITE_VARIANCE
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.robust_ucb.catoni import Catoni
from robandit.policies.robust_ucb.median_of_means import MedianOfMeans
from robandit.policies.robust_ucb.truncated import Truncated
from robandit.validation import choice, invalid

# Each estimator is a class of static methods: params(policy), init(policy, arms, horizon), grow(state), and the hooks.
_ESTIMATORS: dict[str, Any] = {"truncated": Truncated, "median_of_means": MedianOfMeans, "catoni": Catoni}
_bubeck = partial(Facts, citation="Bubeck, Cesa-Bianchi, Lugosi 2013", matches=(True, True))
_CENTRED = ("The bound is in the centred moment v.",)
_FACTS = {
    "truncated": _bubeck(
        knows=("eps", "u"),
        bound="Bubeck et al., truncated mean",
        instance="sum (u/gap)^(1/eps) log T",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log T)^(eps/(1+eps))",
        adaptive=Adaptive(False, False, False, False),
        source="a secondary source",
        row=1,
        title="Robust UCB - TM",
    ),
    "median_of_means": _bubeck(
        knows=("eps", "v"),
        bound="Bubeck et al., median of means",
        instance="sum (v/gap)^(1/eps) log T",
        worst="K^(eps/(1+eps)) (v T)^(1/(1+eps)) (log T)^(eps/(1+eps))",
        adaptive=Adaptive(True, False, True, False),
        source="a secondary source",
        row=2,
        title="Robust UCB - MoM",
        notes=_CENTRED,
    ),
    "catoni": _bubeck(
        knows=("v",),
        assumption=FINITE_VARIANCE,
        bound="Bubeck et al., Catoni's estimator",
        instance="sum (v/gap + gap) log T",
        worst="sqrt(v K T log T) + sum gap log T",
        adaptive=Adaptive(False, False, True, False),
        source="reconstructed",
        row=3,
        title="Robust UCB - Catoni",
        notes=_CENTRED,
    ),
}


class RobustUCB(KeepsRewards, Policy):
    """UCB policy on a robust mean, when you know the order of the moments and a bound on them: the standard for heavy tails.

    Each of the three estimators has its own width. Use ``"truncated"`` if rewards are spread around zero. Use ``"median_of_means"``
    if they may lie anywhere: adding a constant to all rewards changes no decision. Use ``"catoni"`` if the variance is finite: its
    width is by far the smallest. Do not use it without a known bound: a bound that is too small voids the guarantee, and one that
    is too large explores too much. With the printed constants the first two are close to uniform play at usual horizons.

    Parameters
    ----------
    estimator
        ``"truncated"``: mean of the rewards with X_j, the arm's j-th reward, set to zero if ``|X_j| > (u j / (2 log
        t))^(1/(1+eps))``. ``"median_of_means"``: median of the means of ``min(1 + 16 log t, n/2)`` blocks. ``"catoni"``: Catoni's
        M-estimator, for eps = 1; arms with fewer than ``8 log t`` rewards are explored first.
    eps
        Order of the moments minus 1, in (0, 1]. Not needed for ``"catoni"``.
    u
        Bound on E|X|^(1+eps) of all arms, for ``"truncated"``.
    v
        Bound on E|X - mean|^(1+eps) of all arms, for the other two; the variance for ``"catoni"``.
    common_threshold
        Truncate all n rewards of an arm at ``(u n / (2 log t))^(1/(1+eps))``, as described in the AdaR-UCB paper. For
        ``"truncated"`` only.

    Guarantee
    ---------
    Regret grows as ``sum_i (u / gap_i)^(1/eps) log T`` and at worst as ``K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log
    T)^(eps/(1+eps))``, with v in place of u for the median of means. For Catoni's estimator it grows as ``sum_i (v / gap_i + gap_i)
    log T``. Requires eps and u or v (Catoni: only v). Anytime and deterministic. The rules of the first two were checked against
    two implementations that cite the paper. The tuning of Catoni's was derived again from his bound, not checked against the text.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -3.0], tail=2.5)
    >>> policy = rb.RobustUCB(estimator="catoni").informed_by(problem)
    >>> result = rb.simulate(policy, problem, horizon=4000, replications=5, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.25 * 4000)  # uniform play: 4000
    True

    References
    ----------
    S. Bubeck, N. Cesa-Bianchi, G. Lugosi. Bandits with heavy tail. IEEE Transactions on Information Theory 59, 2013.
    """

    estimator: Literal["truncated", "median_of_means", "catoni"] = "truncated"
    eps: float | None = None
    u: float | None = None
    v: float | None = None
    common_threshold: bool = False

    use_when = "you know eps and a bound on a moment: the usual choice then"
    label = "Robust UCB"
    columns = ("mean", "index")
    respects_allowed = True
    select: ClassVar[Any]  # each estimator has its own; see `algorithm`
    update: ClassVar[Any]

    def validate(self) -> None:
        choice(self.estimator, "estimator", _ESTIMATORS, owner="RobustUCB")
        check_known(self)
        for name, other in (("u", "v"), ("v", "u")):
            if (value := getattr(self, name)) is not None and name not in self.facts.knows:
                raise invalid(name, value, f"None for {self.estimator!r}", owner="RobustUCB", hint=f"it uses {other}")
        if self.estimator == "catoni" and self.eps not in (None, 1.0):
            raise invalid("eps", self.eps, "1 for 'catoni', which needs a variance", owner="RobustUCB")
        choice(self.common_threshold, "common_threshold", (True, False), owner="RobustUCB")
        if self.common_threshold and self.estimator != "truncated":
            raise invalid("common_threshold", True, f"False for {self.estimator!r}", owner="RobustUCB")

    @property
    def facts(self) -> Facts:
        return dataclasses.replace(_FACTS[self.estimator], late="counted")

    @classmethod
    def variants(cls) -> tuple[Policy, ...]:
        return tuple(cls(estimator=name) for name in _FACTS)  # type: ignore[arg-type]

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """Return the value of a parameter for a problem. For Catoni's estimator, v is the variance for every order."""
        return super().learned(name, problem, 1.0 if self.estimator == "catoni" else eps)

    @property
    def algorithm(self) -> type[Any]:
        return _ESTIMATORS[self.estimator]

    def params(self) -> Any:
        return _ESTIMATORS[self.estimator].params(self)

    def init(self, arms: int, horizon: int | None) -> Any:
        return _ESTIMATORS[self.estimator].init(self, arms, horizon)

    grows: ClassVar[Any] = property(lambda self: _ESTIMATORS[self.estimator].grows)

    def grow(self, state: Any) -> Any:  # type: ignore[override]
        return _ESTIMATORS[self.estimator].grow(state)

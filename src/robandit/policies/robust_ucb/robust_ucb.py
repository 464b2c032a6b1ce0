"""Robust UCB (Bubeck, Cesa-Bianchi, Lugosi 2013) with its three estimators, one per file."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from robandit.errors import InvalidInput
from robandit.policies.assumptions import FINITE_VARIANCE
from robandit.policies.base import Policy, check_eps, check_number, hooks_of
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.robust_ucb.catoni import Catoni
from robandit.policies.robust_ucb.median_of_means import MedianOfMeans
from robandit.policies.robust_ucb.truncated import Truncated

__all__ = ["RobustUCB"]

# Each part has static methods params(policy), init(policy, arms, horizon), grow(state), and the hooks.
_PARTS: dict[str, Any] = {"truncated": Truncated, "median_of_means": MedianOfMeans, "catoni": Catoni}
_SOURCE = "Bubeck, Cesa-Bianchi, Lugosi 2013"
_CENTRED = "The bound is in the centred moment v."
_FACTS = {
    "truncated": Facts(
        knows=("eps", "u"),
        bound="Bubeck et al., truncated mean",
        instance="sum (u/gap)^(1/eps) log T",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log T)^(eps/(1+eps))",
        matches=(True, True),
        adaptive=Adaptive(False, False, False, False),
        citation=_SOURCE,
        row=1,
        title="Robust UCB - TM",
    ),
    "median_of_means": Facts(
        knows=("eps", "v"),
        bound="Bubeck et al., median of means",
        instance="sum (v/gap)^(1/eps) log T",
        worst="K^(eps/(1+eps)) (v T)^(1/(1+eps)) (log T)^(eps/(1+eps))",
        matches=(True, True),
        adaptive=Adaptive(True, False, True, False),
        citation=_SOURCE,
        row=2,
        title="Robust UCB - MoM",
        notes=(_CENTRED,),
    ),
    "catoni": Facts(
        knows=("v",),
        assumption=FINITE_VARIANCE,
        bound="Bubeck et al., Catoni's estimator",
        instance="sum (v/gap + gap) log T",
        worst="sqrt(v K T log T) + sum gap log T",
        matches=(True, True),
        adaptive=Adaptive(False, False, True, False),
        citation=_SOURCE,
        row=3,
        title="Robust UCB - Catoni",
        notes=(_CENTRED,),
    ),
}


class RobustUCB(Policy):
    """Optimism on a robust mean, when the moments' order and a bound on them are known: the standard for heavy tails.

    Three estimators of the mean, each with its own confidence width. Use ``"truncated"`` if rewards are spread around zero,
    ``"median_of_means"`` if they may lie anywhere (it is about the centred moment v, and the same if a constant is added to all
    rewards), ``"catoni"`` if the variance is finite: its width is by far the smallest. Not if no bound is known: too small a
    bound voids the guarantee and too large a one explores for long. With the printed constants the first two are close to uniform
    play at the horizons that people simulate.

    Parameters
    ----------
    estimator
        ``"truncated"``: mean of the rewards with X_j set to zero where ``|X_j| > (u j / (2 log t))^(1/(1+eps))``, j the place of
        the reward in its arm. ``"median_of_means"``: median of the means of ``min(1 + 16 log t, n/2)`` blocks. ``"catoni"``:
        Catoni's M-estimator, for eps = 1; arms with fewer than ``8 log t`` rewards are explored first.
    eps
        Order of the moments minus 1, in (0, 1]. Catoni's needs none.
    u
        Bound on E|X|^(1+eps) of all arms, for ``"truncated"``.
    v
        Bound on E|X - mean|^(1+eps) of all arms, for the other two; the variance for ``"catoni"``.
    common_threshold
        Truncate all rewards of an arm at ``(u n / (2 log t))^(1/(1+eps))``, n their number, as the AdaR-UCB paper describes it. The
        original has a threshold for each reward. Only for ``"truncated"``.

    Guarantee
    ---------
    Regret grows as ``sum_i (u / gap_i)^(1/eps) log T`` and at worst as ``K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log
    T)^(eps/(1+eps))``, with v in place of u for the medians, and as ``sum_i (v / gap_i + gap_i) log T`` for Catoni's. Must know:
    eps and u or v (Catoni: v). Anytime, not random. The rules of the first two were checked against two implementations that cite
    the paper; Catoni's tuning is from memory, re-derived from his bound (confidence 0.92).

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

    label = "Robust UCB"
    columns = ("mean", "index")
    select: ClassVar[Any]  # each estimator has its own; see `hooks`
    update: ClassVar[Any]

    def validate(self) -> None:
        """A known estimator, and positive moments of the kind that it uses."""
        if self.estimator not in tuple(_PARTS):
            raise InvalidInput(
                f"RobustUCB: estimator = {self.estimator!r} must be one of {', '.join(map(repr, _PARTS))}"
            )
        check_eps("RobustUCB", self.eps)
        for name in ("u", "v"):
            value = getattr(self, name)
            if value is None:
                continue
            check_number("RobustUCB", name, value, above=0.0)
            if name not in self.facts.knows:
                other = "v" if name == "u" else "u"
                raise InvalidInput(
                    f"RobustUCB: {name} = {value!r} has no meaning for {self.estimator!r}: it uses {other}"
                )
        if self.estimator == "catoni" and self.eps not in (None, 1.0):
            raise InvalidInput(f"RobustUCB: eps = {self.eps!r} must be 1 with 'catoni', which needs a variance")
        if not isinstance(self.common_threshold, bool):
            raise InvalidInput(f"RobustUCB: common_threshold = {self.common_threshold!r} must be True or False")
        if self.common_threshold and self.estimator != "truncated":
            raise InvalidInput(
                f"RobustUCB: common_threshold has no meaning for {self.estimator!r}: leave it out, or take 'truncated'"
            )

    @property
    def facts(self) -> Facts:
        """Those of the estimator."""
        return _FACTS[self.estimator]

    @classmethod
    def variants(cls) -> tuple[Policy, ...]:
        """One for each estimator."""
        return tuple(cls(estimator=name) for name in _FACTS)  # type: ignore[arg-type]

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """Catoni's estimator is about the variance, whatever the order."""
        return super().learned(name, problem, 1.0 if self.estimator == "catoni" else eps)

    def hooks(self, *names: str) -> tuple[Any, ...]:
        """Those of the estimator."""
        return hooks_of(_PARTS[self.estimator], *names)

    def params(self) -> Any:
        """Those of the estimator."""
        return _PARTS[self.estimator].params(self)

    def init(self, arms: int, horizon: int | None) -> Any:
        """The estimator's state."""
        return _PARTS[self.estimator].init(self, arms, horizon)

    def grow(self, state: Any) -> Any:
        """More room for the estimator."""
        return _PARTS[self.estimator].grow(state)

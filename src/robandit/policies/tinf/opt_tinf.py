"""OptTINF (Huang, Dai, Huang 2022)."""

from __future__ import annotations

from typing import Any

from robandit.policies.base import Policy, also_called
from robandit.policies.facts import Adaptive
from robandit.policies.tinf.ftrl import huang_facts
from robandit.policies.tinf.htinf import Skipping, tsallis_params


class OptTINF(Skipping, Policy):
    """HTINF with eps = 1 and u = 1 for all rewards ("optimistic"), which needs no prior knowledge.

    Use it for rewards of order 1: it plays at random until the threshold, about 0.2 sqrt(t), reaches the size of the rewards.
    `Ada2TINF` finds their size by itself and has the better worst case. The AdaR-UCB paper calls this policy OptHTINF.

    Guarantee
    ---------
    Under truncated non-positivity (see `HTINF`), for every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret is at worst
    ``K^(eps/2) u T^((2-eps)/2) + sqrt(K T)``, and grows as ``sum (u^2/gap^(2-eps))^(1/eps) log T`` with a unique best arm
    (Theorem 4.2). Requires no prior knowledge. Anytime and randomised. Losses and late rewards are treated as in `HTINF`.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b", "c"], rb.OptTINF(), seed=0)
    >>> bandit.update(bandit.select(), -0.05)
    >>> [round(row["probability"], 6) for row in bandit.estimates()]
    [0.34651, 0.34651, 0.30698]

    References
    ----------
    J. Huang, Y. Dai, L. Huang. Adaptive best-of-both-worlds algorithm for heavy-tailed multi-armed bandits. ICML 2022, PMLR 162.
    """

    use_when = "rewards are of order 1 and may be adversarial"
    about = huang_facts(
        bound="Theorem 4.2 of Huang et al.",
        instance="sum (u^2/gap^(2-eps))^(1/eps) log T",
        worst="K^(eps/2) u T^((2-eps)/2) + sqrt(K T)",
        matches=(False, False),
        adaptive=Adaptive(True, True, True, True),
        row=9,
        notes=(
            "The AdaR-UCB paper calls it OptHTINF; its source calls it OptTINF.",
            "The AdaR-UCB paper prints u^(1/(1+eps)) in the worst case and omits sqrt(K T); Theorem 4.2 of Huang et al. has u "
            "and the sum.",
            "The instance-dependent bound assumes that the best arm is unique.",
        ),
    )

    def params(self) -> Any:
        return tsallis_params(1.0, 1.0)


OptHTINF = OptTINF  # the name in the AdaR-UCB paper
also_called("OptHTINF", OptTINF)

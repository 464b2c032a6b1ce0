"""Ada2TINF (Huang, Dai, Huang 2022)."""

from __future__ import annotations

import math

from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.tinf.ada_tinf import END, LEVEL, AdaTINF, Params, State, beginning
from robandit.policies.tinf.ftrl import SKIPPED

__all__ = ["Ada2TINF"]


class Ada2TINF(Policy):
    """`AdaTINF` that starts anew after 1, 3, 7, 15 pulls and so on: it need not be told anything, not even the horizon.

    Each start forgets everything, so regret is that of AdaTINF but for a constant factor. Use it when nothing is known and
    the worst case matters: it protects against adversaries, and finds the rewards' scale by itself. On easy problems the
    restarts cost a lot.

    Guarantee
    ---------
    If the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (so its mean is at most 0), then for
    every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret is at worst ``K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)``, against
    adversaries too. Must know: nothing. Anytime, random.

    Notes
    -----
    Losses, costs and late rewards: as `AdaTINF`, with the time since the last start. A reward that comes after a start is
    learned in it: divided by the probability of its decision it says as much as any other.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b", "c"], rb.Ada2TINF(), seed=0)
    >>> for _ in range(2):
    ...     bandit.update(bandit.select(), -0.05)
    >>> [round(row["probability"], 6) for row in bandit.estimates()]
    [0.34651, 0.34651, 0.30698]

    References
    ----------
    J. Huang, Y. Dai, L. Huang. Adaptive best-of-both-worlds algorithm for heavy-tailed multi-armed bandits. ICML 2022, PMLR 162.
    """

    weighted = True
    columns = AdaTINF.columns
    about = Facts(
        random=True,
        assumption=NONPOSITIVE,
        bound="Ada2TINF of Huang et al.",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)",
        matches=(None, True),
        adaptive=Adaptive(True, True, True, True),
        citation="Huang, Dai, Huang 2022",
        title="Ada2TINF",
    )

    def params(self) -> Params:
        """It starts anew."""
        return Params(restarts=1)

    def init(self, arms: int, horizon: int | None) -> State:
        """The first start, for one pull."""
        return beginning(arms, 1)

    def counters(self, state: State) -> dict[str, int]:
        """Rewards that were skipped, J since the last start, and starts."""
        return {
            "skipped": int(state.clock[SKIPPED]),
            "doublings": round(math.log2(state.ledger[LEVEL])),
            "starts": round(math.log2(state.ledger[END])),
        }

    select = staticmethod(AdaTINF.select)
    take = staticmethod(AdaTINF.take)
    update = staticmethod(AdaTINF.update)
    estimate = staticmethod(AdaTINF.estimate)

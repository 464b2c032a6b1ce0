"""Ada2TINF (Huang, Dai, Huang 2022)."""

from __future__ import annotations

import math
from typing import Any

from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive
from robandit.policies.tinf.ada_tinf import END, Doubling
from robandit.policies.tinf.ftrl import huang_facts


class Ada2TINF(Doubling, Policy):
    """`AdaTINF` that restarts after 1, 3, 7, 15 pulls and so on, and needs no prior knowledge, not even the horizon.

    Each restart forgets everything. Use it when nothing is known and the worst case matters: it protects against adversaries and
    finds the scale of the rewards. On easy problems the restarts are costly. A reward that arrives after a restart is learned like
    any other, since it is divided by the probability of its own decision.

    Guarantee
    ---------
    Under truncated non-positivity (see `HTINF`), for every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret is at worst
    ``K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)``, also against adversaries. Requires no prior knowledge. Anytime and
    randomised.

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

    use_when = "you know nothing, and rewards may be adversarial"
    about = huang_facts(
        bound="Ada2TINF of Huang et al.",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) + sqrt(K T)",
        matches=(None, True),
        adaptive=Adaptive(True, True, True, True),
    )

    def counters(self, state: Any) -> dict[str, int]:
        """Return the number of skipped rewards, J since the last restart, and the number of starts."""
        return super().counters(state) | {"starts": round(math.log2(state.ledger[END]))}

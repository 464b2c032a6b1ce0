"""One algorithm per file. To add one: a file here, a line in this list, a line in the changelog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from robandit.errors import InvalidInput, NotApplicable
from robandit.policies.ada2_tinf import Ada2TINF
from robandit.policies.ada_tinf import AdaTINF
from robandit.policies.adakl_ucb import AdaKLUCB
from robandit.policies.adar_ucb import AdaRUCB
from robandit.policies.ape2 import APE2
from robandit.policies.base import Policy
from robandit.policies.catoni_lepski_ucb import CatoniLepskiUCB
from robandit.policies.clipped_sgd_ucb import ClippedSGDUCB
from robandit.policies.epsilon_greedy import EpsilonGreedy
from robandit.policies.force_mom import ForceMoM
from robandit.policies.htinf import HTINF
from robandit.policies.klinf_ucb import KLinfUCB
from robandit.policies.kurtosis_ucb import KurtosisUCB
from robandit.policies.mars import MARS
from robandit.policies.mr_ape import MRAPE
from robandit.policies.mr_ucb import MRUCB
from robandit.policies.normal_ucb import NormalUCB
from robandit.policies.opt_tinf import OptHTINF, OptTINF
from robandit.policies.oracle import Oracle
from robandit.policies.r_ucb_lt import RUCBLT
from robandit.policies.r_ucb_mom import RUCBMoM
from robandit.policies.r_ucb_tea import RUCBTEA
from robandit.policies.rmm_ucb import RMMUCB
from robandit.policies.robust_moss import RobustMOSS
from robandit.policies.robust_ucb import RobustUCB
from robandit.policies.ucb1 import UCB1
from robandit.policies.ucb_v import UCBV
from robandit.policies.uniform import Uniform
from robandit.policies.uniinf import UniINF

__all__ = [
    "APE2",
    "HTINF",
    "MARS",
    "MRAPE",
    "MRUCB",
    "RMMUCB",
    "RUCBLT",
    "RUCBTEA",
    "UCB1",
    "UCBV",
    "Ada2TINF",
    "AdaKLUCB",
    "AdaRUCB",
    "AdaTINF",
    "CatoniLepskiUCB",
    "ClippedSGDUCB",
    "EpsilonGreedy",
    "ForceMoM",
    "KLinfUCB",
    "KurtosisUCB",
    "NormalUCB",
    "OptHTINF",
    "OptTINF",
    "Oracle",
    "Policy",
    "RUCBMoM",
    "RobustMOSS",
    "RobustUCB",
    "UniINF",
    "Uniform",
]


def all_policies() -> list[Policy]:
    """One of each algorithm, with its default parameters; some must be told numbers before they can play."""
    classes = dict.fromkeys(globals()[name] for name in __all__)  # one policy has two names
    return [policy for cls in classes if cls is not Policy for policy in cls.variants()]


def named(names: Iterable[str]) -> list[Policy]:
    """The algorithms of these classes, with default parameters.

    >>> [policy.name for policy in named(["UCB1", "HTINF"])]
    ['UCB1', 'HTINF']
    """
    chosen: list[Policy] = []
    for name in names:
        if name not in __all__ or name == "Policy":
            raise InvalidInput(
                f"policy {name!r} is not known: there are {', '.join(sorted(set(__all__) - {'Policy'}))}"
            )
        chosen += globals()[name].variants()
    return chosen


def entitled(policies: Iterable[Policy], problem: Any, horizon: int | None = None) -> tuple[list[Policy], list[str]]:
    """Each policy told exactly what it must know, and for those that cannot be told, or play that long, why they are left out.

    >>> from robandit.problems import negated_pareto
    >>> told, left_out = entitled([AdaRUCB(), KurtosisUCB()], negated_pareto(means=[-1.0, -2.0], tail=1.5))
    >>> [policy.name for policy in told], len(left_out)
    (['AdaR-UCB'], 1)
    """
    told: list[Policy] = []
    left_out: list[str] = []
    for policy in policies:
        try:
            informed = policy.informed_by(problem)
            if horizon is not None:
                informed.prepared(horizon)
            told.append(informed)
        except NotApplicable as reason:
            left_out.append(f"{policy.name} is left out: {reason}")
    return told, left_out


def table() -> None:
    """Print Table 1 of the AdaR-UCB paper as it stands here: bounds, adaptivity, assumption and needs of every policy."""
    from robandit.policies.comparison import as_text

    print(as_text(all_policies()))

"""One algorithm per file. To add one: a file here, a line in this list, a line in the changelog."""

from __future__ import annotations

from robandit.policies.adar.adakl_ucb import AdaKLUCB
from robandit.policies.adar.adar_ucb import AdaRUCB
from robandit.policies.base import Policy
from robandit.policies.classic.epsilon_greedy import EpsilonGreedy
from robandit.policies.classic.normal_ucb import NormalUCB
from robandit.policies.classic.oracle import Oracle
from robandit.policies.classic.ucb1 import UCB1
from robandit.policies.classic.ucb_v import UCBV
from robandit.policies.classic.uniform import Uniform
from robandit.policies.klinf.klinf_ucb import KLinfUCB
from robandit.policies.p_robust.ape2 import APE2
from robandit.policies.p_robust.mr_ape import MRAPE
from robandit.policies.p_robust.mr_ucb import MRUCB
from robandit.policies.r_ucb.lt import RUCBLT
from robandit.policies.r_ucb.mom import RUCBMoM
from robandit.policies.r_ucb.tea import RUCBTEA
from robandit.policies.resampling.mars import MARS
from robandit.policies.resampling.rmm_ucb import RMMUCB
from robandit.policies.robust_ucb.catoni_lepskii_ucb import CatoniLepskiiUCB
from robandit.policies.robust_ucb.clipped_sgd_ucb import ClippedSGDUCB
from robandit.policies.robust_ucb.force_mom import ForceMoM
from robandit.policies.robust_ucb.kurtosis_ucb import KurtosisUCB
from robandit.policies.robust_ucb.robust_moss import RobustMOSS
from robandit.policies.robust_ucb.robust_ucb import RobustUCB
from robandit.policies.tinf.ada2_tinf import Ada2TINF
from robandit.policies.tinf.ada_tinf import AdaTINF
from robandit.policies.tinf.htinf import HTINF
from robandit.policies.tinf.opt_tinf import OptHTINF, OptTINF
from robandit.policies.tinf.uniinf import UniINF

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
    "CatoniLepskiiUCB",
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


def table() -> None:
    """Print Table 1 of the AdaR-UCB paper as it stands here: bounds, adaptivity, assumption and needs of every policy."""
    from robandit.policies.comparison import as_text

    print(as_text(all_policies()))

"""One algorithm per file. To add one: a file here, a line in this list, a line in the changelog."""

from __future__ import annotations

from robandit.policies.ada2_tinf import Ada2TINF
from robandit.policies.ada_tinf import AdaTINF
from robandit.policies.adakl_ucb import AdaKLUCB
from robandit.policies.adar_ucb import AdaRUCB
from robandit.policies.ape2 import APE2
from robandit.policies.base import Policy
from robandit.policies.catoni_lepskii_ucb import CatoniLepskiiUCB
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

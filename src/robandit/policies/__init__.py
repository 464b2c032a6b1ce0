"""The policies, one algorithm per file. To add one, write a file in this package, and add a line here and in the changelog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robandit.policies.adakl.adakl_proved import AdaKLProved as AdaKLProved
from robandit.policies.adakl.adakl_ucb import AdaKLUCB as AdaKLUCB
from robandit.policies.adar.adar_ucb import AdaRUCB as AdaRUCB
from robandit.policies.base import Policy as Policy
from robandit.policies.classic.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from robandit.policies.classic.kl_ucb import KLUCB as KLUCB
from robandit.policies.classic.normal_ucb import NormalUCB as NormalUCB
from robandit.policies.classic.oracle import Oracle as Oracle
from robandit.policies.classic.ucb1 import UCB1 as UCB1
from robandit.policies.classic.ucb_v import UCBV as UCBV
from robandit.policies.classic.uniform import Uniform as Uniform
from robandit.policies.drift.probing import Probing as Probing
from robandit.policies.drift.restarting import Restarting as Restarting
from robandit.policies.floor.floor import Floor as Floor
from robandit.policies.klinf.klinf_ucb import KLinfUCB as KLinfUCB
from robandit.policies.linear.ada_clip import AdaClipTS as AdaClipTS
from robandit.policies.linear.ada_clip import AdaClipUCB as AdaClipUCB
from robandit.policies.linear.heavy_oful import HeavyOFUL as HeavyOFUL
from robandit.policies.linear.hvt_ucb import HvtUCB as HvtUCB
from robandit.policies.linear.lin_epsilon_greedy import LinEpsilonGreedy as LinEpsilonGreedy
from robandit.policies.linear.lin_ts import LinStudentTS as LinStudentTS
from robandit.policies.linear.lin_ts import LinTS as LinTS
from robandit.policies.linear.lin_ucb import LinUCB as LinUCB
from robandit.policies.linear.per_cell import PerCell as PerCell
from robandit.policies.p_robust.ape2 import APE2 as APE2
from robandit.policies.p_robust.mr_ape import MRAPE as MRAPE
from robandit.policies.p_robust.mr_ucb import MRUCB as MRUCB
from robandit.policies.quantile.quantile_ucb import QuantileUCB as QuantileUCB
from robandit.policies.r_ucb.lt import RUCBLT as RUCBLT
from robandit.policies.r_ucb.mom import RUCBMoM as RUCBMoM
from robandit.policies.r_ucb.tea import RUCBTEA as RUCBTEA
from robandit.policies.resampling.mars import MARS as MARS
from robandit.policies.resampling.rmm_ucb import RMMUCB as RMMUCB
from robandit.policies.robust_ucb.catoni_lepskii_ucb import CatoniLepskiiUCB as CatoniLepskiiUCB
from robandit.policies.robust_ucb.clipped_sgd_ucb import ClippedSGDUCB as ClippedSGDUCB
from robandit.policies.robust_ucb.force_mom import ForceMoM as ForceMoM
from robandit.policies.robust_ucb.kurtosis_ucb import KurtosisUCB as KurtosisUCB
from robandit.policies.robust_ucb.robust_moss import RobustMOSS as RobustMOSS
from robandit.policies.robust_ucb.robust_ucb import RobustUCB as RobustUCB
from robandit.policies.sampling.dirichlet_sampling import DirichletSampling as DirichletSampling
from robandit.policies.sampling.gaussian_ts import GaussianTS as GaussianTS
from robandit.policies.sampling.imed import IMED as IMED
from robandit.policies.sampling.lb_sda import LBSDA as LBSDA
from robandit.policies.sampling.maillard_sampling import MaillardSampling as MaillardSampling
from robandit.policies.tinf.ada2_tinf import Ada2TINF as Ada2TINF
from robandit.policies.tinf.ada_tinf import AdaTINF as AdaTINF
from robandit.policies.tinf.htinf import HTINF as HTINF
from robandit.policies.tinf.opt_tinf import OptHTINF as OptHTINF
from robandit.policies.tinf.opt_tinf import OptTINF as OptTINF
from robandit.policies.tinf.uniinf import UniINF as UniINF


def policy_names() -> list[str]:
    """Return the names of the policy classes, in the order of tables and plans.

    >>> "UCB1" in policy_names(), "Policy" in policy_names()
    (True, False)
    """
    names = [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Policy)]
    return sorted(set(names) - {"Policy"}, key=lambda name: (not name.isupper(), name))


def all_policies() -> list[Policy]:
    """Return one policy per algorithm, with default parameters. Some need further parameters before they can play."""
    classes = dict.fromkeys(globals()[name] for name in policy_names())  # one class has two names
    return [policy for cls in classes for policy in cls.variants()]


def table() -> None:
    """Print Table 1 of the AdaR-UCB paper for every policy: bounds, adaptivity, assumption and required knowledge."""
    from robandit.policies.comparison import as_text

    print(as_text(all_policies()))


if not TYPE_CHECKING:  # a type checker reads the imports above, and would not understand this list
    __all__ = ["Policy", *policy_names()]

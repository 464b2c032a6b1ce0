"""One algorithm per file. To add one: a file here, a line in this list, a line in the changelog."""

from __future__ import annotations

from robandit.policies.ada2_tinf import Ada2TINF
from robandit.policies.ada_tinf import AdaTINF
from robandit.policies.adar_ucb import AdaRUCB
from robandit.policies.base import Policy
from robandit.policies.htinf import HTINF
from robandit.policies.opt_tinf import OptTINF
from robandit.policies.robust_moss import RobustMOSS
from robandit.policies.ucb1 import UCB1

__all__ = ["HTINF", "UCB1", "Ada2TINF", "AdaRUCB", "AdaTINF", "OptTINF", "Policy", "RobustMOSS"]


def all_policies() -> list[Policy]:
    """One of each algorithm, with its default parameters; some must be told numbers before they can play."""
    classes = [globals()[name] for name in __all__]
    return [policy for cls in classes if cls is not Policy for policy in cls.variants()]


def table() -> None:
    """Print Table 1 of the AdaR-UCB paper as it stands here: bounds, adaptivity, assumption and needs of every policy."""
    from robandit.policies.comparison import as_text

    print(as_text(all_policies()))

"""Robandit: multi-armed bandits with heavy-tailed rewards.

Start with `Bandit` (live decisions), `simulate` (policies on a problem), `recommend` (which policy), or ``robandit --help``.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from robandit import diagnostics, drift, errors, laws, policies, problems
from robandit.diagnostics import Recommendation, recommend
from robandit.live import events
from robandit.live.bandit import Bandit
from robandit.live.ledger import Decision
from robandit.policies import *  # noqa: F403  the list of policies is in policies/__init__.py
from robandit.precompile import precompile
from robandit.problems import Problem
from robandit.simulate.result import Result
from robandit.simulate.simulation import simulate

if TYPE_CHECKING:
    from robandit import checks, estimators, experiments, recorded, report, suites, theory, verify

__version__ = "0.1.0"
__all__ = [
    "Bandit",
    "Decision",
    "Problem",
    "Recommendation",
    "Result",
    "checks",
    "diagnostics",
    "drift",
    "errors",
    "estimators",
    "events",
    "experiments",
    "laws",
    "policies",
    "precompile",
    "problems",
    "recommend",
    "recorded",
    "report",
    "simulate",
    "suites",
    "theory",
    "verify",
]
if not TYPE_CHECKING:  # a type checker must see the imports above, and an error for a name that does not exist
    __all__ += policies.__all__

    def __getattr__(name: str) -> _Any:
        """Import a package on first use, if a live bandit does not need it."""
        if name in ("checks", "estimators", "experiments", "recorded", "report", "suites", "theory", "verify"):
            return _import_module(f"robandit.{name}")
        raise AttributeError(f"module 'robandit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*__all__, "__version__"]

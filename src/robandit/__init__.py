"""Robandit: multi-armed bandits with heavy-tailed rewards."""

from __future__ import annotations

from robandit import checks, errors, laws, policies, problems
from robandit.bandit import Bandit, Decision
from robandit.policies import *  # noqa: F403  one list of policies, in policies/__init__.py
from robandit.policies import __all__ as _policies
from robandit.problems import Problem
from robandit.simulate import Result, simulate
from robandit.warm import precompile

__version__ = "0.1.0.dev0"
__all__ = [
    "Bandit",
    "Decision",
    "Problem",
    "Result",
    "checks",
    "errors",
    "laws",
    "policies",
    "precompile",
    "problems",
    "simulate",
]
__all__ += _policies

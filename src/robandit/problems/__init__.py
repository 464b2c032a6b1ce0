"""Problems: one law per arm, builders for common families, the paper's lower bounds, changes, delays, and recorded rewards."""

from __future__ import annotations

from robandit.problems import delays as delays
from robandit.problems.builders import bernoulli, gaussian, negated_lomax, negated_pareto, pareto, stable, student_t
from robandit.problems.changing import Changing, changing
from robandit.problems.contextual import ContextTable, Contextual, contextual, linear
from robandit.problems.delayed import Delayed, delayed
from robandit.problems.lower_bound_instances import eps_adaptive_pair, hard_gap, lower_bound_family, u_adaptive_pair
from robandit.problems.objectives import with_objective
from robandit.problems.problem import Problem
from robandit.problems.replays import InOrder, Logged, recorded_problem

__all__ = [
    "Changing",
    "ContextTable",
    "Contextual",
    "Delayed",
    "InOrder",
    "Logged",
    "Problem",
    "bernoulli",
    "changing",
    "contextual",
    "delayed",
    "eps_adaptive_pair",
    "gaussian",
    "hard_gap",
    "linear",
    "lower_bound_family",
    "negated_lomax",
    "negated_pareto",
    "pareto",
    "recorded_problem",
    "stable",
    "student_t",
    "u_adaptive_pair",
    "with_objective",
]

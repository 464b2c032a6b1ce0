"""Functions for regret bounds, lower bounds, rates, KLinf and AdaR-UCB's assumption."""

from __future__ import annotations

from robandit.theory.adakl_bounds import adakl_instance, adakl_worst_case
from robandit.theory.adar_bounds import printed_instance, printed_worst_case, repaired_instance, repaired_worst_case
from robandit.theory.bound import Bound
from robandit.theory.bounds import RegretBound, regret_bound
from robandit.theory.divergence import klinf, klinf_upper
from robandit.theory.lower_bounds import (
    PairBound,
    lower_bound_eps_adaptive,
    lower_bound_u_adaptive,
    minimax_constant,
    minimax_lower_bound,
)
from robandit.theory.nonpositivity import truncated_nonpositivity
from robandit.theory.rates import Rate, rate

__all__ = [
    "Bound",
    "PairBound",
    "Rate",
    "RegretBound",
    "adakl_instance",
    "adakl_worst_case",
    "klinf",
    "klinf_upper",
    "lower_bound_eps_adaptive",
    "lower_bound_u_adaptive",
    "minimax_constant",
    "minimax_lower_bound",
    "printed_instance",
    "printed_worst_case",
    "rate",
    "regret_bound",
    "repaired_instance",
    "repaired_worst_case",
    "truncated_nonpositivity",
]

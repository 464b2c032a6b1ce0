"""Reward laws: immutable objects with exact moments, tail indices, a compiled sampler and a verdict on the assumption.

Every law can be an arm. `Law` lists the facts of a law. They come from formulas or quadratures to about 1e-9, never from samples.
"""

from __future__ import annotations

from robandit.laws.base import Law
from robandit.laws.combinators import Affine, Mixture, Negated, ZeroInflated, scaled_to_mean
from robandit.laws.discrete import Bernoulli, Constant, Discrete, Empirical, Weighted, two_point
from robandit.laws.extreme import Frechet, Weibull
from robandit.laws.gaussian import Gaussian, LogNormal
from robandit.laws.pareto import Burr, Lomax, Pareto
from robandit.laws.stable import Stable
from robandit.laws.student import Cauchy, StudentT
from robandit.laws.table import Component, LawTable, tabulate
from robandit.laws.verdict import Verdict

__all__ = [
    "Affine",
    "Bernoulli",
    "Burr",
    "Cauchy",
    "Component",
    "Constant",
    "Discrete",
    "Empirical",
    "Frechet",
    "Gaussian",
    "Law",
    "LawTable",
    "LogNormal",
    "Lomax",
    "Mixture",
    "Negated",
    "Pareto",
    "Stable",
    "StudentT",
    "Verdict",
    "Weibull",
    "Weighted",
    "ZeroInflated",
    "scaled_to_mean",
    "tabulate",
    "two_point",
]

"""Suites: fixed sets of problems that make results comparable.

A suite with a given name and version never changes. A new problem makes a new version.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from robandit.laws import (
    Discrete,
    Empirical,
    Frechet,
    Gaussian,
    LogNormal,
    Lomax,
    Mixture,
    Pareto,
    Stable,
    StudentT,
    Weibull,
    ZeroInflated,
)
from robandit.problems import Problem, delays
from robandit.problems.builders import bernoulli, gaussian, negated_lomax, negated_pareto, pareto, stable, student_t
from robandit.problems.changing import KINDS
from robandit.problems.changing import changing as changing_problem
from robandit.problems.contextual import linear
from robandit.problems.delayed import delayed as delayed_problem
from robandit.problems.lower_bound_instances import eps_adaptive_pair, lower_bound_family, u_adaptive_pair
from robandit.validation import choice

__all__ = [
    "NAMES",
    "Suite",
    "Task",
    "changing",
    "contextual",
    "delayed",
    "heavy",
    "light",
    "lower_bound",
    "named",
    "paper",
]

Shape = Literal["left-skewed", "symmetric", "right-skewed"]


@dataclass(frozen=True)
class Task:
    """A problem with a name, a horizon and a description."""

    name: str
    problem: Problem
    horizon: int
    about: str
    shape: Shape

    @property
    def uniform(self) -> float:
        """The mean regret of choosing arms at random, which is the baseline."""
        return self.problem.uniform_regret(self.horizon)

    @property
    def centred_assumption(self) -> bool:
        """Whether the best arm satisfies truncated non-positivity about its median."""
        return self.shape != "right-skewed"

    @property
    def infinite_variance(self) -> bool:
        """Whether some arm has an infinite variance."""
        return self.problem.tail_index <= 2.0


@dataclass(frozen=True)
class Suite:
    """A set of tasks with a name and a version."""

    name: str
    version: int
    tasks: tuple[Task, ...]


def _steps(first: float, step: float, arms: int) -> list[float]:
    return [round(first + step * i, 9) for i in range(arms)]


def heavy() -> Suite:
    """Return seventeen problems with tail indices 1.1 to 3 and K = 2 to 50. Three are right-skewed controls, one is light-tailed.

    The position of the best arm varies, since many policies choose the first arm in a tie.

    >>> suite = heavy()
    >>> suite.name, suite.version, len(suite.tasks)
    ('heavy', 1, 17)
    >>> [task.name for task in suite.tasks if not task.centred_assumption]
    ['revenue-1.6', 'revenue-1.3', 'orders']
    """
    return _suite("heavy", _HEAVY)


def light() -> Suite:
    """Return eight problems without heavy tails, which show the cost of robustness where it is not needed.

    >>> [task.name for task in light().tasks if not task.centred_assumption]
    ['clicks', 'ratings']
    """
    return _suite("light", _LIGHT)


def paper() -> Suite:
    """Return ten problems: eight satisfy the assumption of the AdaR-UCB paper, and two violate it.

    >>> [task.name for task in paper().tasks if not task.problem.assumption().holds]
    ['control-pareto', 'control-shifted']
    """
    return _suite("paper", _PAPER)


def lower_bound() -> Suite:
    """Return the problems behind the paper's Theorems 2, 3 and 4, each with the gap that its proof chooses for T = 10,000.

    Theorems 2 and 3 use pairs of problems. A policy that does well on one of them does badly on the other.

    >>> len(lower_bound().tasks)
    10
    """
    return Suite("lower-bound", 1, _LOWER_BOUND)


def changing() -> Suite:
    """Return sixteen problems for policies that follow changes: eight with log-normal and eight with Pareto costs.

    Of each eight, one never changes. The others change as `robandit.problems.changing` describes, at half of the horizon;
    ``several`` changes at each quarter. Regret is dynamic.

    >>> [task.name for task in changing().tasks if task.name.endswith("pareto")][:4]
    ['stationary-pareto', 'swap-pareto', 'rise-pareto', 'fall-pareto']
    """
    return Suite("changing", 1, _CHANGING)


def delayed() -> Suite:
    """Return seven problems with six delays each: none, 10, 100, 1,000, Pareto(1) with median 300, and batches of 300.

    A constant delay begins the name of its problems. T = 5,000.

    >>> [task.name for task in delayed().tasks if task.name.endswith("orders")]
    ['0-orders', '10-orders', '100-orders', '1000-orders', 'pareto-orders', 'batches-orders']
    """
    return Suite("delayed", 1, _DELAYED)


@cache
def contextual() -> Suite:
    """Return thirty-six problems with contexts: light and heavy tails, families held out while AdaClip was tuned, and traps.

    Names begin with their part: ``light``, ``heavy``, ``held-out`` or ``trap``. Recorded sets need files: see
    benchmarks/contexts.py. T = 5,000. Each replication draws coefficients of its own.

    >>> names = [task.name.partition("/")[0] for task in contextual().tasks]
    >>> {part: names.count(part) for part in dict.fromkeys(names)}
    {'light': 8, 'heavy': 17, 'held-out': 5, 'trap': 6}
    """
    return Suite("contextual", 1, _contextual_tasks())


NAMES: dict[str, Callable[[], Suite]] = {
    "heavy": heavy,
    "light": light,
    "paper": paper,
    "lower-bound": lower_bound,
    "changing": changing,
    "delayed": delayed,
    "contextual": contextual,
}


def named(name: str) -> Suite:
    """Return the suite with that name.

    >>> named("light").version
    1
    """
    return NAMES[choice(name, "suite", NAMES)]()


def _suite(name: str, tasks: tuple[Task, ...]) -> Suite:
    """Return version 1 of a suite. In each task some of the last arms (at least one, not all) are moved to the front."""
    rotated = []
    for i, task in enumerate(tasks):
        laws = task.problem.laws
        places = 1 + 3 * i % (len(laws) - 1)
        rotated.append(
            replace(task, problem=Problem([*laws[-places:], *laws[:-places]], minimize=task.problem.minimize))
        )
    return Suite(name, 1, tuple(rotated))


_left = partial(Task, shape="left-skewed")
_symmetric = partial(Task, shape="symmetric")
_right = partial(Task, shape="right-skewed")


def _lognormal(means: Iterable[float], sigma: float) -> Problem:
    """Return a problem of log-normal costs with these means."""
    return Problem([-LogNormal(round(math.log(mean) - sigma**2 / 2, 12), sigma) for mean in means])


def _stars(d: float) -> Discrete:
    return Discrete((1.0, 2.0, 3.0, 4.0, 5.0), probabilities=(0.2 - d, 0.3 - d, 0.2, 0.15 + d, 0.15 + d))


def _body_and_tail(scale: float) -> Mixture:
    return Mixture((Gaussian(0.0, 1.0), -Pareto(1.5, scale)), weights=(0.9, 0.1))


# Tables, with at most two lines per task.
# fmt: off
_HEAVY = (
    _left("pareto-2.2", negated_pareto([-1.0, -1.5, -2.0], tail=2.2), 10_000, "three costs with a barely finite variance"),
    _left("pareto-1.6", Problem([-Pareto(1.6, 1.0), -Pareto(1.6, 1.5)]), 10_000, "two costs with infinite variance"),
    _left("pareto-1.2", negated_pareto(_steps(-1.0, -0.25, 5), tail=1.2), 100_000,
          "five costs whose means come mostly from rare values"),
    _left("pareto-1.1", negated_pareto([-1.0, -2.0], tail=1.1), 100_000,
          "the heaviest tail: a thousand values say little about the mean"),
    _left("pareto-1.8-many", negated_pareto(_steps(-1.0, -0.1, 50), tail=1.8), 50_000, "fifty costs"),
    _left("latency", negated_lomax([-50.0, -55.0, -60.0, -70.0], tail=3.0), 50_000,
          "four latencies with tail index 3 and gaps of ten per cent"),
    _left("lognormal", Problem([-LogNormal(0.05 * i, 1.5) for i in range(20)]), 50_000,
          "twenty log-normal costs: all moments are finite, but the laws are far from Gaussian"),
    _left("stable-1.5", stable(_steps(0.0, -0.5, 5), alpha=1.5, beta=-1.0), 20_000,
          "five stable laws with a heavy tail only on the left"),
    _left("zeros", Problem([ZeroInflated(-Pareto(1.5, 1.0 + 0.25 * i), 0.6) for i in range(5)]), 20_000,
          "rare losses: sixty per cent of all rewards are 0"),
    _left("lower-bound", lower_bound_family(arms=5, eps=0.5, u=1.0, horizon=20_000, best=2), 20_000,
          "the instance of the paper's lower bound, on which no policy can do well"),
    _symmetric("student-1.5", student_t(_steps(0.0, -0.5, 10), dof=1.5), 10_000,
               "ten symmetric arms with infinite variance"),
    _symmetric("far", student_t(_steps(100.0, -0.5, 5), dof=2.0), 10_000,
               "means near 100 that differ by 0.5"),
    _symmetric("gaussian", gaussian(_steps(0.0, -0.2, 10)), 10_000, "light tails"),
    _symmetric("mixed", Problem([Gaussian(-2.5, 1.0), -Pareto(1.5, 1.0), -LogNormal(0.0, 1.5)]), 20_000,
               "a Gaussian arm against costs whose medians are better and whose means are worse"),
    _right("revenue-1.6", pareto([2.5, 2.0, 1.5], tail=1.6), 10_000,
           "control: rewards whose best arm violates AdaR-UCB's assumption"),
    _right("revenue-1.3", pareto([2.5, 2.0, 1.5], tail=1.3), 10_000, "control: the same with heavier tails"),
    _right("orders", Problem([ZeroInflated(LogNormal(2.0 - 0.1 * i, 1.5), 0.9) for i in range(5)]), 50_000,
           "control: one visitor in ten buys, for a log-normal amount"),
)

_LIGHT = (
    _symmetric("bernoulli", bernoulli(_steps(0.5, -0.05, 5)), 10_000, "five coins"),
    _right("clicks", bernoulli(_steps(0.05, -0.01, 4)), 50_000, "four rare clicks"),
    _symmetric("gaussian-2", gaussian([0.0, -0.2]), 10_000, "two Gaussian arms"),
    _symmetric("gaussian-20", gaussian(_steps(0.0, -0.1, 20)), 20_000, "twenty Gaussian arms"),
    _symmetric("unequal", Problem([Gaussian(0.0, 3.0), Gaussian(-0.5, 0.1), Gaussian(-1.0, 1.0)]), 10_000,
               "the best arm is the noisiest"),
    _left("exponential", Problem([-Weibull(shape=1.0, scale=1.0 + 0.1 * i) for i in range(5)]), 20_000,
          "five exponential waiting times"),
    _right("ratings", Problem([_stars(0.1), _stars(0.05), _stars(0.0)]), 10_000, "one to five stars"),
    _symmetric("offset", gaussian(_steps(100.0, -0.2, 5)), 10_000, "Gaussian arms far from zero"),
)

_PAPER = (
    _left("negated-pareto", negated_pareto([-1.0, -2.0, -3.0], tail=1.5), 100_000, "costs without a variance"),
    _left("negated-pareto-light", negated_pareto([-1.0, -2.0, -3.0], tail=2.5), 100_000,
          "the same costs with a variance"),
    _left("negated-lomax", negated_lomax([-1.0, -2.0], tail=1.8), 100_000, "two Lomax costs"),
    _left("negated-frechet", Problem([-Frechet(tail=1.8, scale=1.0 + i) for i in range(3)]), 100_000,
          "three Frechet costs"),
    _left("negated-lognormal", Problem([-LogNormal(0.5 * i, 1.0) for i in range(4)]), 50_000, "four log-normal costs"),
    _symmetric("symmetric", student_t(_steps(0.0, -1.0, 3), dof=1.5), 50_000, "symmetric about 0"),
    _left("mixture", Problem([_body_and_tail(2.0), _body_and_tail(5.0), _body_and_tail(8.0)]), 50_000,
          "a Gaussian body with a heavier left tail"),
    _left("zeros", Problem([ZeroInflated(-Pareto(1.8, 1.0 + i), 0.8) for i in range(3)]), 50_000,
          "four rewards of five are 0: P(X != 0) enters the bound"),
    _right("control-pareto", pareto([3.0, 2.0, 1.0], tail=1.5), 50_000,
           "control: revenue, for which the assumption fails"),
    _symmetric("control-shifted", Problem([StudentT(dof=1.5, loc=3.0 - i) for i in range(3)]), 50_000,
               "control: symmetric about a positive mean, so the assumption about 0 fails"),
)
# fmt: on

_FIRST_U, _SECOND_U = u_adaptive_pair(u=1.0, u_alternative=20.0, delta=0.1873, eps=1.0)
_FIRST_EPS, _SECOND_EPS = eps_adaptive_pair(delta=0.1378)
_LOWER_BOUND = (
    _right("theorem-2-first", _FIRST_U, 10_000, "arm 1 pays now and then, arm 0 never"),
    _right("theorem-2-second", _SECOND_U, 10_000, "the same, but arm 0 pays twice as much, more seldom"),
    _right("theorem-3-first", _FIRST_EPS, 10_000, "arm 1 pays now and then, arm 0 never"),
    _right("theorem-3-second", _SECOND_EPS, 10_000, "the same, but arm 0 pays twice as much, much more seldom"),
    *(
        _left(
            f"theorem-4-{arms}-arms-eps-{eps:g}{'' if best is None else '-moved'}",
            lower_bound_family(arms=arms, eps=eps, u=1.0, horizon=10_000, best=best),
            10_000,
            "rare losses at the hardest gap" + ("" if best is None else ", another arm the best"),
        )
        for arms, eps in ((2, 1.0), (5, 0.5), (10, 0.3))
        for best in (None, arms - 1)
    ),
)

_SIZES = (1.5, 1.0, 2.0)
_COSTS = {
    "lognormal": _lognormal(_SIZES, 1.0),
    "pareto": negated_pareto([-size for size in _SIZES], tail=1.5),
}
_CHANGING = tuple(
    task
    for family, base in _COSTS.items()
    for task in (
        _left(f"stationary-{family}", base, 20_000, "three costs that never change"),
        *(
            _left(
                f"{kind}-{family}",
                changing_problem(kind, base, at=5_000 if kind == "several" else 10_000),
                20_000,
                f"three costs that change: {kind}",
            )
            for kind in KINDS
        ),
    )
)

# The last two are like recorded sets, the prices of advertisements and the latencies of servers, that benchmarks/delayed.py plays.
_SERVERS = ((0.1, 0.13), (0.03, 0.07), (0.2, 0.09), (0.07, 0.16), (0.03, 0.04), (0.2, 0.11), (0.03, 0.055), (0.1, 0.23),
            (0.03, 0.08), (0.2, 0.15))  # fmt: skip
_PROMPT = (
    _left("close-lognormal", _lognormal((1.1, 1.5, 1.0, 1.05, 1.2), 1.0), 5_000, "five costs, the best 5 % apart"),
    _left("pair-lognormal", _lognormal((1.05, 1.0), 0.5), 5_000, "two costs that differ by 5 %"),
    _left("costs", negated_pareto([-1.5, -1.0, -2.0], tail=1.5), 5_000, "three costs with infinite variance"),
    _left("ten-lognormal", _lognormal([(9.0 + (7 * i + 4) % 10) / 9.0 for i in range(10)], 1.5), 5_000, "ten heavy costs"),
    _right("orders", pareto([1.6, 1.0, 2.0, 1.4], tail=2.2), 5_000, "four rewards with a heavy right tail"),
    _left("prices-lognormal", _lognormal((0.55, 0.35, 0.8), 0.45), 5_000, "three prices"),
    _left("servers", Problem([-(Lomax(2.5, 1.5 * extra) + base) for base, extra in _SERVERS]), 5_000,
          "ten latencies: a base and a heavy tail"),
)  # fmt: skip
_DELAYS: dict[str, int | delays.Delay] = {"0": 0, "10": 10, "100": 100, "1000": 1_000}
_DELAYS |= {"pareto": delays.pareto(median=300), "batches": delays.batches(300)}
_DELAYED = tuple(
    replace(task, name=f"{name}-{task.name}", problem=delayed_problem(task.problem, delay))
    for name, delay in _DELAYS.items()
    for task in _PROMPT
)


def _mean_one(sigma: float) -> LogNormal:
    return LogNormal(-sigma * sigma / 2, sigma)


def _gamma(shape: float) -> Empirical:
    """Return 4,000 quantiles of the gamma law with mean 1."""
    from scipy.special import gammaincinv

    return Empirical(np.round(gammaincinv(shape, (np.arange(4000) + 0.5) / 4000) / shape, 9))


def _contextual_tasks() -> tuple[Task, ...]:
    gauss = Gaussian(0.0, 1.0)
    costs, revenue = partial[Problem](linear, kind="costs"), partial[Problem](linear, kind="revenue")
    uniform = Empirical(np.round(np.arange(-1000, 1001) * math.sqrt(3.0) / 1000.5, 9))
    root: dict[str, Any] = {"base": 0.3, "contexts": "binary"}
    binary6, binary4 = ({**root, "level": d**-0.5, "slope": d**-0.5} for d in (6, 4))
    outage = Mixture((_gamma(3.0), 20.0 * _gamma(3.0)), weights=(0.98, 0.02))
    laplace = Mixture((Weibull(shape=1.0, scale=1.0), -Weibull(shape=1.0, scale=1.0)), weights=(0.5, 0.5))
    loud, louder = ([Gaussian(1.0, 0.1), _mean_one(sigma)] for sigma in (1.5, 2.0))
    parts: dict[str, tuple[Callable[..., Task], dict[str, Problem]]] = {
        "light": (_symmetric, {
            "gauss K10 d5, x 30 + 150": linear(10, 5, gauss, scale=30.0, offset=150.0),
            "gauss K10 d5, / 30 + 0.17": linear(10, 5, gauss, scale=1 / 30, offset=5 / 30),
            "gauss K3 d2": linear(3, 2, gauss),
            "gauss K10 d5": linear(10, 5, gauss),
            "gauss K10 d20": linear(10, 20, gauss),
            "uniform K3 d5": linear(3, 5, uniform),
            "gauss shared K10 d20": linear(10, 20, gauss, shared=True),
            "gamma4 costs K3 d5": costs(3, 5, _gamma(4.0), contexts="uniform"),
        }),
        "heavy": (_left, {
            "t2.2 K3 d5": linear(3, 5, StudentT(dof=2.2)),
            "t1.5 K3 d2": linear(3, 2, StudentT(dof=1.5)),
            "t1.5 K10 d5": linear(10, 5, StudentT(dof=1.5)),
            "-pareto1.5 K3 d5": linear(3, 5, -Pareto(1.5)),
            "-pareto1.5 K10 d5": linear(10, 5, -Pareto(1.5)),
            "-pareto2.2 K10 d20": linear(10, 20, -Pareto(2.2)),
            "-lognormal1.5 K3 d5": linear(3, 5, -_mean_one(1.5)),
            "pareto1.6 K3 d5": linear(3, 5, Pareto(1.6)),
            "t1.5 shared K10 d5": linear(10, 5, StudentT(dof=1.5), shared=True),
            "-pareto1.5 shared K3 d20": linear(3, 20, -Pareto(1.5), shared=True),
            "pareto1.5 costs K3 d2": costs(3, 2, Pareto(1.5), contexts="uniform"),
            "pareto1.5 costs K10 d5": costs(10, 5, Pareto(1.5), contexts="uniform"),
            "lognormal1.5 costs K3 d5": costs(3, 5, _mean_one(1.5), contexts="uniform"),
            "lognormal1.5 costs, log link K3 d5": costs(3, 5, _mean_one(1.5), log_link=True),
            "pareto1.6 revenue K3 d5": revenue(3, 5, Pareto(1.6), contexts="uniform"),
            "pareto1.5 cells K3": costs(3, 7, Pareto(1.5), contexts="cells"),
            "lognormal1.5 cells K10": costs(10, 7, _mean_one(1.5), contexts="cells"),
        }),
        "held-out": (_left, {
            "laplace K5 d8": linear(5, 8, laplace, contexts="symmetric", level=0.7, slope=0.7),
            "stable1.4 K4 d4": linear(4, 4, Stable(1.4, scale=0.5), contexts="symmetric", level=0.7, slope=0.7),
            "zeros K4 d6": costs(4, 6, ZeroInflated(Pareto(1.8), 0.6), **binary6),
            "weibull0.4 K5 d4": costs(5, 4, Weibull(shape=0.4, scale=1.0), **binary4),
            "outages K4 d6": costs(4, 6, outage, **binary6),
        }),
        "trap": (_right, {
            f"{kind.keywords['kind']}, {mean:g} v 1, lognormal{sigma}": kind(
                2, 3, noise, coefficients=[[1.0, 0.05, 0.0], [mean, 0.0, 0.05]], base=0.0
            )
            for kind in (costs, revenue)
            for mean, sigma, noise in ((1.3, "1.5", loud), (1.5, "2", louder), (0.7, "1.5", loud))
        }),
    }  # fmt: skip
    about = {"light": "light tails", "heavy": "heavy tails", "held-out": "a family that was not used for tuning"}
    about["trap"] = "a calm arm against one whose mean comes from rare huge values"
    return tuple(
        make(f"{part}/{name}", problem, 5_000, about[part])
        for part, (make, problems) in parts.items()
        for name, problem in problems.items()
    )

"""Fixed sets of problems, so that figures can be compared between policies, versions and people.

A suite never changes under its name and version: a new problem makes a new version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from robandit.laws import Gaussian, LogNormal, Pareto, ZeroInflated
from robandit.problems import (
    Problem,
    gaussian,
    lower_bound_family,
    negated_lomax,
    negated_pareto,
    pareto,
    stable,
    student_t,
)

__all__ = ["Suite", "Task", "heavy"]

Shape = Literal["left-skewed", "symmetric", "right-skewed"]


@dataclass(frozen=True)
class Task:
    """A problem with the horizon at which it is played."""

    name: str
    problem: Problem
    horizon: int
    shape: Shape
    about: str

    @property
    def uniform(self) -> float:
        """The mean regret of choosing arms at random: the yardstick."""
        return float(self.horizon * self.problem.gaps.mean())

    @property
    def centred_assumption(self) -> bool:
        """Whether a best arm satisfies truncated non-positivity about its own median, which AdaKL-UCB asks for."""
        return self.shape != "right-skewed"

    @property
    def infinite_variance(self) -> bool:
        """Whether some arm has no variance."""
        return self.problem.tail_index <= 2.0


@dataclass(frozen=True)
class Suite:
    """Tasks under a name and a version."""

    name: str
    version: int
    tasks: tuple[Task, ...]


def _steps(first: float, step: float, arms: int) -> list[float]:
    return [round(first + step * i, 9) for i in range(arms)]


def heavy() -> Suite:
    """Seventeen problems over tail indices 1.1 to 3 and K = 2 to 50, one of them light-tailed, three right-skewed controls.

    The best arm stands in all kinds of places, since ties often go to the first.

    >>> suite = heavy()
    >>> suite.name, suite.version, len(suite.tasks)
    ('heavy', 1, 17)
    >>> [task.name for task in suite.tasks if not task.centred_assumption]
    ['revenue-1.6', 'revenue-1.3', 'orders']
    """
    return Suite("heavy", 1, tuple(_turned(task, 3 * j) for j, task in enumerate(_HEAVY)))


def _turned(task: Task, turn: int) -> Task:
    """The same task with its arms moved on by at least one place, the last ones to the front."""
    laws = task.problem.laws
    places = 1 + turn % (len(laws) - 1)
    return replace(task, problem=Problem([*laws[-places:], *laws[:-places]]))


_HEAVY = (
    Task(
        "pareto-2.2",
        negated_pareto(means=[-1.0, -1.5, -2.0], tail=2.2),
        10_000,
        "left-skewed",
        "three costs with a variance, barely",
    ),
    Task(
        "pareto-1.6",
        Problem([-Pareto(1.6, 1.0), -Pareto(1.6, 1.5)]),
        10_000,
        "left-skewed",
        "two costs without a variance",
    ),
    Task(
        "pareto-1.2",
        negated_pareto(means=_steps(-1.0, -0.25, 5), tail=1.2),
        100_000,
        "left-skewed",
        "five costs, most of each mean in rare values",
    ),
    Task(
        "pareto-1.1",
        negated_pareto(means=[-1.0, -2.0], tail=1.1),
        100_000,
        "left-skewed",
        "the heaviest tail: a mean that a thousand values hardly show",
    ),
    Task(
        "pareto-1.8-many",
        negated_pareto(means=_steps(-1.0, -0.1, 50), tail=1.8),
        50_000,
        "left-skewed",
        "fifty costs",
    ),
    Task(
        "latency",
        negated_lomax(means=[-50.0, -55.0, -60.0, -70.0], tail=3.0),
        50_000,
        "left-skewed",
        "four latencies with tail index 3 and gaps of ten per cent",
    ),
    Task(
        "lognormal",
        Problem([-LogNormal(0.05 * i, 1.5) for i in range(20)]),
        50_000,
        "left-skewed",
        "twenty log-normal costs: all moments, yet far from Gaussian",
    ),
    Task(
        "stable-1.5",
        stable(means=_steps(0.0, -0.5, 5), alpha=1.5, beta=-1.0),
        20_000,
        "left-skewed",
        "five stable laws with all of the weight on the left",
    ),
    Task(
        "zeros",
        Problem([ZeroInflated(-Pareto(1.5, 1.0 + 0.25 * i), 0.6) for i in range(5)]),
        20_000,
        "left-skewed",
        "rare losses: sixty per cent of all rewards are 0",
    ),
    Task(
        "lower-bound",
        lower_bound_family(arms=5, eps=0.5, u=1.0, horizon=20_000, best=2),
        20_000,
        "left-skewed",
        "the paper's instance on which no policy can do well",
    ),
    Task(
        "student-1.5",
        student_t(means=_steps(0.0, -0.5, 10), dof=1.5),
        10_000,
        "symmetric",
        "ten symmetric arms without a variance",
    ),
    Task(
        "far",
        student_t(means=_steps(100.0, -0.5, 5), dof=2.0),
        10_000,
        "symmetric",
        "means a hundred times their differences away from zero",
    ),
    Task(
        "gaussian",
        gaussian(means=_steps(0.0, -0.2, 10)),
        10_000,
        "symmetric",
        "the light-tailed one",
    ),
    Task(
        "mixed",
        Problem([Gaussian(-2.5, 1.0), -Pareto(1.5, 1.0), -LogNormal(0.0, 1.5)]),
        20_000,
        "symmetric",
        "a Gaussian arm against costs whose medians are better and whose means are worse",
    ),
    Task(
        "revenue-1.6",
        pareto(means=[2.5, 2.0, 1.5], tail=1.6),
        10_000,
        "right-skewed",
        "control: rewards whose best arm breaks every assumption of AdaR-UCB",
    ),
    Task(
        "revenue-1.3",
        pareto(means=[2.5, 2.0, 1.5], tail=1.3),
        10_000,
        "right-skewed",
        "control: the same with heavier tails",
    ),
    Task(
        "orders",
        Problem([ZeroInflated(LogNormal(2.0 - 0.1 * i, 1.5), 0.9) for i in range(5)]),
        50_000,
        "right-skewed",
        "control: one visitor in ten buys, for a log-normal amount",
    ),
)

"""Problems with another objective than the mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from robandit.errors import InvalidInput, NotApplicable, excerpt
from robandit.hints import guided
from robandit.kernel.types import Floats, UInts
from robandit.laws import Bernoulli, Law, LawTable
from robandit.objectives import Objective, objective_from
from robandit.problems.changing import Changing
from robandit.problems.contextual import Contextual
from robandit.problems.delayed import Delayed
from robandit.problems.problem import Problem
from robandit.problems.replays import InOrder, Logged
from robandit.validation import invalid


@guided
@dataclass(frozen=True, init=False, repr=False)
class OfQuantile(Problem):
    """A problem in which the best arm has the best quantile; `with_objective` makes it.

    Laws and means are those of the problem inside. Gaps, and so regret, are differences of quantiles. Bounds are not claimed.
    """

    problem: Problem
    objective: Objective
    independent: ClassVar[bool] = False

    def __init__(self, problem: Problem, objective: Objective) -> None:
        """Store both."""
        super().__init__(problem.laws, problem.names, problem.minimize)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "objective", objective)

    def __repr__(self) -> str:
        """Return the call that makes the problem."""
        return f"with_objective({self.problem!r}, {self.objective.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the two parts only, not the values computed from them."""
        return OfQuantile, (self.problem, self.objective)

    @cached_property
    def quantiles(self) -> Floats:
        """The quantiles of the laws, in the sign of the problem."""
        q = self.objective.q
        assert q is not None
        if self.minimize:
            return np.array([_quantile(law, q) for law in self.laws])
        return np.array(
            [0.0 - _quantile(-law, round(1.0 - q, 12)) for law in self.laws]
        )  # the upper one, where they are an interval

    @cached_property
    def gaps(self) -> Floats:
        """The distance of each arm's quantile from the best one."""
        values = self.quantiles
        return np.asarray(values - values.min() if self.minimize else values.max() - values)

    def stretches(self, horizon: int) -> Iterable[tuple[Problem, int]]:
        """Return the pieces of the problem inside, with this objective."""
        return ((OfQuantile(piece, self.objective), end) for piece, end in self.problem.stretches(horizon))

    def tabulate(self) -> LawTable:
        """Return the table of the problem inside."""
        return self.problem.tabulate()

    def at_start(self, replication: int, words: UInts) -> LawTable:
        """Return the table of the problem inside."""
        return self.problem.at_start(replication, words)

    def check_horizon(self, horizon: int) -> None:
        """Raise `InvalidInput` if the problem inside cannot be played that long."""
        self.problem.check_horizon(horizon)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON data."""
        return {"objective": self.objective.text, "of": self.problem.to_dict()}


@guided
def with_objective(problem: Problem, objective: str) -> Problem:
    """Return a problem with another objective: the same rewards, but another best arm, and other gaps.

    Parameters
    ----------
    problem
        Any problem. A table that is played in order has no quantiles: its regret is a sum of rewards.
    objective
        ``"mean"`` returns the problem. A quantile, such as ``"p95"``: gaps are differences of quantiles. A limit, such as
        ``"within:2.0"``: policies learn whether a reward is beyond it (a cost above it, or a reward below it), as a cost of 1, and
        regret is a number of such rewards.

    Examples
    --------
    >>> import robandit as rb
    >>> laws = [rb.laws.Pareto(tail=1.5), rb.laws.Pareto(tail=3.0, scale=2.2)]
    >>> waits = rb.Problem(laws, minimize=True)
    >>> waits.best_arm, with_objective(waits, "p95").best_arm
    (0, 1)
    >>> with_objective(waits, "within:5.0").means.round(4).tolist()
    [0.0894, 0.0852]
    """
    chosen = objective_from(objective)
    if chosen.text == "mean":
        return problem
    if not isinstance(problem, Problem) or isinstance(problem, OfQuantile):
        raise invalid("problem", problem, "a problem whose objective is the mean", owner="with_objective")
    if isinstance(problem, Delayed):
        return Delayed(with_objective(problem.problem, objective), problem.delay)
    if isinstance(problem, Contextual):
        raise NotApplicable("a problem with contexts has the objective mean: regret is against the best mean at each x")
    if chosen.q is not None:
        if isinstance(problem, InOrder):
            raise NotApplicable(f"a table in order has no {chosen.text}: its regret is a sum of rewards; draw from it")
        return OfQuantile(problem, chosen)
    return _within(problem, chosen)


def _within(problem: Problem, objective: Objective) -> Problem:
    """Return the problem whose costs are 1 for a reward beyond the limit, and 0 for others."""
    limit, minimize = objective.limit, problem.minimize
    assert limit is not None
    if isinstance(problem, Changing):
        return Changing([(time, _within(piece, objective)) for time, piece in problem.pieces], problem.period)
    if isinstance(problem, InOrder | Logged):
        beyond = (problem.rewards > limit if minimize else problem.rewards < limit).astype(np.float64)
        if isinstance(problem, InOrder):
            return InOrder(beyond, problem.names, minimize=True)
        return Logged(problem.actions, beyond, problem.names, problem.propensities, minimize=True)
    shares = (1.0 - (law.cdf(limit) if minimize else (-law).cdf(-limit)) for law in problem.laws)
    return Problem([Bernoulli(p=float(share)) for share in shares], problem.names, minimize=True)


def _quantile(law: Law, q: float) -> float:
    """Return a law's quantile, by bisection if it has none in closed form."""
    try:
        return float(law.ppf(q))
    except InvalidInput:
        low, high = -1.0, 1.0
    while law.cdf(high) < q:
        high *= 2.0
    while law.cdf(low) >= q:
        low *= 2.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if law.cdf(middle) >= q else (middle, high)
    return high


def of_quantile_from_dict(data: Mapping[str, Any]) -> Problem:
    """Return the problem that `OfQuantile.to_dict` wrote."""
    if set(data) != {"objective", "of"}:
        raise InvalidInput(f"a problem with an objective has objective and of; this one has {excerpt(data)}")
    return with_objective(Problem.from_dict(data["of"]), data["objective"])

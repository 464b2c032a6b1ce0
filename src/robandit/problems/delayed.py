"""Problems whose rewards come late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from robandit.errors import InvalidInput, excerpt
from robandit.hints import guided
from robandit.kernel.types import Floats
from robandit.laws import Verdict
from robandit.problems.delays import Delay, delay_of
from robandit.problems.problem import Problem
from robandit.validation import invalid


@guided
@dataclass(frozen=True, init=False, repr=False)
class Delayed(Problem):
    """A problem whose rewards come late; `delayed` makes it.

    Laws, means and gaps are those of the problem inside. Bounds are not claimed, since all of them assume that the reward of a
    decision is known before the next one.
    """

    problem: Problem
    delay: Delay
    independent: ClassVar[bool] = False

    def __init__(self, problem: Problem, delay: int | Delay) -> None:
        """Check and store both."""
        if not isinstance(problem, Problem) or isinstance(problem, Delayed):
            raise invalid(
                "problem", problem, "a Problem without delays", hint="such as robandit.problems.gaussian(...)"
            )
        super().__init__(problem.laws, problem.names, problem.minimize)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "delay", delay_of(delay))

    def __repr__(self) -> str:
        """Return the call that makes the problem."""
        return f"delayed({self.problem!r}, {self.delay!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the two parts only, not the values computed from them."""
        return Delayed, (self.problem, self.delay)

    @property
    def gaps(self) -> Floats:
        """The gaps of the problem inside, which may have another objective than the mean."""
        return self.problem.gaps

    @property
    def tail_index(self) -> float:
        """The smallest tail index of the problem inside."""
        return self.problem.tail_index

    def u(self, eps: float) -> float:
        """Return the smallest valid bound on raw moments."""
        return self.problem.u(eps)

    def v(self, eps: float) -> float:
        """Return the smallest valid bound on centred moments."""
        return self.problem.v(eps)

    def assumption(self) -> Verdict:
        """Return the verdict of the problem inside."""
        return self.problem.assumption()

    def stretches(self, horizon: int) -> Iterable[tuple[Problem, int]]:
        """Return the pieces of the problem inside."""
        return self.problem.stretches(horizon)

    def uniform_regret(self, horizon: int) -> float:
        """Return that of the problem inside."""
        return self.problem.uniform_regret(horizon)

    def check_horizon(self, horizon: int) -> None:
        """Raise `InvalidInput` if the problem inside cannot be played that long."""
        self.problem.check_horizon(horizon)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON data."""
        return {"delayed": self.problem.to_dict(), "delay": self.delay.to_dict()}


@guided
def delayed(problem: Problem, delay: int | Delay) -> Delayed:
    """Return a problem whose rewards come late: that of decision t (from 0) is known before decision t + 1 + delay.

    Rewards are learned in the order in which they arrive, those that arrive together in the order of the decisions. Those that
    arrive after the horizon are never learned. Regret counts when the decision is made. As without delays, the k-th reward of an
    arm is the same for all policies; so are the delays, which have a random stream of their own in each replication.

    Parameters
    ----------
    problem
        Any problem, also one that changes or that replays a record.
    delay
        How many further decisions are made before a reward is known: an integer, or the law of a random number
        (`robandit.problems.delays`).

    Examples
    --------
    >>> import robandit as rb
    >>> problem = delayed(rb.problems.gaussian(means=[0.0, -1.0]), rb.problems.delays.batches(100))
    >>> rb.simulate([rb.UCB1(), rb.AdaKLUCB()], problem, 100, replications=1, seed=0).pulls.tolist()
    [[[50, 50]], [[50, 50]]]
    """
    return Delayed(problem, delay)


def delayed_from_dict(data: Mapping[str, Any]) -> Delayed:
    """Return the problem that `Delayed.to_dict` wrote."""
    if set(data) != {"delayed", "delay"}:
        raise InvalidInput(f"a delayed problem has delayed and delay; this one has {excerpt(data)}")
    return Delayed(Problem.from_dict(data["delayed"]), Delay.from_dict(data["delay"]))

"""Problems whose laws change with time.

A changing problem is a list of ordinary problems with the same arms and the times at which each begins. `simulate` plays one after
the other, with one state of the policy. Regret is dynamic: each pull adds the greatest mean at this time minus the arm's mean at
this time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from robandit.errors import InvalidInput, excerpt
from robandit.hints import guided
from robandit.laws import Law, LawTable, Mixture, Verdict
from robandit.laws.combinators import scaled_to_mean
from robandit.problems.problem import Problem
from robandit.validation import choice, integer, invalid, items_of, seed

Kind = Literal["swap", "rise", "fall", "tail", "load", "several", "slow"]
KINDS: tuple[Kind, ...] = ("swap", "rise", "fall", "tail", "load", "several", "slow")
RARE = 0.03  # probability of the losses that "tail" adds
MOST_CHANGES = 100_000  # of "several"; each is a problem of its own
STEPS = 100  # pieces in a period of "slow"
SWING = 0.5  # amplitude of "slow", relative to the means


@guided
@dataclass(frozen=True, init=False, repr=False)
class Changing(Problem):
    """A problem made of pieces: ordinary problems with the same arms, each of which begins at its time.

    The laws, means, gaps and best arm are those of the first piece. `tail_index`, `u` and `v` hold for all pieces, so that a policy
    with required parameters gets valid ones. Bounds are not claimed, since all of them assume that laws do not change.

    Parameters
    ----------
    pieces
        Pairs of a time and a problem, with increasing times. The first time is 0. A piece lasts until the next one begins.
    period
        Begin again with the first piece after this many pulls. None: the last piece lasts for ever.

    Examples
    --------
    >>> import robandit as rb
    >>> before, after = rb.problems.gaussian(means=[0.0, -1.0]), rb.problems.gaussian(means=[-3.0, -1.0])
    >>> problem = Changing([(0, before), (60, after)])
    >>> rb.simulate(rb.Oracle(arm=0), problem, 100, replications=1, seed=0, checkpoints=[60, 100]).regret.tolist()
    [[[0.0, 80.0]]]
    """

    pieces: tuple[tuple[int, Problem], ...]
    period: int | None
    independent: ClassVar[bool] = False

    def __init__(self, pieces: Sequence[tuple[int, Problem]], period: int | None = None) -> None:
        checked = _checked_pieces(pieces)
        super().__init__(checked[0][1].laws, checked[0][1].names, checked[0][1].minimize)
        if period is not None:
            period = integer(
                period, "period", checked[-1][0] + 1, hint="the last piece must begin before the period ends"
            )
        object.__setattr__(self, "pieces", checked)
        object.__setattr__(self, "period", period)

    def __repr__(self) -> str:
        again = "" if self.period is None else f", period={self.period}"
        if len(self.pieces) > 4:
            return f"<Changing: {len(self.pieces)} pieces of {self.arms} arms{again}>"
        return f"Changing({list(self.pieces)!r}{again})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Changing, (self.pieces, self.period)

    @property
    def changes(self) -> tuple[int, ...]:
        """The times at which the pieces begin, without 0."""
        return tuple(time for time, _ in self.pieces[1:])

    @property
    def tail_index(self) -> float:
        """The smallest tail index of an arm in any piece."""
        return min(problem.tail_index for _, problem in self.pieces)

    def u(self, eps: float) -> float:
        """Return the smallest valid bound on raw moments in all pieces."""
        return max(problem.u(eps) for _, problem in self.pieces)

    def v(self, eps: float) -> float:
        """Return the smallest valid bound on centred moments in all pieces."""
        return max(problem.v(eps) for _, problem in self.pieces)

    def assumption(self) -> Verdict:
        """Return the verdict of the first piece whose best arm violates the assumption, else of the first piece."""
        verdicts = [problem.assumption() for _, problem in self.pieces]
        return next((verdict for verdict in verdicts if not verdict.holds), verdicts[0])

    def at(self, time: int) -> Problem:
        """Return the problem that is played at a time, counted from 0.

        >>> from robandit.problems import gaussian
        >>> changing("swap", gaussian(means=[0.0, -1.0]), at=60).at(60).means.tolist()
        [-1.0, 0.0]
        """
        place = integer(time, "time", 0) % (self.period or math.inf)
        return next(problem for start, problem in reversed(self.pieces) if start <= place)

    # --- used by `simulate` ------------------------------------------------------------------------------------------

    def stretches(self, horizon: int) -> Iterator[tuple[Problem, int]]:
        """Yield each piece with the time at which it ends, until the horizon."""
        horizon, begun = integer(horizon, "horizon", 1), 0
        while True:
            ends = [*self.changes, math.inf if self.period is None else self.period]
            for (_, problem), end in zip(self.pieces, ends, strict=True):
                stop = int(min(begun + end, horizon))
                yield problem, stop
                if stop == horizon:
                    return
            begun += self.period or 0

    def uniform_regret(self, horizon: int) -> float:
        """Return the mean regret of choosing arms at random. A whole period is computed once."""
        horizon = integer(horizon, "horizon", 1)
        if self.period is None or horizon <= self.period:
            return super().uniform_regret(horizon)
        periods, rest = divmod(horizon, self.period)
        return periods * super().uniform_regret(self.period) + (super().uniform_regret(rest) if rest else 0.0)

    def tabulate(self) -> LawTable:
        """Return the table of the first piece."""
        return self.pieces[0][1].tabulate()

    # --- JSON --------------------------------------------------------------------------------------------------------

    def check_horizon(self, horizon: int) -> None:
        """Raise `InvalidInput` if a run would end before the first change: it would say nothing about changes."""
        if self.changes and integer(horizon, "horizon", 1) <= self.changes[0]:
            hint = "use a longer horizon, or changing(..., at=...) with an earlier change"
            raise invalid("horizon", horizon, f"above {self.changes[0]}, the pulls before the first change", hint=hint)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON data. Each different piece is written once."""
        different = list(dict.fromkeys(problem for _, problem in self.pieces))
        numbers = {problem: number for number, problem in enumerate(different)}
        return {
            "changing": [[time, numbers[problem]] for time, problem in self.pieces],
            "problems": [problem.to_dict() for problem in different],
            "period": self.period,
        }


def changing_from_dict(data: Mapping[str, Any]) -> Changing:
    """Return the problem that `Changing.to_dict` wrote."""
    if set(data) != {"changing", "problems", "period"}:
        raise InvalidInput(f"a changing problem has changing, problems and period; this one has {excerpt(data)}")
    problems = [Problem.from_dict(each) for each in items_of(data["problems"], "problems", "problems")]
    pieces = []
    for i, piece in enumerate(items_of(data["changing"], "changing", "pairs of a time and the number of a problem")):
        pair = items_of(piece, f"changing[{i}]", "a time and the number of a problem")
        if len(pair) != 2:
            raise invalid(f"changing[{i}]", piece, "a time and the number of a problem")
        pieces.append((pair[0], problems[integer(pair[1], f"changing[{i}][1]", 0, len(problems) - 1)]))
    return Changing(pieces, data["period"])


@guided
def changing(kind: Kind, problem: Problem, at: int = 10_000, *, changes: int = 3, seed: int = 0) -> Changing:
    """Return a problem that changes in one of seven ways. The first change comes after ``at`` pulls.

    ============ ==========================================================================================================
    kind         what changes
    ============ ==========================================================================================================
    ``swap``     the best and the worst arm exchange their laws
    ``rise``     the worst arm becomes the best: its mean is half the best cost (1.5 times the best reward)
    ``fall``     the best arm becomes the worst: its mean is 1.5 times the worst cost (half the worst reward)
    ``tail``     the best arm gets a rare large loss, of probability 3 %; its median hardly moves
    ``load``     all rewards double: every law changes, and the best arm stays the best
    ``several``  the laws are permuted at random at ``at``, 2 ``at``, ...; ``changes`` times, each time with another best arm
    ``slow``     the means follow sinusoids of period ``at`` and amplitude 50 %, shifted by a K-th of the period from arm to arm
    ============ ==========================================================================================================

    Laws are scaled to their new means. If means have different signs or are 0, laws are shifted, by half the difference of the best
    and the worst mean, beyond the best or the worst.

    Parameters
    ----------
    kind
        The kind of change.
    problem
        The problem before the change.
    at
        The number of pulls before the first change; the period of ``slow``.
    changes
        The number of changes of ``several``.
    seed
        The seed of the permutations of ``several``. They are the same in every replication.

    Examples
    --------
    >>> from robandit.problems import negated_pareto
    >>> base = negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    >>> [changing(kind, base).at(10_000).means.round(3).tolist() for kind in ("swap", "rise", "fall", "tail", "load")]
    [[-2.0, -1.5, -1.0], [-1.0, -1.5, -0.5], [-3.0, -1.5, -2.0], [-1.9, -1.5, -2.0], [-2.0, -3.0, -4.0]]
    """
    kind = choice(kind, "kind", KINDS)
    if type(problem) is not Problem:
        raise invalid("problem", problem, "a problem made of laws", hint="such as robandit.problems.gaussian(...)")
    at = integer(at, "at", 1)
    if kind == "slow":
        times = sorted({step * at // STEPS for step in range(STEPS)})
        return Changing([(time, _turned(problem, time / at)) for time in times], period=at)
    if kind == "several":
        return _several(problem, at, integer(changes, "changes", 1, MOST_CHANGES), seed)
    return Changing([(0, problem), (at, _changed(kind, problem))])


def _changed(kind: str, problem: Problem) -> Problem:
    """Return the problem after a single change."""
    laws = list(problem.reward_laws)
    means = np.array([law.mean for law in laws])
    best, worst = problem.best_arm, int(np.argmin(means))
    if kind == "swap":
        if means[best] == means[worst]:
            raise _unchanged("all arms have the same mean, so a swap cannot change the best arm")
        laws[best], laws[worst] = laws[worst], laws[best]
    elif kind == "rise":
        laws[worst] = _moved(laws[worst], _beyond(means, best, up=True))
    elif kind == "fall":
        laws[best] = _moved(laws[best], _beyond(means, worst, up=False))
    elif kind == "tail":
        others = np.delete(means, best)
        drop = max(0.9 * abs(float(means[best])), 1.5 * float(means[best] - others.max()))
        if drop == 0.0:
            raise _unchanged("the best arms tie at mean 0, so the size of a loss cannot be derived from it")
        laws[best] = Mixture((laws[best], laws[best] - drop / RARE), (1.0 - RARE, RARE))
    else:
        laws = [law * 2.0 for law in laws]
    return _remade(problem, laws)


def _unchanged(reason: str) -> InvalidInput:
    """Return the error about a problem that a kind of change leaves as it is."""
    return InvalidInput(f"this kind of change would change nothing: {reason}; take a problem with other means")


def _remade(problem: Problem, rewards: list[Law]) -> Problem:
    """Return the problem with other laws of the rewards."""
    laws = [-law for law in rewards] if problem.minimize else rewards
    return Problem(laws, problem.names, problem.minimize)


def _scalable(means: Any) -> bool:
    """Return whether all means have one sign, so that laws can be scaled."""
    return bool((means < 0.0).all() or (means > 0.0).all())


def _beyond(means: Any, arm: int, *, up: bool) -> float:
    """Return a mean that is better (``up``) or worse than that of the best or worst arm."""
    mean = float(means[arm])
    distance = 0.5 * abs(mean) if _scalable(means) else max(0.5 * float(np.ptp(means)), 1.0)
    return mean + distance if up else mean - distance


def _moved(law: Law, mean: float) -> Law:
    """Return the law with another mean: scaled if the sign stays, else shifted."""
    return scaled_to_mean(law, mean) if law.mean * mean > 0.0 else law + (mean - law.mean)


def _turned(problem: Problem, phase: float) -> Problem:
    """Return the problem of ``slow`` at a phase in [0, 1)."""
    means, laws = problem.means, []
    for arm, law in enumerate(problem.reward_laws):
        # Rounded, so that the fingerprint does not depend on the machine's sine.
        wave = round(SWING * math.sin(2.0 * math.pi * (phase + arm / problem.arms)), 12)
        laws.append(law * (1.0 + wave) if _scalable(means) else law + wave * max(float(np.ptp(means)), 1.0))
    return _remade(problem, laws)


def _several(problem: Problem, at: int, changes: int, given_seed: int) -> Changing:
    if len(problem.best_arms) == problem.arms:
        raise _unchanged("all arms have the same mean, so a permutation cannot change the best arm")
    generator = np.random.default_rng(seed(given_seed))
    pieces = [(0, problem)]
    while len(pieces) <= changes:
        order = generator.permutation(problem.arms)
        candidate = Problem([problem.laws[i] for i in order], problem.names, problem.minimize)
        if candidate.best_arms != pieces[-1][1].best_arms:
            pieces.append((at * len(pieces), candidate))
    return Changing(pieces)


def _checked_pieces(pieces: Any) -> tuple[tuple[int, Problem], ...]:
    items = items_of(pieces, "pieces", "pairs of a time and a problem")
    if not items:
        raise invalid("pieces", pieces, "at least one pair of a time and a problem")
    checked: list[tuple[int, Problem]] = []
    for i, item in enumerate(items):
        if type(item) not in (tuple, list) or len(item) != 2 or type(item[1]) is not Problem:
            raise invalid(f"pieces[{i}]", item, "a pair of a time and a problem made of laws")
        time = integer(item[0], f"pieces[{i}][0]", 0)
        if (checked and time <= checked[-1][0]) or (not checked and time != 0):
            rule = (
                f"later than the piece before it ({checked[-1][0]})"
                if checked
                else "0, the beginning of the first piece"
            )
            raise invalid(f"pieces[{i}][0]", time, rule)
        if checked and (item[1].names, item[1].minimize) != (checked[0][1].names, checked[0][1].minimize):
            raise invalid(
                f"pieces[{i}][1]", item[1], f"a problem with the same arms as the first, {checked[0][1].names}"
            )
        checked.append((time, item[1]))
    return tuple(checked)

"""A bandit instance: one law per arm, with known means."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from robandit.errors import InvalidInput, excerpt
from robandit.hints import guided
from robandit.kernel.types import Floats, UInts
from robandit.laws import Law, LawTable, Verdict, tabulate
from robandit.laws.base import law_with_mean
from robandit.validation import flag, integer, invalid, items_of, mapping, order, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 12  # arms; the repr of a problem with more is a summary
BULKY = 1 << 16  # bytes of JSON: only recorded rewards or thousands of arms need more


@guided
@dataclass(frozen=True, init=False)
class Problem:
    """A bandit problem: one law per arm, at least two arms, and finite means. Problems are immutable and hashable.

    Parameters
    ----------
    laws
        The arms' laws: of rewards, which are maximised, or of costs.
    names
        The arms' names, all different. Default: "0", "1", ...
    minimize
        Whether the laws are of costs, which are minimised: the best arm has the smallest mean. Laws and means stay costs. Policies
        learn from minus the cost.

    Examples
    --------
    >>> from robandit.laws import Gaussian, Pareto
    >>> problem = Problem([-Pareto(tail=1.5), Gaussian(mean=-5.0, sd=1.0)])
    >>> problem.means.tolist(), problem.gaps.tolist(), problem.best_arm
    ([-3.0, -5.0], [0.0, 2.0], 0)
    >>> problem.assumption().holds
    True
    >>> costs = Problem([Pareto(tail=1.5), Gaussian(mean=5.0, sd=1.0)], minimize=True)
    >>> costs.means.tolist(), costs.gaps.tolist(), costs.best_arm
    ([3.0, 5.0], [0.0, 2.0], 0)
    """

    laws: tuple[Law, ...]
    names: tuple[str, ...]
    minimize: bool
    independent: ClassVar[bool] = True
    """Whether rewards are independent draws from the laws, as every bound assumes."""

    def __init__(self, laws: Sequence[Law], names: Sequence[str] | None = None, minimize: bool = False) -> None:
        object.__setattr__(self, "minimize", flag(minimize, "minimize", owner=type(self).__name__))
        object.__setattr__(self, "laws", _checked_laws(laws))
        object.__setattr__(self, "names", _checked_names(names, self.arms))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the parameters only, not the values computed from them."""
        return Problem, (self.laws, self.names, self.minimize)

    def __repr__(self) -> str:
        if self.arms > MANY:
            sign = ", costs" * self.minimize
            return f"<{type(self).__qualname__}: {self.arms:,} arms{sign}, means {self.means.min():g} to {self.means.max():g}>"
        sign = ", minimize=True" * self.minimize
        return f"{type(self).__qualname__}(laws={self.laws!r}, names={self.names!r}{sign})"

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays."""
        from robandit.problems.plot import problem_html

        return problem_html(self)

    def plot(self) -> Figure:
        """Return a Matplotlib figure of the laws: their distribution functions and means, and their tails on logarithmic axes.

        It shows the first eight arms. A notebook displays it; a script calls ``savefig`` on it.

        >>> from robandit.problems import pareto
        >>> len(pareto(means=[1.0, 2.0], tail=1.5).plot().axes)
        2
        """
        from robandit.problems.plot import laws_figure

        return laws_figure(self)

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.laws)

    @cached_property
    def reward_laws(self) -> tuple[Law, ...]:
        """The laws of the rewards that policies learn from: the laws, negated if they are minimised."""
        return tuple(-law for law in self.laws) if self.minimize else self.laws

    @cached_property
    def means(self) -> Floats:
        """The means of the arms' laws (read-only)."""
        return _frozen([law.mean for law in self.laws])

    @cached_property
    def gaps(self) -> Floats:
        """The distance of each arm's mean from the best mean (read-only)."""
        return _frozen(self.means - np.min(self.means) if self.minimize else np.max(self.means) - self.means)

    @property
    def best_arm(self) -> int:
        """The first arm with the best mean: the greatest, or the smallest if costs are minimised."""
        return int(np.argmin(self.gaps))

    @property
    def best_arms(self) -> tuple[int, ...]:
        """All arms with the best mean."""
        return tuple(int(i) for i in np.flatnonzero(self.gaps == 0.0))

    @property
    def tail_index(self) -> float:
        """The smallest of the arms' tail indices: moments of smaller order are finite for every arm."""
        return min(law.tail_index for law in self.laws)

    def u(self, eps: float) -> float:
        """Return the smallest valid bound on raw moments: the maximum over the arms of E|X|^(1+eps), eps in (0, 1].

        >>> from robandit.problems import negated_pareto
        >>> negated_pareto(means=[-1.0, -2.0], tail=1.5).u(0.25)
        3.6144080144
        """
        return self._largest("absolute_moment", order(eps))

    def v(self, eps: float) -> float:
        """Return the smallest valid bound on centred moments: the maximum of E|X - mean|^(1+eps), eps in (0, 1]."""
        return self._largest("central_moment", order(eps))

    def _largest(self, moment: str, eps: float) -> float:
        """Return the largest moment of the laws. Many policies ask for it, and 100,000 quadratures take a minute, so it is kept."""
        if (moment, eps) not in self._moments:
            self._moments[moment, eps] = max(getattr(law, moment)(1.0 + eps) for law in dict.fromkeys(self.laws))
        return self._moments[moment, eps]

    @cached_property
    def _moments(self) -> dict[tuple[str, float], float]:
        return {}

    def assumption(self) -> Verdict:
        """Return whether the best arm satisfies E[X 1{|X| > M}] <= 0 for every M >= 0, as AdaR-UCB's analysis requires.

        X is the reward: minus the cost if costs are minimised. If there are several best arms, one is enough. Return the verdict
        of the first that satisfies it, else of the first.
        """
        laws = dict.fromkeys(self.reward_laws[i] for i in self.best_arms)
        first: Verdict | None = None
        for law in laws:  # one after the other, since all arms may be the best
            verdict = law.truncated_nonpositivity()
            first = verdict if first is None else first
            if verdict.holds:
                return verdict
        assert first is not None
        return first

    def tabulate(self) -> LawTable:
        """Return the reward laws as the arrays that the compiled sampler reads. They are cached, since samples may be large."""
        return self._table

    @cached_property
    def _table(self) -> LawTable:
        return tabulate(self.reward_laws)

    # --- used by `simulate` ----------------------------------------------------------------------------------------------

    def at_start(self, replication: int, words: UInts) -> LawTable:
        """Return the table that the sampler reads in a replication. ``words`` has one row of random bits per arm."""
        return self._table

    def stretches(self, horizon: int) -> Iterable[tuple[Problem, int]]:
        """Return the problems that are played one after the other, each with the time at which it ends: only this one."""
        return ((self, horizon),)

    def uniform_regret(self, horizon: int) -> float:
        """Return the mean regret of choosing arms at random, which is the baseline.

        >>> from robandit.problems import gaussian
        >>> gaussian(means=[1.0, 0.0]).uniform_regret(horizon=1000)
        500.0
        """
        total, start = 0.0, 0
        for piece, end in self.stretches(integer(horizon, "horizon", 1)):
            total += (end - start) * float(piece.gaps.mean())
            start = end
        return total

    @property
    def counted_gaps(self) -> Floats:
        """The regret that a pull of each arm adds, in addition to the regret that the sampler measures."""
        return self.gaps

    def check_horizon(self, horizon: int) -> None:
        """Raise `InvalidInput` if the problem cannot be played that long. Problems made of laws have no limit."""

    # --- JSON ------------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON data."""
        return {"laws": [law.to_dict() for law in self.laws], **self._labels()}

    def _labels(self) -> dict[str, Any]:
        """Return the names and the sign. The sign is written only if it is set, so that other problems keep their fingerprints."""
        return {"names": list(self.names), **({"minimize": True} if self.minimize else {})}

    @property
    def bulky(self) -> bool:
        """Whether the JSON data are too long to be repeated in every file, usually because of recorded rewards."""
        return self._identity[0] > BULKY

    @property
    def fingerprint(self) -> str:
        """A hash of the JSON data."""
        return self._identity[1]

    @cached_property
    def _identity(self) -> tuple[int, str]:
        text = json.dumps(self.to_dict(), sort_keys=True, allow_nan=False).encode()
        return len(text), hashlib.sha256(text).hexdigest()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """Return the problem that ``to_dict`` wrote. Unknown fields are rejected."""
        rule = 'an object with "laws" and, optionally, "names" and "minimize"'
        data = mapping(data, "problem", rule)
        if "replay" in data:
            from robandit.problems.replays import replay_from_dict

            return replay_from_dict(data)
        if "changing" in data:
            from robandit.problems.changing import changing_from_dict

            return changing_from_dict(data)
        if "delayed" in data:
            from robandit.problems.delayed import delayed_from_dict

            return delayed_from_dict(data)
        if "objective" in data:
            from robandit.problems.objectives import of_quantile_from_dict

            return of_quantile_from_dict(data)
        if "linear" in data or "contextual" in data:
            from robandit.problems.contextual import contextual_from_dict

            return contextual_from_dict(data)
        if "laws" not in data:
            raise invalid("problem", data, rule)
        unknown = sorted(map(str, set(data) - {"laws", "names", "minimize"}))
        if unknown:
            raise InvalidInput(f"a problem has no field {excerpt(unknown)}; it has laws, names and minimize")
        laws = [Law.from_dict(law) for law in items_of(data["laws"], "laws", "laws")]
        return cls(laws, data.get("names"), data.get("minimize", False))


def _checked_laws(laws: Sequence[Law]) -> tuple[Law, ...]:
    items = items_of(laws, "laws", "laws, one for each arm")
    if len(items) < 2:
        raise invalid("laws", laws, f"at least 2 laws, one for each arm, not {len(items)}")
    arms = tuple(law_with_mean(law, f"laws[{i}]") for i, law in enumerate(items))
    means = [law.mean for law in arms]
    if not math.isfinite(max(means) - min(means)):
        raise InvalidInput(f"the difference of the means {min(means)} and {max(means)} overflows; scale all laws down")
    return arms


def _checked_names(names: Sequence[str] | None, arms: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(i) for i in range(arms))
    checked = items_of(names, "names", "strings, one for each arm")
    if len(checked) != arms:
        raise invalid("names", names, f"{arms} strings, one for each arm")
    rule = "a string that differs from the names before it"
    plain = tuple(text(name, f"names[{i}]", rule) for i, name in enumerate(checked))
    repeated = [i for i, name in enumerate(plain) if plain.index(name) < i] if len(set(plain)) < arms else []
    if repeated:
        raise invalid(f"names[{repeated[0]}]", plain[repeated[0]], rule)
    return plain


def _frozen(values: Any) -> Floats:
    out = np.array(values, dtype=np.float64)
    out.setflags(write=False)
    return out

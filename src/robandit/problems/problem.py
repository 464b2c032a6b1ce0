"""A bandit instance: one reward law per arm, with known means."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robandit.errors import InvalidInput, MeanUndefined
from robandit.kernel.types import Floats, UInts
from robandit.laws import Law, LawTable, Verdict, tabulate
from robandit.laws.validation import items_of, within

__all__ = ["Problem"]

BULKY = 1 << 16  # bytes of JSON: no law of a formula, and few problems with thousands of arms, have so many


@dataclass(frozen=True, init=False)
class Problem:
    """One law per arm, at least two arms, every mean finite. Immutable, hashable, JSON-able.

    Parameters
    ----------
    laws
        The arms' reward laws; rewards are maximised.
    names
        The arms' names, all different; "0", "1", ... if not given.

    Examples
    --------
    >>> from robandit.laws import Gaussian, Pareto
    >>> problem = Problem([-Pareto(tail=1.5), Gaussian(mean=-5.0, sd=1.0)])
    >>> problem.means.tolist(), problem.gaps.tolist(), problem.best_arm
    ([-3.0, -5.0], [0.0, 2.0], 0)
    >>> problem.assumption().holds
    True
    """

    laws: tuple[Law, ...]
    names: tuple[str, ...]

    def __init__(self, laws: Sequence[Law], names: Sequence[str] | None = None) -> None:
        """Check and store."""
        arms = items_of(laws, "laws", "laws, one for each arm")
        if len(arms) < 2:
            raise InvalidInput(f"laws has {len(arms)} entries: a problem needs at least 2 arms to choose between")
        for i, law in enumerate(arms):
            if not isinstance(law, Law):
                raise InvalidInput(f"laws[{i}] is {law!r}: it must be a law; wrap a plain number as Constant(number)")
            if not math.isfinite(law.mean):
                raise MeanUndefined(
                    f"arm {i} has the law {law!r}, whose mean is {law.mean}: regret needs finite means; "
                    "take a law with a tail index above 1"
                )
        means = [law.mean for law in arms]
        if not math.isfinite(max(means) - min(means)):
            raise InvalidInput(
                f"the means reach from {min(means)} to {max(means)}, and their difference is beyond a double: scale all laws down"
            )
        numbered = (str(i) for i in range(len(arms)))
        given = tuple(numbered) if names is None else items_of(names, "names", "strings, one for each arm")
        if len(given) != len(arms):
            raise InvalidInput(f"names has {len(given)} entries for {len(arms)} arms: give one for each")
        for i, name in enumerate(given):
            if not isinstance(name, str) or name in given[:i]:
                raise InvalidInput(f"names[{i}] is {name!r}: names must be strings, all different")
        object.__setattr__(self, "laws", arms)
        object.__setattr__(self, "names", given)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the laws and names, not what was computed from them."""
        return Problem, (self.laws, self.names)

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.laws)

    @cached_property
    def means(self) -> Floats:
        """The arms' means (read-only)."""
        return _frozen([law.mean for law in self.laws])

    @cached_property
    def gaps(self) -> Floats:
        """How much each arm's mean lies below the best (read-only)."""
        return _frozen(np.max(self.means) - self.means)

    @property
    def best_arm(self) -> int:
        """The arm with the greatest mean; the first of several."""
        return int(np.argmax(self.means))

    @property
    def best_arms(self) -> tuple[int, ...]:
        """Every arm whose mean is the greatest."""
        return tuple(int(i) for i in np.flatnonzero(self.gaps == 0.0))

    @property
    def tail_index(self) -> float:
        """The heaviest arm's: moments of smaller order are finite for every arm."""
        return min(law.tail_index for law in self.laws)

    def u(self, eps: float) -> float:
        """The smallest valid bound on raw moments: the maximum over the arms of E|X|^(1+eps), eps in (0, 1].

        >>> from robandit.problems import negated_pareto
        >>> negated_pareto(means=[-1.0, -2.0], tail=1.5).u(0.25)
        3.6144080144
        """
        order = 1.0 + within(eps, "eps", 0.0, 1.0, open_low=True)
        return max(law.absolute_moment(order) for law in self.laws)

    def v(self, eps: float) -> float:
        """The smallest valid bound on centred moments: the maximum of E|X - mean|^(1+eps), eps in (0, 1]."""
        order = 1.0 + within(eps, "eps", 0.0, 1.0, open_low=True)
        return max(law.central_moment(order) for law in self.laws)

    def assumption(self) -> Verdict:
        """Whether the best arm satisfies E[X 1{|X| > M}] <= 0 for every M >= 0, which AdaR-UCB's analysis asks for.

        With several best arms one of them suffices: the first that satisfies it is reported, else the first that does
        not.
        """
        verdicts = [self.laws[i].truncated_nonpositivity() for i in self.best_arms]
        return next((verdict for verdict in verdicts if verdict.holds), verdicts[0])

    def tabulate(self) -> LawTable:
        """The laws as the arrays that the compiled sampler reads; made once, since a recorded sample may be large."""
        return self._table

    @cached_property
    def _table(self) -> LawTable:
        return tabulate(self.laws)

    # --- what `simulate` asks --------------------------------------------------------------------------------------------

    def at_start(self, replication: int, words: UInts) -> LawTable:
        """What the sampler reads in a replication; ``words`` are the random bits of its arms, a row each."""
        return self._table

    @property
    def counted_gaps(self) -> Floats:
        """What a pull of each arm adds to regret, beside what the sampler itself finds missed."""
        return self.gaps

    @property
    def independent(self) -> bool:
        """Whether rewards are independent draws from the laws, as every bound assumes."""
        return True

    def check_horizon(self, horizon: int) -> None:
        """Refuse to play longer than there is something to play; laws never end."""

    # --- JSON ----------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The problem as plain JSON data."""
        return {"laws": [law.to_dict() for law in self.laws], "names": list(self.names)}

    @property
    def bulky(self) -> bool:
        """Whether its JSON data are so long, by recorded rewards, that files should not hold them again and again."""
        return self._identity[0] > BULKY

    @property
    def fingerprint(self) -> str:
        """A hash of its JSON data."""
        return self._identity[1]

    @cached_property
    def _identity(self) -> tuple[int, str]:
        text = json.dumps(self.to_dict(), sort_keys=True, allow_nan=False).encode()
        return len(text), hashlib.sha256(text).hexdigest()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """The problem that ``to_dict`` wrote; unknown fields are refused."""
        if isinstance(data, Mapping) and "replay" in data:
            from robandit.problems.replays import replay_from_dict

            return replay_from_dict(data)
        if not isinstance(data, Mapping) or "laws" not in data:
            raise InvalidInput(f'{data!r} is not a problem: it must be an object with "laws" and, if wanted, "names"')
        unknown = sorted(map(str, set(data) - {"laws", "names"}))
        if unknown:
            raise InvalidInput(f"a problem has no field {', '.join(unknown)}; it has laws and names")
        laws = data["laws"]
        if not isinstance(laws, Sequence) or isinstance(laws, str):
            raise InvalidInput(f"laws is {laws!r}: it must be a list of laws")
        return cls([Law.from_dict(law) for law in laws], data.get("names"))


def _frozen(values: Any) -> Floats:
    out = np.array(values, dtype=np.float64)
    out.setflags(write=False)
    return out

"""A floor: a share of decisions that is drawn from a fixed distribution, so that every propensity is known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from robandit.errors import InvalidInput, UnknownArm, excerpt, formatted
from robandit.kernel.generate import out_of_line
from robandit.kernel.random import uniform
from robandit.kernel.types import Floats, UInts
from robandit.policies.base import Policy
from robandit.policies.classic.uniform import allowed_arms
from robandit.policies.default import DEFAULT
from robandit.policies.facts import Facts
from robandit.policies.wrapping import Around, Wrapping
from robandit.validation import invalid, plain, within

SHARE = 0.02
ROUNDING = 1e-9  # by which shares may miss their sum


class Floor(Wrapping, Policy):
    """Another policy with a floor: a share of all decisions is drawn from a fixed distribution, and all rewards are learned.

    Use it if logs are to be reused, since every arm then has a known propensity above 0, or if an arm, such as the control of an
    experiment, must keep a share of the traffic. Regret grows linearly: by at most ``share`` times that of the floor's
    distribution. docs/how-to/log-for-reuse.md has the price.

    A decision is drawn from the floor with probability ``share``, whatever happened before. Then arm a has the probability pi(a):
    the share of the arm in ``arms``, plus an equal part of the rest of ``share``, divided by the sum over all arms that may be
    chosen now. So if an arm is paused, the others take over its share. If no arm of the floor may be chosen, there is no floor.

    Parameters
    ----------
    of
        The policy that makes all other choices. Policies that weight rewards by the probability of their choice are rejected, and
        so are other floors. Probes and restarts go inside: ``Floor(Restarting())``.
    share
        The share of all decisions that the floor draws, in (0, 1]. None: the sum of ``arms``, or 0.02 without them.
    arms
        The shares of all decisions that single arms get from the floor, such as ``{"control": 0.05}``. Their sum is at most
        ``share``; the rest is uniform over all arms. None: all of it is uniform. The keys are the names of a bandit's arms, and
        the numbers of arms, from 0, in a simulation. They are kept as a tuple of pairs.

    Guarantee
    ---------
    The probability of each choice is known: ``share`` pi(a) + (1 - ``share``) times that of the other policy (1 or 0 if it is
    deterministic; NaN if it does not know it). No sublinear regret bound.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["control", "b"], rb.Floor(rb.UCB1(), arms={"control": 0.05}), seed=0)
    >>> bandit.decide().propensity  # UCB1 begins with the first arm
    1.0
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate([rb.UCB1(), rb.Floor(rb.UCB1(), share=0.2)], problem, 1000, 20, seed=0)
    >>> [round(float(r)) for r in result.regret[:, :, -1].mean(axis=1)]
    [16, 64]

    References
    ----------
    Ours. Exploration with known probabilities, logged for later evaluation: A. Agarwal et al. Making contextual decisions with low
    technical debt. arXiv:1606.03966, 2016. With an index policy it is the rule of `EpsilonGreedy` for any index.
    """

    of: Any = dataclasses.field(default=DEFAULT, kw_only=False)
    share: float | None = None
    arms: Any = None

    suffix: ClassVar[str] = "with a floor"
    own_pull: ClassVar[str] = "a draw of the floor"
    first_field: ClassVar[str] = "floor_shares"
    use_when = "logs are to be reused, or an arm must keep a share"
    about = Facts(
        random=True,
        citation="ours; after Agarwal et al. 2016",
        notes=(
            "A floor is added to any policy without weights; its regret is linear, and its propensities are known.",
        ),
    )

    def validate(self) -> None:
        super().validate()
        if isinstance(self.of, Floor):
            raise InvalidInput(f"Floor of {self.of!r}: floors cannot be nested; one Floor takes share and arms")
        if self.share is not None:
            within(self.share, "share", 0.0, 1.0, open_low=True, owner="Floor")
        if self.arms is not None:
            object.__setattr__(self, "arms", _checked(self.arms))
        total = math.fsum(share for _, share in self.arms or ())
        if total > 1.0 + ROUNDING:
            rule = "shares that sum to at most 1"
            raise invalid("arms", dict(self.arms), rule, owner="Floor", hint=f"they sum to {total:g}")
        if self.share is None:
            object.__setattr__(self, "share", min(total, 1.0) if self.arms else SHARE)
        elif total > self.share * (1.0 + ROUNDING):
            rule = f"at least the sum of arms, {total:g}"
            raise invalid("share", self.share, rule, owner="Floor", hint="omit it, or lower the shares of arms")

    @property
    def name(self) -> str:
        """The name of the other policy with the shares."""
        named = ", ".join(f"{arm!r}: {share:.6g}" for arm, share in self.arms or ())
        return f"{self.of.name} {self.suffix} of {self.share:.6g}" + (f" ({named})" if named else "")

    @property
    def rest(self) -> float:
        """The part of ``share`` that is uniform over all arms."""
        assert self.share is not None
        rest = self.share - math.fsum(share for _, share in self.arms or ())
        return rest if rest > ROUNDING * self.share else 0.0

    def start(self, arms: int, horizon: int | None, stream: UInts, names: Iterable[Any] | None = None) -> Any:
        """Return the state of a new run, with the shares of arms with these names (None: numbers from 0)."""
        state = super().start(arms, horizon, stream)
        known = {name: i for i, name in enumerate(range(arms) if names is None else names)}
        for name, share in self.arms or ():
            if name not in known:
                rule = f"the floor can only be on {excerpt(repr(each) for each in known)}"
                message = f"Floor: arm {formatted(name)} of arms is unknown: {rule}"
                raise UnknownArm(message, parameter="arms", value=name, rule=rule)
            state.floor_shares[known[name]] = share
        return state

    def own_params(self) -> dict[str, float]:
        return {"floor_share": float(self.share or 0.0), "floor_rest": float(self.rest)}

    def own_fields(self, inner: Any, arms: int, horizon: int | None) -> dict[str, Any]:
        """Return the shares of single arms, which `start` fills in, and a random stream unless the other policy has one."""
        own = {"floor_shares": np.zeros(arms)}
        return own if "rng" in inner._fields else own | {"rng": np.zeros(4, dtype=np.uint64)}

    def own_extended(self, state: Any) -> dict[str, Any]:
        """Return these fields with a new arm, which has no share of its own."""
        own = {"floor_shares": np.append(state.floor_shares, 0.0)}
        return own if "rng" in self.inner_state(state)._fields else own | {"rng": state.rng.copy()}

    def around(self, name: str) -> Around | None:
        """Return the hooks that choose, and tell the probability of a choice."""
        if name == "select":
            return select_or_draw, ("select",)
        if name == "waiting":
            return waiting_or_draw, ("waiting",)
        if name == "waiting_chance":
            return chance_of_waiting, ("waiting",)
        if name == "chance":
            return (chance_of_both, ("chance",)) if self.of.randomised else (chance_of_either, ("select",))
        return None

    chance: ClassVar[Any] = True  # `hooks` returns it: choices are random, whatever the other policy does


def select_or_draw(select: Any, p: Any, s: Any) -> int:
    """Return an arm that the floor draws, or the arm that the other policy selects."""
    if uniform(s.rng) <= p.floor_share:
        arm = drawn(p, s)
        if arm >= 0:
            return arm
    return int(select(p, s))


def waiting_or_draw(waiting: Any, p: Any, s: Any, shifts: Floats) -> int:
    """Return an arm that the floor draws, or the arm that the other policy selects while decisions are open."""
    if uniform(s.rng) <= p.floor_share:
        arm = drawn(p, s)
        if arm >= 0:
            return arm
    return int(waiting(p, s, shifts))


@out_of_line
def drawn(p: Any, s: Any) -> int:
    """Return an arm that is drawn from the floor's distribution, or -1 if no arm of it is allowed."""
    total = total_weight(p, s)
    chosen = -1
    if total > 0.0:
        left = uniform(s.rng) * total
        for arm in range(s.floor_shares.shape[0]):
            weight = weight_of(p, s, arm)
            if weight > 0.0 and (left > 0.0 or chosen < 0):  # the last arm, if rounding leaves a little
                chosen = arm
                left -= weight
    return chosen


def total_weight(p: Any, s: Any) -> float:
    """Return the sum of the weights of all arms that are allowed."""
    total = p.floor_rest
    for arm in range(s.floor_shares.shape[0]):
        total += s.floor_shares[arm] if s.allowed[arm] else 0.0
    return total


def weight_of(p: Any, s: Any, arm: int) -> float:
    """Return the weight of an arm in the floor's distribution among the arms that are allowed."""
    return s.floor_shares[arm] + p.floor_rest / allowed_arms(s.allowed) if s.allowed[arm] else 0.0


def chance_of_either(select: Any, p: Any, s: Any, arm: int) -> float:
    """Return the probability of a choice if the other policy is deterministic."""
    return with_floor(p, s, arm, 1.0 if select(p, s) == arm else 0.0)


def chance_of_waiting(waiting: Any, p: Any, s: Any, arm: int, shifts: Floats) -> float:
    """Return the probability of a choice while decisions are open."""
    return with_floor(p, s, arm, 1.0 if waiting(p, s, shifts) == arm else 0.0)


def chance_of_both(chance: Any, p: Any, s: Any, arm: int) -> float:
    """Return the probability of a choice if the other policy is random."""
    return with_floor(p, s, arm, chance(p, s, arm))


def with_floor(p: Any, s: Any, arm: int, chance: float) -> float:
    """Return the probability of a choice, where that of the other policy is ``chance``."""
    total = total_weight(p, s)
    if not total > 0.0:
        return chance
    floor = p.floor_share * (weight_of(p, s, arm) / total)
    return floor if p.floor_share >= 1.0 else floor + (1.0 - p.floor_share) * chance


def _checked(arms: Any) -> tuple[tuple[Any, float], ...]:
    """Return the shares of arms as pairs of a name and a number."""
    rule = 'a mapping from names of arms to their shares, such as {"control": 0.05}'
    pairs = list(arms.items()) if isinstance(arms, Mapping) else arms
    if not isinstance(pairs, (list, tuple)) or not pairs or not all(_is_pair(pair) for pair in pairs):
        raise invalid("arms", arms, rule, owner="Floor", hint="None for a uniform floor")
    names = [_name(name) for name, _ in pairs]
    if len(set(names)) < len(names):
        raise invalid("arms", arms, "a mapping that has each arm once", owner="Floor")
    shares = [
        within(share, f"the share of {formatted(name)}", 0.0, 1.0, open_low=True, owner="Floor")
        for name, share in pairs
    ]
    return tuple(zip(names, shares, strict=True))


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, (list, tuple)) and len(pair) == 2


def _name(name: Any) -> Any:
    """Return the name of an arm as a bandit has it: lists, which come from JSON, become tuples."""
    return tuple(_name(part) for part in name) if isinstance(name, (list, tuple)) else plain(name)

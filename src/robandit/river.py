"""Adapts Robandit's policies to `river.bandit`. Needs river: ``pip install "robandit[river]"``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from robandit import validation
from robandit.errors import InvalidInput, formatted
from robandit.inputs import checked_reward
from robandit.live.arms import checked_arms
from robandit.live.bandit import Bandit
from robandit.policies.base import Policy, check_policy_given
from robandit.policies.default import DEFAULT

try:
    from river.bandit.base import Policy as _RiverBase
    from river.proba.base import Distribution
    from river.stats.base import Univariate
except ImportError as error:
    raise ImportError('robandit.river needs river: pip install "robandit[river]"') from error

__all__ = ["RiverPolicy"]


class RiverPolicy(_RiverBase):
    """A Robandit policy as a policy of river.

    Parameters
    ----------
    policy
        None means ``AdaKLUCB()``, which needs no parameters.
    horizon
        The number of pulls, for policies that need it.
    reward_obj
        A univariate statistic or distribution that river computes of each arm's rewards, for ``ranking``. None means the mean.
    seed
        The seed of policies that draw random numbers. Clones start again with the same seed, as in river's own policies.

    Notes
    -----
    `pull` adds names that it has not seen before, and chooses among the names that it gets. It returns the same arm until a
    reward is recorded.

    Examples
    --------
    >>> import robandit as rb
    >>> from robandit.river import RiverPolicy
    >>> policy = RiverPolicy(rb.UCB1(), seed=0)
    >>> arm = policy.pull(["a", "b"])
    >>> arm
    'a'
    >>> policy.update(arm, -2.5)
    >>> policy.pull(["a", "b"])
    'b'
    >>> policy.ranking
    ['a']
    """

    def __init__(
        self, policy: Policy | None = None, horizon: int | None = None, reward_obj: Any = None, seed: int | None = None
    ) -> None:
        """See the class."""
        if reward_obj is not None and not isinstance(reward_obj, (Univariate, Distribution)):
            rule = "a univariate statistic or a distribution of river"
            hint = "Robandit's policies learn from one number per pull, not from metrics of predictions"
            raise validation.invalid("reward_obj", reward_obj, rule, hint=hint)
        super().__init__(reward_obj=reward_obj)
        if policy is not None:
            check_policy_given(policy)
        if horizon is not None:
            validation.integer(horizon, "horizon", 1, owner="RiverPolicy")
        validation.seed(seed)
        self.policy, self.horizon, self.seed = policy, horizon, seed
        self._prepared = (policy or DEFAULT).prepared(horizon)
        self._bandit: Bandit | None = None

    def __repr__(self) -> str:
        """Return river's table of the arms, or the policy before the first reward, when river's repr fails."""
        table: str = super().__repr__() if self._rewards else f"RiverPolicy({self._prepared!r})"  # type: ignore[no-untyped-call]
        return table

    @property
    def bandit(self) -> Bandit:
        """The live bandit inside, for `Bandit.estimates`, `Bandit.diagnose` and other methods."""
        if self._bandit is None:
            raise InvalidInput("the arms of a RiverPolicy are not known before pull(arm_ids): call it first")
        return self._bandit

    def pull(self, arm_ids: Iterable[Any]) -> Any:
        """Return the arm to pull next, one of these names."""
        return super().pull(list(checked_arms(arm_ids, "arm_ids")))

    def _pull(self, arm_ids: Iterable[Any]) -> Any:
        names = checked_arms(arm_ids, "arm_ids")
        if self._bandit is None:
            self._bandit = Bandit(names, self._prepared, self.seed)
        known = set(self._bandit.arms)
        for name in names:
            if name not in known:
                self._bandit.add_arm(name)
        return self._bandit.select(among=None if len(names) == len(self._bandit.arms) else names)

    def update(self, arm_id: Any, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn the reward of a pull. It must be one number."""
        if len(reward_args) != 1 or reward_kwargs:
            arguments = [*map(formatted, reward_args), *(f"{n}={formatted(v)}" for n, v in reward_kwargs.items())]
            call = f"update({formatted(arm_id)}, {', '.join(arguments[:3])})"
            raise InvalidInput(f"{call}: Robandit's policies learn from one number, update(arm, reward)")
        arm, reward = validation.plain(arm_id), checked_reward(reward_args[0])  # also for river's statistics
        self.bandit.update(arm, reward)
        super().update(arm, reward)  # type: ignore[no-untyped-call]

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield parameters for river's own checks."""
        yield {"seed": 0}

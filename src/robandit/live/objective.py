"""The objective of a live bandit: the policy that learns it, and its value for each arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robandit.diagnostics.diagnosis import KeptRewards
from robandit.errors import NotApplicable
from robandit.objectives import Objective, ObjectiveValue, objective_from, value_of
from robandit.policies.base import Policy
from robandit.policies.default import DEFAULT
from robandit.policies.quantile.quantile_ucb import QuantileUCB, limits
from robandit.policies.wrapping import Wrapping


def policy_for(policy: Policy | None, objective: str | None) -> tuple[Policy, Objective]:
    """Return the policy of a bandit and its objective, one of which may follow from the other."""
    given = None if objective is None else objective_from(objective)
    if policy is None:
        policy = DEFAULT if given is None or given.q is None else QuantileUCB(q=given.q)
    own = objective_from(policy.objective)
    if given is None or given == own:
        return policy, own
    if given.limit is None or own.text != "mean":  # a share of rewards is the mean of indicators
        chosen = "features" if policy.contextual else "the policy"
        hint = f"omit {chosen}" if given.q is not None else "take a policy that learns the mean, or omit it"
        rule = f"{own.text!r}, which is what {policy.name} optimises"
        message = f"objective = {given.text!r} must be {rule}; {hint}"
        raise NotApplicable(message, parameter="objective", value=objective, rule=rule)
    return policy, given


def values_of(
    objective: Objective, minimize: bool, policy: Policy, state: Any, rows: Sequence[Any], kept: Sequence[KeptRewards]
) -> tuple[ObjectiveValue, ...]:
    """Return the value of the objective for each arm, with distribution-free limits; nothing if it is the mean.

    A quantile comes from all rewards that the policy counts, whose columns are ``rows``; a share from the sample that is kept.
    """
    while isinstance(policy, Wrapping):
        policy = policy.of
    if objective.text == "mean":
        return ()
    if not isinstance(policy, QuantileUCB):
        return tuple(value_of(arm.arm, arm.sample, objective, minimize=minimize) for arm in kept)
    found = []
    for i, arm in enumerate(kept):
        low, high = limits(policy, state, i)
        value, low, high = (-rows[i][0], low, high) if minimize else (rows[i][0], -high, -low)
        found.append(ObjectiveValue(arm.arm, objective.name, value, low, high))
    return tuple(found)

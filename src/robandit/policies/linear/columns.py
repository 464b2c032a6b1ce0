"""Fits a policy to the length of x."""

from __future__ import annotations

import dataclasses
from typing import Any

from robandit.errors import NotApplicable
from robandit.policies.base import Policy
from robandit.policies.drift.restarting import Restarting
from robandit.policies.wrapping import Wrapping
from robandit.validation import invalid


def for_columns(policy: Policy, d: int, *, shared: bool = False) -> Policy:
    """Return the policy for x with d columns. Policies that use no contexts are returned unchanged.

    >>> from robandit import UCB1, AdaClipTS
    >>> for_columns(AdaClipTS(), 5), for_columns(UCB1(), 5)
    (AdaClipTS(d=5, shared=False), UCB1(scale=1.0))
    """
    if isinstance(policy, Wrapping) and policy.of.contextual:
        if isinstance(policy, Restarting):
            fact = f"{policy.name} would learn old rewards anew, and does not keep their contexts"
            raise NotApplicable(f'{fact}; leave drift="restart" out, or leave features out')
        return policy._with(for_columns(policy.of, d, shared=shared))
    if not policy.contextual:
        return policy
    given: Any = policy
    for name in ("d", "shared") if shared else ("d",):
        if not hasattr(policy, name):
            raise NotApplicable(f"{policy!r} has no parameter {name}, so it cannot use this x: take a linear policy")
    if given.d not in (1, d):
        raise invalid("d", given.d, f"{d}, the columns of x", owner=type(policy).__name__, hint="leave it out")
    if getattr(given, "shared", shared) != shared and not shared:
        hint = "x has no features of arms here; leave it out"
        raise invalid("shared", True, "False", owner=type(policy).__name__, hint=hint)
    changed = {"d": d, "shared": True} if shared else {"d": d}
    return policy if given.d == d and not shared else dataclasses.replace(policy, **changed)

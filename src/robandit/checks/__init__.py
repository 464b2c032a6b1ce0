"""Checks that every policy and law must pass. Robandit's own pass them; run them on yours."""

from __future__ import annotations

from robandit.checks.estimators import check_estimator
from robandit.checks.laws import check_law
from robandit.checks.policies import check_policy

__all__ = ["check_estimator", "check_law", "check_policy"]

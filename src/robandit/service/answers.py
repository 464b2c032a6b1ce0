"""Events and estimates in the form of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from robandit.decisions.experiment import MadeEvent
from robandit.service import bodies
from robandit.service.studies import ExperimentStudy


def json_number(value: float) -> Any:
    """Return a number for JSON, which has neither NaN nor infinity."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "infinity" if value > 0.0 else "-infinity"


def arm_estimates(rows: Sequence[Mapping[str, Any]], study: ExperimentStudy | None) -> list[bodies.ArmEstimates]:
    """Return what is known of each arm, from `Bandit.estimates`. A study adds a trimmed mean with its limits."""
    answers = []
    for i, row in enumerate(rows):
        own = {name: json_number(value) for name, value in row.items() if name not in ("arm", "state", "pulls")}
        numbers = {}
        if study is not None and i < len(study.means) and not math.isnan(study.means[i].value):
            mean = study.means[i]
            numbers = {"mean": mean.value, "low": json_number(mean.low), "high": json_number(mean.high)}
        answers.append(
            bodies.ArmEstimates(arm=row["arm"], state=row["state"], pulls=row["pulls"], policy=own, **numbers)
        )
    return answers


def decision_of(experiment: str, made: MadeEvent) -> bodies.Decision:
    """Return the answer that stands for a decision. It is the same whenever it is made."""
    event, payload = made.event, made.payload
    return bodies.Decision(
        id=event.id,
        experiment=experiment,
        arm=payload.arm,
        propensity=_number(payload.propensity),
        time=event.time,
        seq=event.seq,
        repeat=payload.repeat,
    )


def reward_of(experiment: str, made: MadeEvent) -> bodies.Reward:
    """Return the answer that stands for a reward."""
    event, payload = made.event, made.payload
    reason = getattr(payload, "reason", None)
    return bodies.Reward(
        id=event.id,
        experiment=experiment,
        arm=payload.arm,
        value=payload.value,
        outcome="applied" if reason is None else "late",
        reason=reason,
        time=event.time,
        seq=event.seq,
    )


def _number(propensity: Any) -> float | None:
    return propensity if isinstance(propensity, float) and math.isfinite(propensity) else None

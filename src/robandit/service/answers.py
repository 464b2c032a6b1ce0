"""Events and estimates in the form of answers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from robandit.decisions.events import Context, decision_id
from robandit.decisions.experiment import LiveExperiment, MadeEvent
from robandit.live.bandit import Bandit
from robandit.service import bodies
from robandit.service.studies import ExperimentStudy


def json_number(value: float) -> Any:
    """Return a number for JSON, which has neither NaN nor infinity."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "infinity" if value > 0.0 else "-infinity"


def arms_of(bandit: Bandit) -> list[bodies.Arm]:
    """Return the arms with their states, metrics and broken guardrails."""
    broken, found = bandit.broken_guardrails(), defaultdict[Any, dict[str, bodies.Metric]](dict)
    for row in bandit.metrics():
        found[row["arm"]][row["metric"]] = bodies.Metric(count=row["count"], mean=json_number(row["mean"]))
    arms, ends = [], bandit.failures()
    for arm, state, pulls in bandit.pulls():
        why = (
            f"{'paused by' if state == 'paused' else 'breaks its'} guardrail: {broken[arm]}" if arm in broken else None
        )
        failures, timeouts = ends.get(arm, (msgspec.UNSET, msgspec.UNSET))
        arms.append(
            bodies.Arm(
                arm=arm,
                state=state,
                pulls=pulls,
                reason=why or msgspec.UNSET,
                metrics=found.get(arm, msgspec.UNSET),
                failures=failures,
                timeouts=timeouts,
            )
        )
    return arms


def arm_estimates(rows: Sequence[Mapping[str, Any]], study: ExperimentStudy | None) -> list[bodies.ArmEstimates]:
    """Return what is known of each arm, from `Bandit.estimates`. A study adds a mean, or the objective, with its limits."""
    answers = []
    for i, row in enumerate(rows):
        own = {name: json_number(value) for name, value in row.items() if name not in ("arm", "state", "pulls")}
        numbers = {}
        if study is not None and i < len(study.means) and not math.isnan(study.means[i].value):
            mean = study.means[i]
            called = "value" if study.diagnosis.values else "mean"
            numbers = {called: mean.value, "low": json_number(mean.low), "high": json_number(mean.high)}
        answers.append(
            bodies.ArmEstimates(arm=row["arm"], state=row["state"], pulls=row["pulls"], policy=own, **numbers)
        )
    return answers


def estimates_of(
    experiment: LiveExperiment, context: Context
) -> tuple[dict[str, float] | msgspec.UnsetType, list[bodies.ArmEstimates]]:
    """Return the encoded features of a context, if the experiment has features, and what the policy knows of each arm for them."""
    bandit = experiment.bandit
    if experiment.settings.features is None:
        return msgspec.UNSET, arm_estimates(bandit.estimates(), None)
    answer = experiment.explained(context)
    known = ({"state": state, "pulls": pulls} for _, state, pulls in bandit.pulls())
    rows = [each | row for each, row in zip(known, answer["arms"], strict=True)]
    return answer["features"], arm_estimates(rows, None)


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
    reason, part, amount = (getattr(payload, name, None) for name in ("reason", "part", "amount"))
    unset = msgspec.UNSET
    return bodies.Reward(
        id=decision_id(event.id),
        experiment=experiment,
        arm=payload.arm,
        value=payload.value if amount is None else amount,
        outcome="late" if reason is not None else "added" if part else "applied",
        reason=reason,
        time=event.time,
        seq=event.seq,
        part=part or unset,
        total=unset if amount is None else payload.value,
        metrics=getattr(payload, "metrics", None) or unset,
        failed=getattr(payload, "failed", False) or unset,
    )


def _number(propensity: Any) -> float | None:
    return propensity if isinstance(propensity, float) and math.isfinite(propensity) else None

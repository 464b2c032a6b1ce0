"""The calls that create, show and change experiments and their arms."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from robandit.decisions.experiment import LiveExperiment, MadeEvent
from robandit.diagnostics.diagnosis import Diagnosis
from robandit.diagnostics.tails import TailIndex
from robandit.errors import BrokenState
from robandit.live.bandit import Bandit
from robandit.live.ledger import many_expired
from robandit.policies.linear.model import MOST_CHANCES, Linear
from robandit.policies.wrapping import Wrapping
from robandit.service import access, bodies
from robandit.service.answers import arm_estimates, arms_of, json_number
from robandit.service.decoding import decoder
from robandit.service.http import Answer, Request, answer
from robandit.service.state import State
from robandit.service.studies import ExperimentStudy
from robandit.wording import share

MANY_LONG = 5  # warn when more than one of so many rewards is above the deadline
MANY_OPEN = 0.8  # warn when this share of max_open is open
COSTS = "The rewards look like costs, and this experiment maximises them: if they are costs, create another one with minimize."
_settings = decoder(bodies.NewExperiment)
_FIELDS = bodies.NewExperiment.__struct_fields__
_UNCHANGED = tuple(name for name in _FIELDS if name != "policy")
_arm = decoder(bodies.NewArm)
_state = decoder(bodies.ArmState)


async def create(state: State, request: Request) -> Answer:
    """Create an experiment. Repeating the call with the same settings changes nothing; other settings are a conflict."""
    given = _settings(request.body)
    summary, new = await state.engine.put(
        request.parameters[0], request.key.id, summary_of, **{field: getattr(given, field) for field in _FIELDS}
    )
    return answer(summary, 201 if new else 200)


async def overview(state: State, request: Request) -> Answer:
    """List the experiments that the key may read."""
    await state.engine.catch_up()
    readable = [each for each in state.engine.experiments.values() if access.may(request.key, "read", each.name)]
    readable.sort(key=lambda each: each.name)
    summaries: list[Any] = await state.engine.seen(readable, lambda each: msgspec.Raw(bodies.encode(summary_of(each))))
    return answer(bodies.Experiments(experiments=summaries))


async def show(state: State, request: Request) -> Answer:
    """Show an experiment. Includes counts, estimates with intervals, the diagnosis of the tails, and warnings."""
    name = request.parameters[0]
    experiment, summary, saved = await state.engine.read(
        name, lambda seen: (seen, summary_of(seen), _saved(seen.bandit))
    )
    if isinstance(saved, BrokenState):
        study, estimates = None, [{"arm": each.arm, "state": each.state, "pulls": each.pulls} for each in summary.arms]
    else:
        study = await state.studies.study(experiment)
        estimates = await state.studies.estimates(saved)
    diagnosis = None if study is None else study.diagnosis
    shown = bodies.Experiment(
        **{name: getattr(summary, name) for name in summary.__struct_fields__ if name != "arms"},
        arms=[
            msgspec.structs.replace(
                each, metrics=known.metrics, reason=known.reason, failures=known.failures, timeouts=known.timeouts
            )
            for each, known in zip(arm_estimates(estimates, study), summary.arms, strict=True)
        ],
        diagnosis=None if diagnosis is None else _diagnosis(diagnosis),
        warnings=warnings_of(experiment, study),
    )
    return answer(shown)


def _saved(bandit: Bandit) -> bytes | BrokenState:
    """Return a bandit as bytes, or the reason why it does not go on."""
    try:
        return bandit.to_bytes()
    except BrokenState as error:
        return error


async def standing(state: State, request: Request) -> Answer:
    """Say which arm leads. Chances describe the kept rewards; statements, with a cap, may be looked at any time."""
    name = request.parameters[0]
    experiment = await state.engine.read(name, lambda seen: seen)
    rewards, found = await state.studies.standing(experiment)
    stands = bodies.Standing(
        experiment=name,
        minimize=found.minimize,
        cap=found.cap,
        rewards=rewards,
        arms=[bodies.ArmStanding(**_for_json(each)) for each in found.arms],
        leader=bodies.Leader(**_for_json(found.leader)),
        statement=None if found.statement is None else bodies.Statement(**found.statement._asdict()),
        pairs=None if found.pairs is None else bodies.Statement(**found.pairs._asdict()),
    )
    return answer(stands)


def _for_json(found: Any) -> dict[str, Any]:
    """Return the fields of a named tuple or a data class."""
    fields = found._asdict() if hasattr(found, "_asdict") else vars(found)
    return {name: json_number(value) if isinstance(value, float) else value for name, value in fields.items()}


async def remove(state: State, request: Request) -> Answer:
    """Delete an experiment and its log. The audit log records the action."""
    name = request.parameters[0]
    await state.engine.delete(name, request.key.id)
    state.metrics.calls.pop(name, None)
    return Answer(204, b"")


async def pause(state: State, request: Request) -> Answer:
    """Pause an experiment. It makes no decisions, but still accepts rewards and choices made elsewhere."""
    return await _changed(state, request, "pause", lambda experiment: experiment.pause())


async def resume(state: State, request: Request) -> Answer:
    """Resume a paused experiment."""
    return await _changed(state, request, "resume", lambda experiment: experiment.resume())


async def reset(state: State, request: Request) -> Answer:
    """Forget everything that an experiment has learned. Its arms and its log are kept."""
    return await _changed(state, request, "reset", state.engine.reset)


async def add_arm(state: State, request: Request) -> Answer:
    """Add an arm. The policy starts to explore it at once."""
    arm = _arm(request.body).arm
    return await _changed(state, request, "add arm", lambda experiment: experiment.add_arm(arm), {"arm": arm}, 201)


async def change_arm(state: State, request: Request) -> Answer:
    """Pause, resume or retire an arm. What was learned about it is kept."""
    arm, wanted = request.parameters[1], _state(request.body).state
    detail = {"arm": arm, "state": wanted}
    return await _changed(state, request, "change arm", lambda experiment: experiment.change_arm(arm, wanted), detail)


async def _changed(
    state: State, request: Request, action: str, change: Any, detail: Any = None, status: int = 200
) -> Answer:
    """Make a change, and record it in the audit log in the same commit. A change that changes nothing is not recorded."""

    def apply(experiment: LiveExperiment) -> bodies.Summary:
        made: MadeEvent | None = change(experiment)
        if made is not None:
            state.engine.audit(request.key.id, action, experiment.name, detail)
        return summary_of(experiment)

    return answer(await state.engine.change(request.parameters[0], apply), status)


def summary_of(experiment: LiveExperiment) -> bodies.Summary:
    """Return an experiment at a glance."""
    bandit, settings, counts = experiment.bandit, experiment.settings, experiment.counts
    return bodies.Summary(
        name=experiment.name,
        state="paused" if experiment.paused else "running",
        created=experiment.created,
        seq=experiment.seq,
        epoch=experiment.epoch,
        settings=bodies.Settings(
            policy=repr(settings.inner_policy(bandit.policy)), **{name: getattr(settings, name) for name in _UNCHANGED}
        ),
        counts=bodies.Counts(
            decisions=counts["decided"],
            rewards=counts["rewarded"],
            late=counts["late"] - counts["unlearned"],
            expired=counts["expired"],
            open=bandit.open_count,
            repeats=counts["repeat"],
            unlearned=counts["unlearned"],
            failures=counts["failed"],
        ),
        arms=arms_of(bandit),
    )


def _diagnosis(diagnosis: Diagnosis) -> bodies.Diagnosis:
    return bodies.Diagnosis(
        leading=diagnosis.leading.arm,
        contradicted=diagnosis.contradicted,
        assumption=diagnosis.words(),
        advice=f"{'For the mean: ' if diagnosis.values else ''}{diagnosis.advice}",
        tails=[bodies.ArmTails(arm=arm.arm, left=_tail(arm.left), right=_tail(arm.right)) for arm in diagnosis.arms],
        changes=[str(change) for change in diagnosis.changes],
    )


def _tail(tail: TailIndex | None) -> bodies.Tail | None:
    if tail is None or math.isnan(tail.index):
        return None
    return bodies.Tail(
        index=json_number(tail.index), low=json_number(tail.low), high=json_number(tail.high), light=tail.light
    )


def warnings_of(experiment: LiveExperiment, study: ExperimentStudy | None) -> list[str]:
    """Return what a person should know, in sentences; changes of arms at the end, the newest first."""
    warnings = []
    if experiment.bandit.is_broken and isinstance(reason := _saved(experiment.bandit), BrokenState):
        warnings.append(f"{reason}.")
    states = experiment.bandit.states
    for arm, why in experiment.bandit.broken_guardrails().items():
        if states[arm] == "paused":
            warnings.append(f"Arm {arm!r} is paused by its guardrail ({why}): resume it when it is repaired.")
        elif states[arm] == "active":
            warnings.append(f"Arm {arm!r} breaks its guardrail ({why}), and goes on: no other arm is active.")
    waiting, most = experiment.bandit.open_count, experiment.settings.max_open
    if waiting >= MANY_OPEN * most:
        warnings.append(
            f"{waiting:,} decisions wait for their rewards, and max_open is {most:,}: check that rewards arrive."
        )
    if len(experiment.bandit.arms) == 1:
        warnings.append(
            f"There is one arm only, {experiment.bandit.arms[0]!r}: nothing is decided yet. Add a second arm."
        )
    policy: Any = experiment.bandit.policy
    while isinstance(policy, Wrapping):
        policy = policy.of
    if isinstance(policy, Linear) and policy.draws:
        active = sum(state == "active" for state in states.values())
        if active > MOST_CHANCES:
            warnings.append(
                f"With {active} arms, propensities of Thompson sampling are not computed (at most {MOST_CHANCES} arms): if you "
                "need none, go on; otherwise create an experiment with LinEpsilonGreedy, or AdaClipUCB with a floor."
            )
    expired, ended = experiment.ends["expired"], sum(experiment.ends.values())
    window = experiment.settings.reward_window
    if window is not None and experiment.settings.on_expiry == "drop" and many_expired(expired, ended):
        warnings.append(
            f"{share(expired / ended)} of the recent decisions expired without a reward: send each reward within the reward_window "
            f"({window:g} seconds), or create an experiment with a longer one."
        )
    above, rewards = experiment.bandit.above_deadline, experiment.counts["rewarded"]
    if above * MANY_LONG > rewards:
        warnings.append(
            f"{above:,} of {rewards:,} rewards are above the deadline ({experiment.settings.deadline:g} seconds) and cost as "
            "much as failures: check that rewards are in seconds."
        )
    if study is None:
        return warnings
    diagnosis = study.diagnosis
    if diagnosis.advice.question:
        warnings.append(COSTS)
    if diagnosis.contradicted:
        warnings.append(f"{diagnosis.policy.name}: {diagnosis.words()}.")
    changes = (str(change) for change in reversed(diagnosis.changes))
    return [*warnings, *(f"{change[0].upper()}{change[1:]}." for change in changes)]

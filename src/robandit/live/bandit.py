"""The live bandit, which runs a policy on named arms."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import compress
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from robandit import validation
from robandit.anytime.evidence import Evidence, checked_cap
from robandit.diagnostics.diagnosis import Diagnosis, KeptRewards, diagnose, drift_warning_text, warning_text
from robandit.diagnostics.gains import gains_text
from robandit.drift.alarm import Alarm
from robandit.drift.watch import Watch
from robandit.errors import (
    AssumptionWarning,
    DecisionError,
    DriftWarning,
    ExpiryWarning,
    GuardrailWarning,
    HorizonReached,
    InvalidInput,
    NotApplicable,
    UnavailableArm,
    UnknownArm,
    excerpt,
    formatted,
)
from robandit.features import Encoder, Feature, Scale
from robandit.files import read, write_atomically
from robandit.hints import BANDIT, guided, other_names
from robandit.inputs import at, checked_reward, checked_rewards, listed
from robandit.kernel import loops
from robandit.kernel.random import streams
from robandit.kernel.types import Floats
from robandit.live.arms import ACTIVE, PAUSED, RETIRED, Arm, State, checked_arms, checked_name, hashable
from robandit.live.contexts import Contexts
from robandit.live.deadlines import Deadline, Ended, checked_deadline
from robandit.live.engine import SIGNED_COLUMNS, Compile, RunningPolicy
from robandit.live.events import (
    Added,
    ArmAdded,
    ArmAlarmed,
    ArmPaused,
    ArmResumed,
    ArmRetired,
    Asked,
    Decided,
    Event,
    Expired,
    Observed,
    Rewarded,
    Scaled,
    event_from,
)
from robandit.live.guard import Guard, alone
from robandit.live.guardrails import Broken, Guardrail, checked_metrics
from robandit.live.ledger import Decision, IssuedDecisions, many_expired
from robandit.live.memory import CHUNK, WATCHED, Memory
from robandit.live.objective import policy_for, values_of
from robandit.live.open_decisions import DecisionId, OpenDecision, OpenDecisions
from robandit.live.outcomes import Outcomes
from robandit.live.saving import Among, Fields, pack, unpack
from robandit.live.sticky import Assignment, Assignments, checked_unit
from robandit.objectives import MEAN, ObjectiveValue, objective_from
from robandit.policies import Floor, Probing, Restarting
from robandit.policies.assumptions import NOTHING as NO_ASSUMPTION
from robandit.policies.base import Policy, check_policy_given
from robandit.policies.linear.ada_clip import AdaClipTS
from robandit.policies.linear.columns import for_columns
from robandit.policies.wrapping import notices_changes
from robandit.wording import share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from robandit.anytime.evidence import Counted
    from robandit.live.standing import Leader, Standing

_SMALLEST, _LARGEST, NOW = loops.SMALLEST_REWARD, loops.LARGEST_REWARD, loops.NOW
_WEIGHS = "weights a reward by the probability of its choice"

# The state after each event, and the states before it.
_CHANGES_OF_STATE: dict[type[Any], tuple[State, tuple[State, ...]]] = {
    ArmPaused: (PAUSED, (ACTIVE,)),
    ArmResumed: (ACTIVE, (PAUSED,)),
    ArmRetired: (RETIRED, (ACTIVE, PAUSED)),
}

RULE = 1
"""The rule of decisions that are made now; see `robandit.live.events.Decided`."""
LIMIT = 1.959964  # standard errors of 95 % limits
NOT_GIVEN: Any = object()  # None is a valid name
NOTHING: Mapping[str, Any] = MappingProxyType({})
Log = Callable[[Event], object]
Warned = tuple[type[Warning], str]
Pull = tuple[int, float, float, DecisionId | None]
"""An arm's position, a reward, the mark of its decision (`NOW` without one), and the id."""


@guided
@other_names(BANDIT)
class Bandit:
    """A policy that runs on named arms: `select` an arm, then `update` it with the reward.

    Parameters
    ----------
    arms
        One or more different names (strings, numbers, None, or tuples of them) in a list or a column of NumPy, pandas or
        polars. NumPy scalars become the equal Python values: ``np.int64(3)`` becomes ``3``.
    policy
        None means ``AdaKLUCB()``, which needs no parameters and suits costs and rewards; `robandit.recommend` has alternatives.
        With ``features`` it means ``AdaClipTS()``.
    seed
        The seed of policies that draw random numbers. None takes a seed from the system.
    minimize
        Whether small rewards are good, as with latencies and costs. Pass them as they are. All numbers that the bandit returns
        then have the same sign: the best arm has the smallest mean, and the index is a lower confidence bound.
    max_open
        The largest number of open decisions. One more `decide` is then an error. None: no limit.
    drift
        What to do about rewards that change over time. None: only warn (`robandit.errors.DriftWarning`). ``"probe"``: pull idle
        arms now and then (`robandit.Probing`). ``"restart"``: also forget old rewards when a change is noticed
        (`robandit.Restarting`). Both cost regret if nothing changes.
    sticky_for
        Seconds for which a unit, such as a user, keeps its arm: see `decide`. None: decisions are independent.
    objective
        What is optimised. None: the mean, or what the policy optimises. A quantile, such as ``"p95"`` (p1 to p99.9), of the rewards
        as they are passed: p95 of costs, or p5 of rewards, is the bad tail. The policy is then `QuantileUCB`. A limit, such as
        ``"within:2.0"``: the share of rewards beyond it (costs above it, or rewards below it) is minimised. The policy then learns
        that share, as a mean of 0 and 1.
    floor
        The share of decisions that is drawn from a fixed distribution, so that the probability of every choice is known
        (`Decision.propensity`, `robandit.Floor`). A number, such as 0.02: uniform over all arms. A mapping, such as ``{"control":
        0.05}``: these arms, with these shares of all decisions. It costs regret for ever.
    metrics
        The names of other numbers that rewards come with, such as ``["error", "latency_ms"]``: see `reward`.
    guardrails
        Limits on metrics (`robandit.Guardrail`), whose names need not be in ``metrics``. An arm that breaks one is paused, with a
        `robandit.errors.GuardrailWarning`, until `resume_arm`; then it starts anew. The last active arm is never paused.
    cap
        Rewards (or costs) are at least 0, and `standing` may say which arm has the better mean of ``min(reward, cap)``, however
        often it is asked. It cannot be changed later. The policy does not use it. None: rewards have any sign and size.
    deadline
        Seconds after which a decision times out, for rewards that are elapsed times in seconds. It needs ``minimize=True``. A
        reward up to the deadline is the cost. A time-out, a reward above the deadline and a failure (`fail`) cost
        ``failure_cost``. A decision that is older times out at the next `decide`, `reward`, `fail` or `expire`, and its outcome is
        then ignored.
        While a decision is open, its age is evidence against its arm, so that an arm that hangs loses its decisions at once. It
        works with AdaKL-UCB and other index policies. Call `expire` only for decisions that say nothing, such as cancelled ones.
    failure_cost
        The cost of a failure or a time-out, at least the deadline. None: the deadline.
    features
        What the caller knows about each decision, such as ``{"tokens": Number(log=True), "region": Category(["eu", "us"])}``. Then
        `decide`, `select` and `update` need a ``context`` with these values, and the policy learns which arm is best for which
        context, if it can (:mod:`robandit.policies.linear`). Not with ``sticky_for``.
    log
        A function that is called with each event (`robandit.events`), before the method that caused it returns. See `apply`. It
        runs while the bandit is locked: it may use the bandit, but must not wait for another thread that uses it.
    clock
        A function that returns the time in seconds since 1970, for decisions and their ages.
    compile
        When to compile the policy's hooks, which takes seconds the first time (later processes load them from the cache folder).
        ``"background"``: beside the program. The bandit answers at once, with the same decisions: it runs the hooks as plain
        Python (some tenths of a millisecond per decision) until compiled code takes over. ``"now"``: before the bandit is used. A
        hook that cannot be compiled is then an error; otherwise it is a warning (`robandit.errors.CompilationWarning`).
        ``"never"``: always run plain Python.

    Notes
    -----
    If each reward is known before the next pull, alternate `select` and `update`. If rewards come late, or several threads use the
    bandit, `decide` returns decisions and `reward` takes their rewards in any order. All methods are thread-safe.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["eu", "us", "asia"], minimize=True, seed=0)
    >>> arm = bandit.select()
    >>> arm
    'eu'
    >>> bandit.update(arm, 120.0)  # a latency: less is better
    >>> decision = bandit.decide()
    >>> decision.arm
    'us'
    >>> bandit.reward(decision.id, 95.0)
    >>> [row["pulls"] for row in bandit.estimates()]
    [1, 1, 0]
    """

    def __init__(
        self,
        arms: Iterable[Arm],
        policy: Policy | None = None,
        seed: int | None = None,
        *,
        minimize: bool = False,
        max_open: int | None = None,
        drift: Literal["probe", "restart"] | None = None,
        sticky_for: float | None = None,
        objective: str | None = None,
        floor: float | Mapping[Arm, float] | None = None,
        metrics: Iterable[str] | None = None,
        guardrails: Iterable[Guardrail] | None = None,
        cap: float | None = None,
        deadline: float | None = None,
        failure_cost: float | None = None,
        features: Mapping[str, Feature] | None = None,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
        compile: Compile = "background",
    ) -> None:
        """See the class."""
        if policy is None and features is not None:
            policy = AdaClipTS()
        if policy is not None:
            check_policy_given(policy)
        policy, chosen = policy_for(policy, objective)
        if validation.choice(drift, "drift", (None, "probe", "restart")) is not None:
            policy = Probing(policy) if drift == "probe" else Restarting(policy)
        if isinstance(floor, Mapping):
            policy = Floor(policy, arms=floor)
        elif floor is not None:
            hint = 'or a mapping from arms to shares, such as {"control": 0.05}'
            policy = Floor(policy, share=validation.within(floor, "floor", 0.0, 1.0, open_low=True, hint=hint))
        if max_open is not None:
            max_open = validation.integer(max_open, "max_open", 1)
        if sticky_for is not None:
            sticky_for = validation.positive(sticky_for, "sticky_for", hint="in seconds, or None")
        if not (log is None or callable(log)):
            raise validation.invalid("log", log, "a function that takes an event, or None")
        if not callable(clock):
            raise validation.invalid(
                "clock", clock, "a function that returns seconds since 1970", hint="such as time.time"
            )
        contexts = None if features is None else Contexts(Encoder(features))
        if contexts is not None:
            if sticky_for is not None:
                raise validation.invalid(
                    "sticky_for", sticky_for, "left out with features", hint="leave out one of them"
                )
            if cap is not None:
                raise validation.invalid("cap", cap, "left out with features", hint="the best arm depends on them")
            policy = for_columns(policy, len(contexts.encoder.columns))
        rails = validation.items_of(guardrails or (), "guardrails", "Guardrail(...)")
        measured = checked_metrics(metrics, rails)
        cap = checked_cap(cap, chosen)
        costs = validation.flag(minimize, "minimize") or chosen.limit is not None
        policy = policy.prepared(None).signed(costs)
        if deadline is not None and chosen != MEAN:
            text = f"deadline and objective = {chosen.text!r} exclude each other: a deadline is about the mean"
            raise InvalidInput(text, parameter="objective", value=objective, rule="used without a deadline")
        times = checked_deadline(deadline, failure_cost, policy, minimize=minimize, alone=sticky_for is None)
        stream = streams(np.random.SeedSequence(validation.seed(seed)), 1)[0]
        names = list(checked_arms(arms))
        state = policy.start(len(names), None, stream, names)
        fields = Fields(
            policy=policy,
            arms=names,
            states=[ACTIVE] * len(names),
            minimize=minimize,
            max_open=max_open,
            received=[0] * len(names),
            open=OpenDecisions(),
            issued={},
            expired=0,
            pick=-1,
            asked=[],
            among=None,
            state=state,
            record=Memory(
                len(names),
                watching=not notices_changes(policy),
                residuals=contexts is not None and hasattr(state, "residual"),
            ),
            unrewarded=[],
            sticky=None if sticky_for is None else Assignments(sticky_for),
            outcomes=Outcomes(measured, rails, len(names)) if measured else None,
            evidence=None if cap is None else Evidence(cap, len(names)),
            deadline=None if times is None else Deadline(*times, len(names)),
            objective=chosen.text,
            contexts=contexts,
        )
        self._use(fields, log, clock, compile)
        if rails:
            self._engine.check_restrictable("pause arms, so it cannot have guardrails")

    def _use(self, fields: Fields, log: Log | None, clock: Callable[[], float], compile: Compile) -> None:
        """Set all attributes."""
        validation.choice(compile, "compile", ("background", "now", "never"))
        self._guard = Guard()
        # An instance with 30 attributes or more has slower methods, so what calls of every kind need not read stays in here.
        self._fields = replace(fields, state=None)  # arrays that the policy replaces need not stay in memory
        self._log = log
        self._clock = clock
        self._policy = fields.policy
        self._arms = fields.arms
        self._index = {arm: i for i, arm in enumerate(fields.arms)}
        self._minimize = fields.minimize
        self._objective = objective_from(fields.objective)
        self._costs = fields.minimize or self._objective.limit is not None  # whether what is learned is minus a cost
        self._horizon = fields.policy.longest
        self._accepts_updates = self._horizon is None and not fields.policy.weighted
        self._record = fields.record
        recorded = fields.record.counts()
        self._unrecorded = [n - seen for n, seen in zip(fields.received, recorded, strict=True)]  # in files of 0.1
        self._fresh = fields.record.fresh
        self._decisions = IssuedDecisions(fields.open, fields.issued, fields.expired)
        self._amounts = fields.amounts
        self._evidence = fields.evidence
        self._deadline = fields.deadline
        self._contexts = fields.contexts
        self._pick = fields.pick  # the selected arm, until the next event
        self._among = fields.among  # the arms that it was selected among
        self._asked = fields.asked  # the same of earlier choices since the last event
        available = [state == ACTIVE for state in fields.states]
        shifts = None if fields.deadline is None else fields.deadline.waits.shifts
        self._engine = RunningPolicy(fields.policy, fields.state, available, fields.among, compile, shifts)
        if fields.deadline is not None:
            fields.deadline.prepare(compile)
        extras = (
            self._deadline,
            self._contexts,
            self._fields.outcomes,
            self._evidence,
            self._fields.sticky,
            self._objective.limit,
        )
        self._plain = all(each is None for each in extras)
        """Whether a reward is learned as it comes, and nothing else depends on it. One flag instead of six saves 0.15 us."""
        self._known_alarm = self._newest_alarm()
        if self._record.watch is not None:
            self._record.watch.prepare(compile)

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of all arms, in the order in which they were added. Paused and retired arms are included."""
        with self._guard.exclusive():
            return tuple(self._arms)

    @property
    def states(self) -> dict[Arm, State]:
        """The state of each arm: ``"active"``, ``"paused"`` or ``"retired"``."""
        with self._guard.exclusive():
            return dict(zip(self._arms, self._fields.states, strict=True))

    @property
    def policy(self) -> Policy:
        """The policy of this bandit."""
        return self._policy

    @property
    def minimize(self) -> bool:
        """Whether small rewards are good."""
        return self._minimize

    @property
    def cap(self) -> float | None:
        """The cap of this bandit."""
        return None if self._evidence is None else self._evidence.cap

    @property
    def objective(self) -> str:
        """What is optimised: ``"mean"``, a quantile such as ``"p95"``, or a limit such as ``"within:2.0"``."""
        return self._objective.text

    @property
    def features(self) -> dict[str, Feature]:
        """The declared features."""
        return {} if self._contexts is None else dict(self._contexts.encoder.features)

    @property
    def is_broken(self) -> bool:
        """Whether a call has raised `robandit.errors.BrokenState`, so that every later one does."""
        return bool(self._engine.broken)

    @property
    def open(self) -> tuple[Decision, ...]:
        """Decisions without a reward yet, oldest first."""
        with self._guard.exclusive():
            rows = self._decisions.open.items()
            return tuple(Decision(key, self._arms[row.arm], row.propensity, row.time) for key, row in rows)

    def open_decision(self, decision_id: DecisionId) -> Decision | None:
        """Return the open decision with this id, or None if it is not open."""
        with self._guard.exclusive():
            if decision_id not in self._decisions.open:
                return None
            row = self._decisions.open[decision_id]
            return Decision(decision_id, self._arms[row.arm], row.propensity, row.time)

    def may_issue(self, decision_id: str) -> bool:
        """Return whether a later decision of this bandit may get this id, so that nothing else should be called so."""
        return self._decisions.may_issue(decision_id)

    def teaches(self, decision_id: DecisionId) -> bool:
        """Return whether the reward of an open decision would be learned: not after another one of a unit's assignment was."""
        with self._guard.exclusive():
            return self._fields.sticky is None or self._fields.sticky.teaches(decision_id)

    def opened_before(self, time: float, most: int | None = None) -> list[DecisionId]:
        """Return the ids of the open decisions that were made before a time in seconds since 1970, oldest first.

        ``most`` limits their number.
        """
        with self._guard.exclusive():
            if self._deadline is not None and self._deadline.none_before(_checked_time(time)):
                return []
            return self._decisions.open.older_than(_checked_time(time), most)

    @property
    def open_count(self) -> int:
        """The number of open decisions."""
        with self._guard.exclusive():
            return len(self._decisions.open)

    def __repr__(self) -> str:
        """Return the policy, the number of arms and the progress."""
        with self._guard.exclusive():
            counts = f"arms={len(self._arms)}, rewards={sum(self._received())}, open={len(self._decisions.open)}"
        return f"<Bandit: {self._policy.name}, {counts}>"

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays: the estimates of all arms."""
        from robandit.live.plot import bandit_html

        return bandit_html(f"Bandit: {self._policy.name}", self.estimates(), self._minimize)

    def plot(self) -> Figure:
        """Return a Matplotlib figure of the arms: the mean of `standing` or the objective, with 95 % limits, and the index.

        The limits come from a random sample of at most 2,048 rewards per arm, as in `diagnose`. They do not account for the
        bandit's choice of the times at which it pulled an arm. An arrow stands for a limit that does not exist, because the rewards
        are skewed to that side. A notebook displays the figure; a script calls ``savefig`` on it.
        """
        from robandit.live.plot import bandit_figure

        with self._guard.exclusive():
            kept = self._kept(self._record.settled())
            estimates, values = self.estimates(), self._values(kept)
        return bandit_figure(kept, estimates, self._policy.name, self._minimize, values)

    # --- choosing -----------------------------------------------------------------------------------------------------

    def select(self, among: Iterable[Arm] | None = None, context: Mapping[str, Any] | None = None) -> Arm:
        """Return the arm to pull now. A repeated call gives the same answer until the next reward, decision or change of the arms.

        Parameters
        ----------
        among
            Names to choose from this time. None: all active arms. Paused and retired arms are never chosen.
        context
            The values of the bandit's features. Required if it has features.
        """
        # No argument here, in update and in reward is keyword-only: it would cost all calls 3 to 5 %.
        if self._contexts is None and context is None:
            return self._arms[self._choose_alone(among)]
        with self._guard.exclusive():
            x, _ = self._encoded(context)
            return self._arms[self._choose_at(x, among)]

    def _encoded(self, context: Any) -> tuple[Floats, tuple[float | None, ...]]:
        """Return x for a context, and its numbers without a scale."""
        if self._contexts is None:
            hint = 'make it with Bandit(..., features={"region": Category(["eu", "us"])})'
            raise validation.invalid("context", context, "left out: this bandit has no features", hint=hint)
        return self._contexts.encode(context)

    def _choose_at(self, x: Floats, among: Iterable[Arm] | None) -> int:
        """Choose an arm for x. An arm that was selected for another x, or among other arms, stays one of the choices asked for."""
        assert self._contexts is not None
        asked = self._contexts.asked
        among = None if among is None else listed("among", among)
        positions = None if among is None else self._positions(among)
        if self._pick >= 0:
            if self._engine.among == positions and asked[-1].tobytes() == x.tobytes():
                return self._pick
            self._asked.append(self._among)
            self._pick = -1
        del asked[len(self._asked) :]  # a choice that raised an error
        self._engine.see(x)
        pick = self._choose(among)
        asked.append(x)
        return pick

    def _choose(self, among: Iterable[Arm] | None) -> int:
        engine = self._engine
        positions = None if among is None else self._positions(among)
        if self._pick >= 0:
            if engine.among == positions:
                return self._pick
            self._check_horizon(1)
            self._asked.append(self._among)
            self._pick = -1
        elif self._horizon is not None:  # checked here because the call costs as much as a decision
            self._check_horizon(1)
        if not engine.allowed:
            raise UnavailableArm(f"no arm is active: {self._listed_states()}; resume or add one")
        if positions is not engine.among and positions != engine.among:
            engine.restrict(positions)
        if self._deadline is not None:
            self._deadline.look(self._now())
        try:
            pick: int = engine.ask_entry(*engine.ask_args)  # `engine.ask`, without a call
        except IndexError as error:
            engine.refuse(error)
        if pick not in engine.allowed:
            engine.reject(pick)
        self._pick = pick
        self._among = positions
        return pick

    _choose_alone = alone(_choose)

    def _positions(self, among: Iterable[Arm]) -> tuple[int, ...]:
        """Return the available arms of a list of names, in order."""
        names = listed("among", among)
        try:
            given = {self._index[name] for name in names}
        except Exception:  # as in `_update`
            given = {self._position(name, at("among", k)) for k, name in enumerate(names)}
        positions = tuple(sorted(i for i in given if self._fields.states[i] == ACTIVE))
        if not positions:
            rule = "names with an active arm among them"
            message = f"among = {formatted(names)} must be {rule}: {self._listed_states()}"
            raise UnavailableArm(message, parameter="among", value=names, rule=rule)
        self._engine.check_restrictable("choose among some of the arms")
        return positions

    def _listed_states(self) -> str:
        rows = [
            f"{formatted(arm)} is {state}" for arm, state in zip(self._arms[:10], self._fields.states, strict=False)
        ]
        return ", ".join(rows) + (", ..." if len(self._arms) > 10 else "")

    def _received(self) -> list[int]:
        """Return the number of rewards of each arm."""
        return [earlier + n for earlier, n in zip(self._unrecorded, self._record.counts(), strict=True)]

    def _check_horizon(self, more: int) -> None:
        made = sum(self._received()) + len(self._decisions.open) + self._decisions.expired
        made -= 0 if self._fields.sticky is None else self._fields.sticky.extra
        if self._horizon is not None and made + more > self._horizon:
            count = f"was made for {self._horizon} pulls, {made} are made, and {more} more requested"
            hint = "start a new bandit with a longer horizon, or a policy without one"
            raise HorizonReached(f"{self._policy!r} {count}: {hint}")

    # --- decisions elsewhere --------------------------------------------------------------------------------------------

    def allocation(self, decisions: int) -> dict[Arm, float]:
        """Return the share of each active arm in the next decisions, if none of their rewards came meanwhile.

        Whoever draws arms with these probabilities decides as the bandit would, without asking it. The decisions are made on a
        copy, so the bandit stays as it is, and repeating the call gives the same shares. A policy that draws random numbers makes
        at least 100 decisions. Policies that weight rewards by the probability of the choice, or were made for a number of pulls,
        have no allocation.

        >>> import robandit as rb
        >>> rb.Bandit(["a", "b"], rb.UCB1()).allocation(10)
        {'a': 0.5, 'b': 0.5}
        """
        return self.allocating()(validation.integer(decisions, "decisions", 1, 10**12), 0)

    def allocating(self) -> Callable[[int, int], dict[Arm, float]]:
        """Return a function that computes `allocation` for the present state. Any thread may call it.

        Its second argument is the number of decisions that are in flight elsewhere. They are made first, and not counted.
        """
        with self._guard.exclusive():
            self._check_no_features("an allocation", "let each decision ask the bandit")
            if not self._accepts_updates:
                hint = "let each decision ask the bandit, or use another policy"
                fact = _WEIGHS if self._policy.weighted else "counts the decisions that it was made for"
                raise NotApplicable(f"{self._policy.name} {fact}, so it has no allocation: {hint}")
            active = [i for i, state in enumerate(self._fields.states) if state == ACTIVE]
            if not active:
                raise UnavailableArm(f"no arm is active: {self._listed_states()}; resume or add one")
            names = tuple(self._arms)
            if self._deadline is not None:
                self._deadline.look(self._now())
            play = self._engine.play_ahead(RULE, self._decisions.open.per_arm(len(names)))

        def allocation(decisions: int, before: int) -> dict[Arm, float]:
            shares = play(decisions, before)
            return {names[i]: shares[i] for i in active}

        return allocation

    def _check_no_features(self, what: str, hint: str) -> None:
        if self._contexts is not None:
            raise NotApplicable(f"a bandit with features has no use for {what}: {hint}")

    def learn_pulls(self, pulls: Iterable[tuple[int, float | None]], rule: int) -> None:
        """Learn pulls that were decided elsewhere, as positions of arms with checked rewards. None: the reward will never come.

        For the service, which has its own events for them: they are not passed to the log. ``rule`` is that of `events.Decided`.
        """
        engine = self._engine
        with self._guard.exclusive():
            self._check_no_features("pulls without contexts", "use update(arm, reward, context=...)")
            self._follow(rule)
            # They come in the order of their ends, not of the decisions.
            evidence, self._evidence = self._evidence, None
            try:
                for i, value in pulls:
                    if value is not None:
                        self._learn((i, value, NOW, None))
                        continue
                    if self._deadline is not None:
                        self._learn((i, self._deadline.failure_cost, NOW, None), end=Expired)
                        continue
                    engine.prepare("issue")
                    engine.prepare("forget")
                    engine.forget(i, engine.issue(i)[0])
                    self._decisions.expired += 1
                    self._forget_choices()
            finally:
                self._evidence = evidence

    # --- what the bandit knows ------------------------------------------------------------------------------------------

    def estimates(self) -> list[dict[str, Any]]:
        """Return one dict per arm: name, state, the number of rewards received (``pulls``), and the policy's columns.

        A number is NaN if the policy has no estimate yet; the index is infinite if the arm is to be explored. With a limit as the
        objective, ``share`` and ``index`` are shares of rewards beyond it.
        """
        with self._guard.exclusive():
            rows, deadline = self._engine.describe(), self._deadline
            if deadline is not None:
                deadline.look(self._now())
            signed = SIGNED_COLUMNS if self._costs else ()
            called = {"mean": "share"} if self._objective.limit is not None else {}
            columns = [(called.get(name, name), -1.0 if name in signed else 1.0) for name in self._policy.columns]
            return [
                {"arm": arm, "state": state, "pulls": pulls}
                | {name: 0.0 + sign * x for (name, sign), x in zip(columns, row, strict=True)}
                | ({} if deadline is None else deadline.describe(self._index[arm]))
                for arm, state, pulls, row in zip(self._arms, self._fields.states, self._received(), rows, strict=True)
            ]

    def explain(
        self, decision: Decision | DecisionId | None = None, *, context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Explain an open decision, or what would be decided for a context, in the present state of a bandit with features.

        Return a dict: ``features``, the encoded features with their names, and ``arms``, one dict per arm: its name, the policy's
        columns at x (with linear policies the ``mean`` and the ``width`` of its law), and the ``chance`` that it is chosen now,
        among all active arms (NaN if the policy draws random numbers, and there are more than 50 arms). For a decision, also its
        ``id``, ``arm`` and ``propensity``.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.LinUCB(), features={"region": rb.Category(["eu", "us"])})
        >>> bandit.update("a", 3.0, context={"region": "eu"})
        >>> answer = bandit.explain(context={"region": "eu"})
        >>> answer["features"]
        {'intercept': 1.0, 'region=eu': 1.0, 'region=us': 0.0}
        >>> answer["arms"][0]
        {'arm': 'a', 'mean': 2.0, 'width': 0.81..., 'chance': 0.0}
        """
        with self._guard.exclusive():
            if decision is not None and context is not None:
                raise validation.invalid(
                    "context", context, "left out with a decision", hint="a decision has its own context"
                )
            if self._contexts is None or decision is None:
                x, _ = self._encoded(context)
                facts: dict[str, Any] = {}
            else:
                i, _, decision_id = self._checked_open(decision)
                x = self._contexts.open[decision_id]
                facts = {"id": decision_id, "arm": self._arms[i]}
                facts["propensity"] = self._decisions.open[decision_id].propensity
            rows, chances = self._engine.explain(x)
            signed = SIGNED_COLUMNS if self._costs else ()
            arms = [
                {"arm": arm}
                | {n: 0.0 - v if n in signed else v for n, v in zip(self._policy.columns, row, strict=True)}
                | {"chance": chance}
                for arm, row, chance in zip(self._arms, rows, chances, strict=True)
            ]
            assert self._contexts is not None
            return facts | {"features": self._contexts.explained(x), "arms": arms}

    def effects(self) -> list[dict[str, Any]]:
        """Return how the mean of each arm depends on the features: one dict per arm and column, with the ``effect`` and its limits.

        The effect of a number is that of one scale. The effect of a category's value is its difference from the average of the
        other values, weighted by their decisions. ``low`` and ``high`` are 95 % limits by the normal law: approximate, because arms
        were not chosen at random, and shrunk towards 0 while rewards are few. They are NaN before the first rewards, and if the
        policy does not estimate the noise. The list is empty if the policy is not linear.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a"], rb.LinUCB(), features={"region": rb.Category(["eu", "us"])})
        >>> for reward, region in ((3.0, "eu"), (1.0, "us"), (3.2, "eu"), (1.1, "us")):
        ...     bandit.update("a", reward, context={"region": region})
        >>> row = bandit.effects()[0]
        >>> row["feature"], round(row["effect"], 2)
        ('region=eu', 1.37)
        """
        with self._guard.exclusive():
            if self._contexts is None:
                hint = 'make it with Bandit(..., features={"region": Category(["eu", "us"])})'
                raise NotApplicable(f"effects are those of features, and this bandit has none: {hint}")
            encoder = self._contexts.encoder
            found = self._engine.effects(encoder.contrasts)
            sign = -1.0 if self._costs else 1.0
            return (
                []
                if found is None
                else [
                    {"arm": arm, "feature": column, "effect": sign * effect}
                    | {"low": sign * effect - LIMIT * error, "high": sign * effect + LIMIT * error}
                    for arm, *rows in zip(self._arms, *(each.tolist() for each in found), strict=True)
                    for column, effect, error in zip(encoder.columns[1:], *rows, strict=True)
                ]
            )

    def pulls(self) -> list[tuple[Arm, State, int]]:
        """Return the name, the state and the number of rewards received of each arm. Faster than `estimates`."""
        with self._guard.exclusive():
            return list(zip(self._arms, self._fields.states, self._received(), strict=True))

    @property
    def above_deadline(self) -> int:
        """The number of rewards above the deadline."""
        return 0 if self._deadline is None else self._deadline.above

    def failures(self) -> dict[Arm, tuple[int, int]]:
        """Return the numbers of failures and of time-outs of each arm; empty without a deadline."""
        with self._guard.exclusive():
            if self._deadline is None:
                return {}
            return {arm: (ends[0], ends[1]) for arm, ends in zip(self._arms, self._deadline.ends, strict=True)}

    def counters(self) -> dict[str, int]:
        """Return the numbers of rewards and open decisions, and the policy's counters (AdaR-UCB: inexact evaluations).

        A bandit with ``sticky_for`` also counts the ``units`` in memory.
        """
        with self._guard.exclusive():
            counts = {"rewards": sum(self._received()), "open": len(self._decisions.open)}
            if self._fields.sticky is not None:
                counts["units"] = len(self._fields.sticky)
            return counts | self._engine.counters()

    def diagnose(self) -> Diagnosis:
        """Describe the rewards, test the policy's assumption on them, list changes over time, and recommend a policy.

        Per arm, it computes zeros, median, tail indices and tests of truncated non-positivity (confidence 0.99) from a random
        sample of at most 2,048 rewards. Changes come from a test of every reward (:mod:`robandit.drift`). The bandit itself warns
        of a contradiction (`robandit.errors.AssumptionWarning`) and of each change (`robandit.errors.DriftWarning`). The default
        policy has no assumption that rewards could contradict. If rewards look like costs and ``minimize`` is not set, the advice
        and the bandit's warning first ask whether they are.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1(), minimize=True)
        >>> bandit.update_many(["a"] * 1000, rb.laws.Pareto(tail=1.5).sample(1000, seed=0))
        >>> bandit.diagnose().advice.case
        'right-skewed or symmetric'
        """
        return diagnose(self._policy, *self.kept_rewards())

    def leader(self) -> Leader:
        """Return the arm with the greatest chance to be the best, this chance, and a sentence. See `standing`.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], minimize=True)
        >>> bandit.update_many(["a", "b"] * 50, [9.0, 3.0, 10.0, 2.0] * 25)
        >>> print(bandit.leader().sentence)
        b leads: its chance to have the lowest mean is above 99.9 % (this describes 100 kept costs, and is no test).
        """
        return self.standing().leader

    def standing(self) -> Standing:
        """Say how the active arms stand: means with limits, chances to be the best, and what may be claimed at any time.

        Means, limits and chances (to have the best mean, or objective) describe the rewards that are kept, at most 2,048 per arm.
        Means are trimmed, or with a deadline the sample means, which include failures.
        They are no test, least of all if they are looked at again and again. Claims need a ``cap``, and hold with probability 0.95
        however often they are looked at: that the leading arm has the best mean of ``min(reward, cap)``, and that it wins most
        pairs. They assume that rewards do not change with time; after an alarm of the detector of changes, they are withdrawn.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], minimize=True, cap=30.0)
        >>> bandit.update_many(["a", "b"] * 50, [9.0, 3.0, 10.0, 2.0] * 25)
        >>> print(bandit.standing().statement.sentence)
        b costs less than a (capped at 30), at 95 %, may be looked at any time
        """
        from robandit.live.standing import standing

        with self._guard.exclusive():
            known, counted = self.kept_rewards(), self.counted()
        return standing(*known[:3], counted, self._policy, self.objective)

    def counted(self) -> Counted | None:
        """Return a copy of the evidence for claims; None without a cap."""
        with self._guard.exclusive():
            return None if self._evidence is None else self._evidence.counted()

    def kept_rewards(self) -> tuple[list[KeptRewards], bool, tuple[Alarm, ...], tuple[ObjectiveValue, ...]]:
        """Return what `diagnose` reads: the recorded rewards of each arm, ``minimize``, the changes, and values of the objective.

        It is a copy, so that another thread can study it (`robandit.diagnostics.diagnosis.diagnose`).
        """
        with self._guard.exclusive():
            record = self._record.settled()
            kept = self._kept(record)
            return kept, self._minimize, self._alarms(record.watch), self._values(kept)

    def _kept(self, record: Memory) -> list[KeptRewards]:
        most = math.inf if self._deadline is None else self._deadline.failure_cost
        return record.kept(self._arms, self._fields.states, self._received(), most)

    def _values(self, kept: list[KeptRewards]) -> tuple[ObjectiveValue, ...]:
        if self._objective.text == "mean":
            return ()
        rows, state = self._engine.describe(), self._engine.state
        return values_of(self._objective, self._minimize, self._policy, state, rows, kept)

    def _alarms(self, watch: Watch | None) -> tuple[Alarm, ...]:
        """Return the changes that were noticed, with the names of their arms and in the user's sign."""
        alarms: Sequence[Alarm] = self._engine.alarms()
        if watch is not None:
            alarms = watch.alarms
        elif self._costs:  # the policy maximises
            alarms = [alarm.negated() for alarm in alarms]
        return tuple(alarm.named(self._arms[alarm.arm]) for alarm in alarms)

    # --- learning ---------------------------------------------------------------------------------------------------

    def update(
        self,
        arm: Arm,
        reward: float,
        metrics: Mapping[str, float] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn a reward of the arm, with the metrics of `reward`, and the context if the bandit has features.

        A policy that weights rewards accepts only the arm that `select` returned last.
        """
        try:
            i = self._index[arm]
        except Exception:  # KeyError, TypeError, or an error of the caller's own type
            i = self._position(arm)  # only on failure, because the call costs as much as recording the reward
        usual = type(reward) is float and (_SMALLEST <= abs(reward) <= _LARGEST or not reward)
        value = reward if usual else checked_reward(reward)
        pull = (i, value, NOW, None)
        if self._plain and metrics is None and context is None:
            warned = self._learn_alone(pull) if self._accepts_updates else self._checked_update(pull)
        else:
            warned = self._with_deadline(self._measured_update(pull, metrics, context))
        if warned:
            _warn(warned)

    def _measured_update(
        self, pull: Pull, metrics: Mapping[str, float] | None, context: Mapping[str, Any] | None
    ) -> Sequence[Warned]:
        with self._guard.exclusive():
            extra = self.measured(metrics)
            if self._contexts is not None or context is not None:
                x, unscaled = self._encoded(context)
                extra |= {"x": tuple(x.tolist()), "unscaled": unscaled}
            warned = self._update_now(pull, extra)
            self._set_scales()
            return [*warned, *self._enforce_guardrails()]

    def scale_event(self) -> Scaled | None:
        """Return the next event that fixes the scale of a number. The service, which applies events itself, asks for it."""
        with self._guard.exclusive():
            due = None if self._contexts is None else self._contexts.encoder.due()
            return due and Scaled(feature=due[0], center=due[1].center, scale=due[1].scale)

    def _set_scales(self) -> None:
        """Fix the scales of the numbers that have their first values."""
        while self._contexts is not None and (event := self.scale_event()) is not None:
            self._checked_action(event)()

    def _set_scale(self, event: Scaled) -> None:
        assert self._contexts is not None
        self._contexts.encoder.set_scale(event.feature, Scale(event.center, event.scale))
        self._changed(Scaled, feature=event.feature, center=event.center, scale=event.scale)

    def measured(self, metrics: Mapping[str, float] | None) -> dict[str, Any]:
        """Return the metrics of a reward as a field of its event, if they are valid. Empty if there are none."""
        if metrics is not None and self._fields.outcomes is None:
            hint = 'make the bandit with Bandit(..., metrics=["error"])'
            raise validation.invalid("metrics", metrics, "left out: this bandit has none", hint=hint)
        checked = None if self._fields.outcomes is None else self._fields.outcomes.checked(metrics)
        return {} if checked is None else {"metrics": checked}

    def _update_now(self, pull: Pull, extra: Mapping[str, Any] = NOTHING) -> Sequence[Warned]:
        i = pull[0]
        if self._policy.weighted and i != self._pick:
            hint = "call select() right before update(), or use decide() and reward()"
            fact = f"{self._policy.label} {_WEIGHS}, and {formatted(self._arms[i])} is not the last arm of select()"
            raise DecisionError(f"{fact}: {hint}")
        self._check_horizon(1)
        return self._learn(pull, extra)

    _checked_update = alone(_update_now)

    def update_many(self, arms: Iterable[Arm], rewards: Iterable[float]) -> None:
        """Learn from several pulls and their rewards, in order.

        If one is invalid, nothing is learned, and the error names its position. Pass lists, or columns of NumPy, pandas, polars or
        Arrow. They are matched by position: the index of pandas is ignored.
        """
        names = listed("arms", arms)
        values = checked_rewards("rewards", rewards)
        with self._guard.exclusive():
            self._check_no_features("rewards without contexts", "use update(arm, reward, context=...)")
            if self._policy.weighted:
                raise DecisionError(f"{self._policy.label} {_WEIGHS}, unknown in bulk: use decide() and reward()")
            try:
                positions = [self._index[name] for name in names]
            except Exception:  # as in `_update`
                positions = [self._position(name, at("arms", k)) for k, name in enumerate(names)]
            if len(positions) != len(values):
                raise InvalidInput(f"{len(positions)} arms but {len(values)} rewards: pass one reward for each arm")
            if self._horizon is not None:
                self._check_horizon(len(values))
            self._check_signs("rewards", values)
            warned = [
                each for i, value in zip(positions, values, strict=True) for each in self._learn((i, value, NOW, None))
            ]
        _warn(self._with_deadline(warned))

    def _with_deadline(self, warned: Sequence[Warned]) -> Sequence[Warned]:
        """Return warnings, with that of rewards above the deadline."""
        return warned if self._deadline is None else [*warned, *self._deadline.warning()]

    def _learn(
        self, pull: Pull, extra: Mapping[str, Any] = NOTHING, end: type[Rewarded | Expired] = Rewarded
    ) -> Sequence[Warned]:
        """Learn a reward, and close its decision; return warnings. ``extra`` has other fields of the event ``end``."""
        i, value, mark, decision_id = pull
        engine, plain = self._engine, self._plain
        ended: Ended | None = None
        cost, learned = value, 0.0 - value if self._minimize else value
        if not plain:
            cost, learned, ended = self._told(value, decision_id, extra, end)
        # A sum of tuples takes 40 ns less than (*engine.args, i, ...), which makes a list first.
        try:
            grown: bool = engine.tell_entry(*(engine.args + (i, learned, mark)))
        except IndexError as error:
            engine.refuse(error)
        if grown:
            engine.grow()
        if not plain:
            self._resolved(pull, cost, ended, extra)
        if decision_id is not None:
            self._decisions.open.close(decision_id)  # not before, since a hook may raise an error
            if self._amounts:
                self._amounts.pop(decision_id, None)
        fresh = self._fresh[i]
        fresh.append(cost)
        warned: Sequence[Warned] = ()
        if grown or not len(fresh) % WATCHED:
            warned = self._new_warnings(i)
        if self._log is None and not self._asked:
            self._pick = -1  # the usual case of `_changed`, without a call
        elif decision_id is None:
            self._changed(Observed, arm=self._arms[i], value=value, **extra)
        else:
            self._changed(end, id=decision_id, value=value, **extra)
        return warned

    _learn_alone = alone(_learn)

    def _told(
        self, value: float, decision_id: DecisionId | None, extra: Mapping[str, Any], end: type[Rewarded | Expired]
    ) -> tuple[float, float, Ended | None]:
        """Return the cost of a reward or of its time-out, what the policy learns from it, and how its decision ended."""
        ended: Ended | None = None
        cost = value
        if self._deadline is not None:
            ended = "timed out" if end is Expired else "failed" if "failed" in extra else None
            cost = self._deadline.cost(value, ended)
        if self._evidence is not None:
            self._evidence.check(cost)
        learned = 0.0 - cost if self._minimize else cost
        if self._objective.limit is not None:
            learned = -1.0 if self._objective.is_beyond(value, minimize=self._minimize) else 0.0
        if self._contexts is not None:
            self._engine.see(self._contexts.open[decision_id] if decision_id is not None else extra["x"])
        return cost, learned, ended

    def _resolved(self, pull: Pull, cost: float, ended: Ended | None, extra: Mapping[str, Any]) -> None:
        """Pass on a reward that the policy has learned."""
        i, value, _, decision_id = pull
        deadline, evidence = self._deadline, self._evidence
        if deadline is not None:
            deadline.learned(i, value, self._decisions.time_of(decision_id), ended)
            if decision_id is not None and ended == "timed out":
                deadline.timed_out(decision_id)
        if self._fields.sticky is not None and decision_id is not None:
            self._fields.sticky.rewarded(decision_id)
        if self._fields.outcomes is not None:
            self._fields.outcomes.resolved(i, decision_id, extra.get("metrics"))
        if evidence is not None:
            evidence.observed(i, cost) if decision_id is None else evidence.ended(i, decision_id, cost)
        if self._contexts is not None:
            self._learned_at(self._contexts, i, value, decision_id, extra)

    def _learned_at(
        self, contexts: Contexts, i: int, value: float, decision_id: DecisionId | None, extra: Mapping[str, Any]
    ) -> None:
        """Forget the x of a decision, take in numbers without a scale, and record the residual for the detector of changes."""
        if decision_id is None:
            contexts.encoder.collect(extra["unscaled"])
        else:
            del contexts.open[decision_id]
        if self._record.watched is not self._fresh:
            residual = float(self._engine.state.residual[0])
            self._record.watched[i].append(0.0 - residual if self._minimize else residual)

    def _checked_value(self, value: Any) -> float:
        checked = checked_reward(value)
        if self._deadline is not None:
            self._deadline.check(checked)
        return checked if self._evidence is None else self._evidence.check(checked)

    def _check_signs(self, name: str, values: Sequence[float]) -> None:
        """Raise at the first reward that a bandit with a cap or a deadline refuses."""
        for each in (self._evidence, self._deadline):
            if each is not None:
                for k, value in enumerate(values):
                    each.check(value, at(name, k))

    def _learn_once(
        self, pull: Pull, extra: Mapping[str, Any] = NOTHING, end: type[Rewarded | Expired] = Rewarded
    ) -> Sequence[Warned]:
        """Learn the reward of a decision, or only close it, if a reward of the same assignment was learned before."""
        decision_id = pull[3]
        if self._fields.sticky is None or decision_id is None or self._fields.sticky.teaches(decision_id):
            return self._learn(pull, extra, end)
        if self._evidence is not None:
            self._evidence.ended(pull[0], decision_id, self._evidence.check(pull[1]))
        self._decisions.open.close(decision_id)
        self._fields.sticky.rewarded(decision_id)
        self._amounts.pop(decision_id, None)
        if self._fields.outcomes is not None:
            self._fields.outcomes.resolved(pull[0], decision_id, extra.get("metrics"))
        self._changed(end, id=decision_id, value=pull[1], **extra)
        return ()

    def _new_warnings(self, i: int) -> list[Warned]:
        """Return warnings after a reward of an arm that made the state grow, or that the detector of changes waited for."""
        warned = [] if len(self._fresh[i]) % WATCHED else self._digest(i)
        if self._newest_alarm() != self._known_alarm:
            self._known_alarm = self._newest_alarm()
            warned.append((DriftWarning, drift_warning_text(self._alarms(None)[-1])))
        return warned

    def _newest_alarm(self) -> Alarm | None:
        """Return the newest alarm of the policy itself."""
        alarms = self._engine.alarms()
        return alarms[-1] if alarms else None

    def _digest(self, i: int) -> list[Warned]:
        """Let the detector of changes and the record of rewards take in an arm's new rewards; return warnings."""
        alarms = self._record.watch_fresh(i)
        warned: list[Warned] = [
            (DriftWarning, drift_warning_text(alarm.named(self._arms[alarm.arm]))) for alarm in alarms
        ]
        if len(self._fresh[i]) >= CHUNK:
            self._record.fold(i)
            serving = [
                n if state != RETIRED else -1 for n, state in zip(self._received(), self._fields.states, strict=True)
            ]
            assumption = (
                self._policy.facts.assumption if self._objective.limit is None else NO_ASSUMPTION
            )  # of indicators
            found = self._record.alarm(i, serving, assumption, minimize=self._minimize)
            if found is not None:
                kept = self._kept(self._record.settled())
                text = warning_text(self._policy, kept, self._arms[i], *found, self._minimize)
                warned.append((AssumptionWarning, text))
            elif self._policy.clips_gains and (
                hidden := self._record.hidden_gains(i, serving, minimize=self._minimize)
            ):
                text = gains_text(self._policy.name, self._arms[i], self._arms[hidden[0]], self._minimize)
                warned.append((AssumptionWarning, text))
        return warned

    # --- late rewards -----------------------------------------------------------------------------------------------

    def decide(
        self,
        among: Iterable[Arm] | None = None,
        *,
        arm: Arm = NOT_GIVEN,
        unit: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Pull an arm whose reward comes later, through `reward`.

        Parameters
        ----------
        among
            As in `select`.
        arm
            The arm of a choice that was made elsewhere, such as by a client that could not reach the bandit. The bandit records it
            and will learn its reward. Any arm may be given, also a paused or retired one. Policies that weight rewards by the
            probability of the choice reject it.
        unit
            Who the decision is for, such as a user: a string. The bandit needs ``sticky_for``. A unit gets the same arm again for
            ``sticky_for`` seconds after the decision that chose it, if the arm is active and in ``among``. Only the first reward of
            these decisions is learned, because the rewards of one user resemble each other. Call `reward` for the others, too: they
            close their decisions. The 100,000 newest units are kept.
        context
            The values of the bandit's features. Required if it has features. Its reward is learned with them.

        Examples
        --------
        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], sticky_for=3600.0)
        >>> first, other, again = (bandit.decide(unit=unit) for unit in ("ann", "bob", "ann"))
        >>> first.arm, other.arm, again.arm
        ('a', 'b', 'a')
        >>> for decision in (first, other, again):
        ...     bandit.reward(decision, 1.0)
        >>> [row["pulls"] for row in bandit.estimates()]
        [1, 1]
        """
        if self._deadline is not None and self._deadline.oldest < self._now() - self._deadline.limit:
            with self._guard.exclusive():
                warned = self._timed_out()
            _warn(warned)
        if arm is not NOT_GIVEN or unit is not None or context is not None or self._contexts is not None:
            event = self.decided(among, arm=arm, unit=unit, context=context)
            if self._contexts is not None:
                with self._guard.exclusive():
                    self._set_scales()
            return Decision(event.id, event.arm, event.propensity_or_nan, event.time)
        if self._engine.issue_entry is None:
            # Compiling is done with the lock: while the owner compiled without it, other threads would wait busily.
            with self._guard.exclusive():
                self._engine.prepare("issue")
        return self._decide(among)

    def decide_many(
        self, n: int, among: Iterable[Arm] | None = None, *, contexts: Sequence[Mapping[str, Any]] | None = None
    ) -> list[Decision]:
        """Return ``n`` decisions, as ``n`` calls of `decide` would return, with no call of another thread between them.

        If fewer than ``n`` decisions fit into ``max_open``, or into the policy's horizon, none is made. A bandit with features
        needs ``contexts``, one for each decision.
        """
        n = validation.integer(n, "n", 1)
        names = None if among is None else listed("among", among)
        given = None if contexts is None else validation.items_of(contexts, "contexts", "contexts")
        if given is not None and len(given) != n:
            raise validation.invalid("contexts", contexts, f"{n} contexts, one for each decision")
        with self._guard.exclusive():
            self._engine.prepare("issue")
            warned = self._timed_out()
            self._check_room(n)
            self._check_horizon(n)
            if given is not None or self._contexts is not None:
                for context in given or (None,):
                    self._encoded(context)  # raises before any decision is made
                decisions = [self.decide(names, context=context) for context in given or ()]
            else:
                decisions = [self._decide(names) for _ in range(n)]
        _warn(warned)
        return decisions

    def decided(
        self,
        among: Iterable[Arm] | None = None,
        *,
        arm: Arm = NOT_GIVEN,
        unit: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Decided:
        """Make a decision as `decide` does, and return its event, whose ``repeat`` tells whether a unit got its arm again."""
        given = arm is not NOT_GIVEN
        if given and among is not None:
            raise InvalidInput(
                f"arm = {formatted(arm)} and among exclude each other: give one of them", parameter="arm"
            )
        if unit is not None:
            unit = self._checked_unit(unit, given)
            among = None if among is None else listed("among", among)  # an iterator is read once
        with self._guard.exclusive():
            self._engine.prepare("issue")
            i = self._position_given(arm) if given else -1
            self._check_room()
            now = self._now()
            at_x: dict[str, Any] = {}
            if context is not None or self._contexts is not None:
                x, unscaled = self._encoded(context)
                at_x = {"x": tuple(x.tolist()), "unscaled": unscaled}
            if unit is not None:
                self._engine.prepare("forget")
                held = self._assignment(unit, now, among)
                if held is not None:
                    return self._repeated(held, now)
            if given:
                self._check_horizon(1)
            else:
                i = self._choose_at(x, among) if at_x else self._choose(among)
            asked = self._asked_names()
            if at_x:
                at_x["asked_x"] = self._asked_x(at_x["x"])
                self._engine.see(x)
            self._follow(RULE)
            mark, propensity = self._engine.issue(i)
            made = OpenDecision(i, mark, math.nan if given else propensity, now)
            decision_id = self._decisions.add_new(*made)
            self._opened(i, decision_id, now)
            if unit is not None:
                self._assign(decision_id, unit, made)
            if self._contexts is not None:
                self._contexts.open[decision_id] = x
                self._contexts.encoder.collect(unscaled)
            facts = self._facts(decision_id, made) | {"given": given, "unit": unit} | at_x
            self._changed(Decided, **facts)
            return Decided(**facts, asked=asked)

    def _checked_unit(self, unit: Any, given: bool) -> str:
        if given:
            raise InvalidInput(
                f"arm and unit = {formatted(unit)} exclude each other: give one of them", parameter="unit"
            )
        if self._fields.sticky is None:
            rule = "left out: this bandit is not sticky"
            raise validation.invalid("unit", unit, rule, hint="make it with Bandit(..., sticky_for=3600.0)")
        return checked_unit(unit)

    def _assignment(self, unit: str, now: float, among: Iterable[Arm] | None) -> Assignment | None:
        """Return the assignment that a decision of a unit repeats, if there is one."""
        positions = None if among is None else self._positions(among)
        held = None if self._fields.sticky is None else self._fields.sticky.of(unit, now)
        if (
            held is None
            or self._fields.states[held.arm] != ACTIVE
            or (positions is not None and held.arm not in positions)
        ):
            return None
        return held

    def _repeated(self, held: Assignment, now: float) -> Decided:
        """Repeat the arm of an assignment. The policy does not know of it."""
        assert self._fields.sticky is not None
        made = OpenDecision(held.arm, held.mark, held.propensity, now)
        asked = self._asked_names()
        decision_id = self._decisions.add_new(*made)
        self._fields.sticky.repeat(decision_id, held.unit)
        facts = self._facts(decision_id, made) | {"unit": held.unit, "repeat": True}
        self._changed(Decided, **facts)
        return Decided(**facts, asked=asked)

    def _assign(self, decision_id: DecisionId, unit: str, made: OpenDecision) -> None:
        """Let a unit keep the arm of a new decision, and forget the pulls of ended assignments that have no reward."""
        assert self._fields.sticky is not None
        for each in self._fields.sticky.begin(decision_id, unit, made):
            self._engine.forget(each.arm, each.mark)

    @alone
    def _decide(self, among: Iterable[Arm] | None) -> Decision:
        if self._fields.max_open is not None:
            self._check_room()
        now = self._clock()
        if type(now) is not float or not -inf < now < inf:
            now = _checked_time(now)
        i = self._choose(among)
        engine = self._engine
        if engine.rule != RULE:
            self._follow(RULE)
        mark: float
        propensity: float | None = None
        if engine.deterministic:  # the usual case of `issue`, without a call
            try:
                mark = engine.issue_entry(*(engine.args + (i,)))
            except IndexError as error:
                engine.refuse(error)
            if not -inf < mark < inf:
                engine.reject_mark(mark)
        else:
            mark, propensity = engine.issue(i)
        decision_id = self._decisions.add_new(i, mark, propensity, now)
        if not self._plain:
            self._opened(i, decision_id, now)
        if self._log is None and not self._asked:
            self._pick = -1  # the usual case of `_changed`, without a call
        else:
            self._changed(Decided, **self._facts(decision_id, OpenDecision(i, mark, propensity, now)))
        return tuple.__new__(Decision, (decision_id, self._arms[i], propensity, now))  # half the time of Decision(...)

    def _opened(self, i: int, decision_id: DecisionId, now: float) -> None:
        """Pass on a new decision."""
        if self._fields.outcomes is not None:
            self._fields.outcomes.decided(i, decision_id)
        if self._evidence is not None:
            self._evidence.decided(i, decision_id)
        if self._deadline is not None:
            self._deadline.opened(i, now)

    def _position_given(self, arm: Arm) -> int:
        """Return an arm that was chosen elsewhere."""
        i = self._position(arm)
        if self._policy.weighted:
            hint = "let decide() choose, or use another policy"
            raise DecisionError(f"{self._policy.label} {_WEIGHS}, which is not known for a given arm: {hint}")
        return i

    def _check_room(self, more: int = 1) -> None:
        if self._fields.max_open is not None and len(self._decisions.open) + more > self._fields.max_open:
            hint = "reward decisions, or close lost ones with expire(older_than=timedelta(...))"
            requested = "" if more == 1 else f", and {more} more are requested"
            message = f"{len(self._decisions.open)} decisions are open{requested}, and max_open = {self._fields.max_open}: {hint}"
            raise DecisionError(
                message, parameter="max_open", value=self._fields.max_open, rule="the most open decisions"
            )

    def _now(self) -> float:
        now = self._clock()
        return now if type(now) is float and -inf < now < inf else _checked_time(now)

    def _facts(self, decision_id: DecisionId, made: OpenDecision) -> dict[str, Any]:
        """Return the fields of the event of a decision."""
        return made._asdict() | {"id": decision_id, "arm": self._arms[made.arm], "rule": RULE}

    def _follow(self, rule: int) -> None:
        """Count pulls without a reward from now on, or not. What 0.2 wrote goes on by its rule until the next own decision."""
        if rule != self._engine.rule:
            self._engine.follow(rule, self._decisions.open.per_arm(len(self._arms)))

    def reward(
        self,
        decision: Decision | DecisionId,
        value: float,
        metrics: Mapping[str, float] | None = None,
        final: bool = True,
        part: str | None = None,
    ) -> None:
        """Learn the reward of an open decision, given by itself or its id. Rewards may come in any order, each exactly once.

        Parameters
        ----------
        decision, value
            The decision or its id, and the reward.
        metrics
            Other numbers of the outcome, such as ``{"error": 0, "latency_ms": 180}``. The bandit must declare their names. A
            guardrail does not count a reward without its metric.
        final
            False adds an amount, such as a refund, and keeps the decision open. The final reward, or `expire`, ends it: their sum
            is learned, once.
        part
            A name of the amount, unique for this decision. The same amount again under this name changes nothing, and another one
            is an error. None: each call adds an amount.

        Examples
        --------
        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1(), metrics=["error"])
        >>> decision = bandit.decide()
        >>> bandit.reward(decision, 10.0, final=False)
        >>> bandit.reward(decision, -2.5, final=False, part="refund-1")
        >>> bandit.reward(decision, 0.0, metrics={"error": 0})
        >>> bandit.estimates()[0]["mean"]
        7.5
        """
        usual = type(value) is float and (_SMALLEST <= abs(value) <= _LARGEST or not value)
        checked = value if usual else checked_reward(value)
        if (final is not True and not validation.flag(final, "final")) or part is not None:
            self._add_amount(decision, checked, metrics, final, part)
            return
        warned = self._reward((decision, checked, metrics))
        if not self._plain:
            warned = self._with_deadline(warned)
        if warned:
            _warn(warned)

    def _add_amount(
        self, decision: Decision | DecisionId, value: float, metrics: Any, final: bool, part: str | None
    ) -> None:
        if final:
            raise validation.invalid("part", part, "left out, unless final is False")
        if self._deadline is not None:
            raise validation.invalid("final", final, "True: with a deadline, a reward is one elapsed time")
        if metrics is not None:
            raise validation.invalid("metrics", metrics, "left out, unless final is True", hint="pass them at the end")
        with self._guard.exclusive():
            decision_id = self._checked_open(decision)[2]
            name = self._amounts.checked_part(decision_id, part, value)
            if name is not None:
                self._checked_value(self._amounts.total(decision_id, value))  # or no expiry could learn the sum
                self._amounts.add(decision_id, name, value)
                self._changed(Added, id=decision_id, part=name, value=value)

    def amounts(self, decision_id: DecisionId) -> dict[str, float]:
        """Return the amounts of an open decision so far, by their names."""
        with self._guard.exclusive():
            return dict(self._amounts.get(decision_id, {}))

    def total(self, decision_id: DecisionId, last: float = 0.0) -> float:
        """Return the sum of the amounts of an open decision and the last one, if the policy can learn it."""
        with self._guard.exclusive():
            return self._amounts.total(decision_id, last)

    def reward_many(self, decisions: Iterable[Decision | DecisionId], values: Iterable[float]) -> None:
        """Learn the rewards of several open decisions. If one is invalid, nothing is learned. `update_many` describes columns."""
        given = listed("decisions", decisions)
        checked = checked_rewards("values", values)
        with self._guard.exclusive():
            if len(given) != len(checked):
                hint = "pass one reward for each decision"
                raise InvalidInput(f"{len(given)} decisions but {len(checked)} rewards: {hint}")
            late: Sequence[Warned] = self._timed_out()
            if self._deadline is not None:
                self._check_signs("values", checked)
                in_time = [not self._deadline.was_late(each) for each in given]
                given, checked = list(compress(given, in_time)), list(compress(checked, in_time))
            chosen = [self._checked_open(d, at("decisions", k))[2] for k, d in enumerate(given)]
            if len(set(chosen)) < len(chosen):
                twice = Counter(chosen).most_common(1)[0][0]
                raise DecisionError(f"decision {twice!r} is given twice: a decision is rewarded exactly once")
            self._check_signs("values", [self._amounts.total(d, v) for d, v in zip(chosen, checked, strict=True)])
            warned = [each for d, v in zip(chosen, checked, strict=True) for each in self._reward((d, v, None))]
        _warn(self._with_deadline([*late, *warned]))

    def fail(self, *decisions: Decision | DecisionId, metrics: Mapping[str, float] | None = None) -> None:
        """Close open decisions that failed. Each costs ``failure_cost``, however fast it failed. The bandit needs a ``deadline``.

        ``metrics`` are those of `reward`, for each of them.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], minimize=True, deadline=30.0)
        >>> decision = bandit.decide()
        >>> bandit.fail(decision)
        >>> bandit.estimates()[0]["failures"]
        1
        """
        if self._deadline is None:
            hint = "make it with Bandit(..., minimize=True, deadline=30.0); otherwise use reward() or expire()"
            raise NotApplicable(f"fail needs a bandit with a deadline, which gives a failure its cost: {hint}")
        with self._guard.exclusive():
            late = self._timed_out()
            given = [(k, each) for k, each in enumerate(decisions) if not self._deadline.was_late(each)]
            checked = [self._checked_open(each, at("decisions", k)) for k, each in given]
            cost, failed = self._deadline.failure_cost, {"failed": True} | self.measured(metrics)
            pulls: list[Pull] = [(i, cost, mark, id) for i, mark, id in dict.fromkeys(checked)]
            warned = [each for pull in pulls for each in self._learn(pull, failed)]
            warned += self._enforce_guardrails()
        _warn([*late, *warned])

    def _timed_out(self) -> list[Warned]:
        """Close the decisions that are open for longer than the deadline; return warnings."""
        deadline = self._deadline
        before = None if deadline is None else deadline.overdue(self._now())
        if deadline is None or before is None:
            return []
        warned: list[Warned] = []
        for decision_id in self._decisions.open.older_than(before):
            i, mark, _ = self._checked_open(decision_id)
            warned += self._learn((i, deadline.failure_cost, mark, decision_id), end=Expired)
        return [*warned, *self._enforce_guardrails()]

    @alone
    def _reward(self, rewarded: tuple[Decision | DecisionId, float, Mapping[str, float] | None]) -> Sequence[Warned]:
        decision, value, metrics = rewarded
        if self._plain and metrics is None and not self._amounts:
            i, mark, decision_id = self._decisions.checked_open(decision, self._arms, self._policy)
            return self._learn((i, value, mark, decision_id))
        if self._deadline is not None:
            self._deadline.check(value)
            if self._deadline.overdue(self._now()) is not None:
                return [*self._timed_out(), *self._reward(rewarded)]
            if self._deadline.was_late(decision):
                return ()
        i, mark, decision_id = self._decisions.checked_open(decision, self._arms, self._policy)
        if self._fields.outcomes is not None or metrics is not None or self._amounts:
            extra = self.measured(metrics)
            if decision_id in self._amounts:
                extra["amount"], value = value, self._amounts.total(decision_id, value)
            warned = self._learn_once((i, value, mark, decision_id), extra)
            return [*warned, *self._enforce_guardrails()]
        if self._fields.sticky is not None:
            return self._learn_once((i, value, mark, decision_id))
        return self._learn((i, value, mark, decision_id))

    def expire(self, *decisions: Decision | DecisionId, older_than: timedelta | None = None) -> int:
        """Close open decisions whose rewards will never come, and return their number. Rewards that come later are rejected.

        If amounts were added to a decision (``reward(..., final=False)``), their sum is learned.

        If more than 20 % of the decisions that ended have expired, the call that passes this limit issues an `ExpiryWarning`.

        Parameters
        ----------
        *decisions
            Open decisions, or their ids.
        older_than
            Close also all decisions that were made before this time span.
        """
        if older_than is not None and not isinstance(older_than, timedelta):
            raise validation.invalid("older_than", older_than, "a timedelta", hint="such as timedelta(hours=1)")
        if older_than is not None and older_than < timedelta(0):
            raise validation.invalid("older_than", older_than, "at least 0")
        with self._guard.exclusive():
            self._engine.prepare("forget")
            late = self._timed_out()
            given = [d for d in decisions if self._deadline is None or not self._deadline.was_late(d)]
            ids = [self._checked_open(d, at("decisions", k))[2] for k, d in enumerate(given)]
            if older_than is not None:
                ids += self._decisions.open.older_than(self._now() - older_than.total_seconds())
            gone = dict.fromkeys(ids)
            known = many_expired(self._decisions.expired, self._decisions.ended)
            warned = [each for decision_id in gone for each in self._expire(decision_id)]
            warned += self._enforce_guardrails()
            expired, ended = self._decisions.expired, self._decisions.ended
        _warn([*late, *warned])
        if not known and many_expired(expired, ended):
            text = (
                f"{expired:,} of the {ended:,} decisions that ended expired without a reward ({share(expired / ended)})"
            )
            way_out = "call reward for every decision that has an outcome, or expire decisions later"
            _warn([(ExpiryWarning, f"{text}, so nothing was learned from them: {way_out}")])
        return len(gone)

    def _expire(self, decision_id: DecisionId) -> Sequence[Warned]:
        i, mark, _ = self._checked_open(decision_id)
        if decision_id in self._amounts:
            return self._learn_once((i, self._amounts.total(decision_id), mark, decision_id), end=Expired)
        if self._fields.sticky is None or self._fields.sticky.expired(decision_id):
            if self._contexts is not None:
                self._engine.see(self._contexts.open.pop(decision_id))
            self._engine.forget(i, mark)
        if self._evidence is not None:
            self._evidence.ended(i, decision_id, None)
        if self._deadline is not None:
            self._deadline.closed(i, self._decisions.time_of(decision_id))
        self._decisions.open.close(decision_id)
        self._decisions.expired += 1
        if self._fields.outcomes is not None:
            self._fields.outcomes.resolved(i, decision_id, None)
        self._changed(Expired, id=decision_id)
        return ()

    def _checked_open(self, decision: Decision | DecisionId, place: str = "") -> tuple[int, float, DecisionId]:
        return self._decisions.checked_open(decision, self._arms, self._policy, place)

    def _position(self, arm: Arm, place: str = "") -> int:
        if type(arm) is str and arm in self._index:  # the usual case
            return self._index[arm]
        try:
            return self._index[hashable(arm)]
        except Exception:  # as in `_update`
            known = excerpt(repr(a) for a in self._arms)
            message = f"{place}arm {formatted(arm)} is unknown: this bandit has {known}"
            raise UnknownArm(message, parameter="arm", value=arm, rule=f"one of {known}") from None

    # --- arms that come and go --------------------------------------------------------------------------------------

    def add_arm(self, arm: Arm) -> None:
        """Add an arm. The policy treats it as one that had been paused from the start.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1())
        >>> bandit.update_many(["a", "b"], [1.0, 2.0])
        >>> bandit.add_arm("c")
        >>> bandit.select()
        'c'
        """
        with self._guard.exclusive():
            self._add_arm(self._new_name(arm))

    def _new_name(self, arm: Arm) -> Arm:
        name = checked_name(arm)
        if name in self._index:
            state = self._fields.states[self._index[name]]
            hint = "use resume_arm()" if state == PAUSED else "use another name"
            raise validation.invalid("arm", name, f"a new name: this arm exists and is {state}", hint=hint)
        return name

    def _add_arm(self, name: Arm) -> None:
        if self._deadline is not None:
            self._deadline.add_arm()
        self._engine.add_arm(None if self._deadline is None else self._deadline.waits.shifts)
        self._index[name] = len(self._arms)
        self._arms.append(name)
        self._fields.states.append(ACTIVE)
        self._unrecorded.append(0)
        self._record.add_arm()
        if self._fields.outcomes is not None:
            self._fields.outcomes.add_arm()
        if self._evidence is not None:
            self._evidence.add_arm()
        self._changed(ArmAdded, arm=name)

    def pause_arm(self, arm: Arm) -> None:
        """Stop choosing an arm until `resume_arm`. What it has learned is kept, and its late rewards are still learned."""
        self._change_state(arm, ArmPaused)

    def resume_arm(self, arm: Arm) -> None:
        """Let a paused arm be chosen again. If it broke a guardrail, only its decisions from now on count for guardrails."""
        self._change_state(arm, ArmResumed)

    def retire_arm(self, arm: Arm) -> None:
        """Stop choosing an arm for ever. Its late rewards are still learned, and its name cannot be used again."""
        self._change_state(arm, ArmRetired)

    def _change_state(self, arm: Arm, event: type[Any]) -> None:
        new, old = _CHANGES_OF_STATE[event]
        with self._guard.exclusive():
            i = self._arm_in_state(arm, old)
            if new != ACTIVE:
                self._engine.check_restrictable("pause or retire arms")
            self._set_state(i, new, event)

    def _arm_in_state(self, arm: Arm, states: tuple[State, ...]) -> int:
        i = self._position(arm)
        if self._fields.states[i] not in states:
            rule = f"an arm that is {' or '.join(states)}: this one is {self._fields.states[i]}"
            hint = (
                "a retired arm cannot come back; add an arm with another name"
                if self._fields.states[i] == RETIRED
                else ""
            )
            raise validation.invalid("arm", self._arms[i], rule, hint=hint)
        return i

    def _set_state(self, i: int, new: State, event: type[Any], guardrail: Broken | None = None) -> None:
        if (new == ACTIVE) != (self._fields.states[i] == ACTIVE):
            self._engine.set_available(i, available=new == ACTIVE)
        self._fields.states[i] = new
        if self._fields.outcomes is not None:
            if new == ACTIVE:
                self._fields.outcomes.resumed(i)
            elif guardrail is not None:
                self._fields.outcomes.broken[i] = guardrail
        self._changed(event, arm=self._arms[i], **({} if guardrail is None else {"guardrail": guardrail}))

    # --- guardrails -------------------------------------------------------------------------------------------------

    def guardrail_event(self) -> ArmPaused | ArmAlarmed | None:
        """Return the next event that follows from a broken guardrail. The service, which applies events itself, asks for it."""
        with self._guard.exclusive():
            due = None if self._fields.outcomes is None else self._fields.outcomes.due(self._fields.states)
            return due and (ArmPaused if due[2] else ArmAlarmed)(arm=self._arms[due[0]], guardrail=due[1])

    def _enforce_guardrails(self) -> list[Warned]:
        """Pause arms that broke a guardrail, and return the warnings."""
        warned: list[Warned] = []
        while (event := self.guardrail_event()) is not None:
            self._checked_action(event)()
            way_out = "it is paused; resume_arm() lets it start anew"
            if isinstance(event, ArmAlarmed):
                way_out = "it goes on, because no other arm is active; add or resume one"
            warned.append((GuardrailWarning, f"arm {formatted(event.arm)} broke {event.guardrail}: {way_out}"))
        return warned

    def _alarm(self, i: int, guardrail: Broken) -> None:
        if self._fields.outcomes is not None:
            self._fields.outcomes.broken[i] = guardrail
            self._fields.outcomes.alarmed.add(i)
        self._changed(ArmAlarmed, arm=self._arms[i], guardrail=guardrail)

    def metrics(self) -> list[dict[str, Any]]:
        """Return one dict per arm and metric: arm, metric, the ``count`` of its values, and their ``mean`` (NaN without any)."""
        with self._guard.exclusive():
            found = self._fields.outcomes
            rows = () if found is None else zip(self._arms, found.sums, strict=True)
            return [
                {"arm": arm, "metric": name, "count": count, "mean": total / count if count else math.nan}
                for arm, row in rows
                for name, (count, total) in zip(found.names if found else (), row, strict=True)
            ]

    def broken_guardrails(self) -> dict[Arm, Broken]:
        """Return the guardrail that each arm broke since it was last resumed, with the numbers."""
        with self._guard.exclusive():
            return (
                {}
                if self._fields.outcomes is None
                else {self._arms[i]: why for i, why in sorted(self._fields.outcomes.broken.items())}
            )

    def guardrails(self) -> list[dict[str, Any]]:
        """Return one dict per arm and guardrail, about the decisions that count.

        Its keys: arm, ``guardrail``, ``count`` and ``share`` (the mean of the violations, NaN without any), and ``broken``: the
        numbers with which the arm broke it (`robandit.live.guardrails.Broken`), or None.
        """
        with self._guard.exclusive():
            found = self._fields.outcomes
            if found is None:
                return []
            return [
                {
                    "arm": arm,
                    "guardrail": rail,
                    "count": count,
                    "share": total / count if count else math.nan,
                    "broken": why if (why := found.broken.get(i)) is not None and why.guardrail == rail else None,
                }
                for i, arm in enumerate(self._arms)
                for rail, (count, total) in zip(found.guardrails, found.seen[i], strict=True)
            ]

    # --- events -----------------------------------------------------------------------------------------------------

    def apply(self, event: Event | Mapping[str, Any]) -> None:
        """Repeat an event that another bandit passed to its ``log``, such as one read from a file.

        A decision gets the arm and the mark of the event: nothing is chosen anew. So a bandit that was made with the same arguments
        (and a seed, if its policy draws random numbers) and applies all events of a log has the same bytes (`to_bytes`) as the one
        that wrote it. So does a saved one that applies the events since. Do not call `select` between applied events. A bandit does
        not pass applied events to its own log, and does not repeat warnings.

        >>> import robandit as rb
        >>> log = []
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1(), log=log.append)
        >>> bandit.reward(bandit.decide(), 1.5)
        >>> again = rb.Bandit(["a", "b"], rb.UCB1())
        >>> for event in log:
        ...     again.apply(event)
        >>> again.to_bytes() == bandit.to_bytes()
        True
        """
        event = event_from(event)
        with self._guard.exclusive():
            log, self._log = self._log, None
            try:
                self._apply(event)
            finally:
                self._log = log
            if self._deadline is not None:
                self._deadline.warning()

    def _apply(self, event: Event) -> None:
        act = self._checked_action(event)
        if event.asked:
            self._ask_again(event.asked, event.asked_x or (getattr(event, "x", ()),) * len(event.asked))
        act()

    def _ask_again(self, choices: Asked, at_x: Sequence[Sequence[float]]) -> None:
        asked = [None if names is None else self._positions(names) for names in choices]
        pending = self._pending()
        if asked[: len(pending)] == pending:  # this bandit was saved with a choice pending, which the event also lists
            asked, at_x = asked[len(pending) :], at_x[len(pending) :]
        for among, x in zip(asked, at_x, strict=True):
            if self._contexts is not None:
                self._engine.see(self._contexts.again(x, (None,) * len(self._contexts.encoder.first)))
            self._engine.ask(among)

    def _checked_action(self, event: Event) -> Callable[[], object]:
        """Return the function that repeats an event. Raise if the event does not fit, before anything is changed."""
        match event:
            case Rewarded() | Expired() if event.value is not None:
                i, mark, decision_id = self._checked_open(event.id)
                extra = self.measured(event.metrics) if isinstance(event, Rewarded) else NOTHING
                if self._deadline is not None and isinstance(event, Rewarded) and event.failed:
                    extra = {**extra, "failed": True}
                ended = (i, self._checked_value(event.value), mark, decision_id)
                return partial(self._learn_once, ended, extra, type(event))
            case Decided():
                life, number = self._decisions.checked_new(event.id)
                self._engine.prepare("issue")
                made = self._checked_decision(event)
                self._check_x(event)
                if event.unit is not None or event.repeat:
                    self._check_unit_again(event, made)
                return partial(self._decide_again, event, made, life, number)
            case Observed():
                pull = (self._position(event.arm), self._checked_value(event.value), NOW, None)
                self._check_x(event)
                extra = {} if self._contexts is None else {"x": event.x, "unscaled": event.unscaled}
                return partial(self._learn, pull, self.measured(event.metrics) | extra)
            case Scaled():
                if self._contexts is None or event.feature not in self._contexts.encoder.first:
                    raise validation.invalid("feature", event.feature, "a number without a scale", owner="Scaled")
                return partial(self._set_scale, event)
            case Added():
                decision_id = self._checked_open(event.id)[2]
                name = self._amounts.checked_part(decision_id, event.part, checked_reward(event.value))
                if name is None:
                    raise validation.invalid("part", event.part, "applied once", owner="Added")
                return partial(self._add_amount, decision_id, event.value, None, False, name)
            case ArmAlarmed():
                return partial(self._alarm, self._arm_in_state(event.arm, (ACTIVE,)), event.guardrail)
            case Expired():
                self._engine.prepare("forget")
                return partial(self._expire, self._checked_open(event.id)[2])
            case ArmAdded():
                return partial(self._add_arm, self._new_name(event.arm))
            case _:
                new, old = _CHANGES_OF_STATE[type(event)]
                why = event.guardrail if isinstance(event, ArmPaused) else None
                return partial(self._set_state, self._arm_in_state(event.arm, old), new, type(event), why)

    def _check_x(self, event: Decided | Observed) -> None:
        if self._contexts is not None:
            self._contexts.again(event.x, event.unscaled)
        elif event.x:
            raise validation.invalid("x", event.x, "left out: this bandit has no features", owner=type(event).__name__)

    def _checked_decision(self, event: Decided) -> OpenDecision:
        i = self._position(event.arm) if event.given else self._arm_in_state(event.arm, (ACTIVE,))
        if self._policy.weighted:
            validation.within(event.mark, "mark", 0.0, 1.0, open_low=True, owner="Decided")
        if not 0 <= event.rule <= RULE:
            rule = f"0 to {RULE}: the rules that this version of Robandit knows"
            raise validation.invalid("rule", event.rule, rule, owner="Decided")
        mark, time = event.mark, event.time
        if not (type(mark) is float and type(time) is float and -inf < mark < inf and -inf < time < inf):
            validation.finite(mark, "mark", owner="Decided")
            validation.finite(time, "time", owner="Decided")
        if isinstance(event.propensity, float) and not math.isnan(event.propensity):  # NaN: not known
            validation.within(event.propensity, "propensity", 0.0, 1.0, owner="Decided")
        return OpenDecision(i, mark, event.propensity_or_nan, time)

    def _decide_again(self, event: Decided, made: OpenDecision, life: str, number: int) -> None:
        if self._contexts is not None:
            self._contexts.open[event.id] = x = self._contexts.again(event.x, event.unscaled)
            self._contexts.encoder.collect(event.unscaled)
            self._engine.see(x)
        if not event.repeat:
            self._follow(event.rule)
            self._engine.issue(made.arm)
            if self._fields.outcomes is not None:
                self._fields.outcomes.decided(made.arm, event.id)
            if self._evidence is not None:
                self._evidence.decided(made.arm, event.id)
        self._decisions.add_known(event.id, made, life, number)
        if self._deadline is not None:
            self._deadline.opened(made.arm, made.time)
        if event.unit is not None and self._fields.sticky is not None:
            if event.repeat:
                self._fields.sticky.repeat(event.id, event.unit)
            else:
                self._assign(event.id, event.unit, made)
        self._forget_choices()

    def _check_unit_again(self, event: Decided, made: OpenDecision) -> None:
        """Raise if the unit of an event, or the decision that it repeats, does not fit."""
        self._engine.prepare("forget")
        unit = self._checked_unit(event.unit, event.given)
        held = self._fields.sticky.of(unit, made.time) if self._fields.sticky is not None else None
        if event.repeat and (held is None or (held.arm, held.mark) != (made.arm, made.mark)):
            fact = f"decision {formatted(event.id)} repeats an arm that unit {formatted(unit)} does not have here"
            raise DecisionError(f"{fact}: apply all events of a log in order", parameter="unit", value=unit)

    def _changed(self, event: type[Any], **fields: Any) -> None:
        """Forget the arm that was selected before the event, and log the event. The log may save the bandit, so it comes last."""
        asked = self._asked_names() if self._log is not None else ()
        if asked and self._contexts is not None:
            fields.setdefault("asked_x", self._asked_x(fields.get("x")))
        self._forget_choices()
        if self._log is not None:
            self._log(event(**fields, asked=asked))

    def _asked_x(self, x: tuple[float, ...] | None) -> tuple[tuple[float, ...], ...]:
        """Return the x of each choice since the last event, or an empty tuple if all have the x of the event."""
        assert self._contexts is not None
        asked = tuple(tuple(each.tolist()) for each in self._contexts.asked[: len(self._pending())])
        return () if set(asked) <= {x} else asked

    def _forget_choices(self) -> None:
        self._asked.clear()
        self._pick = -1
        if self._contexts is not None:
            self._contexts.asked.clear()

    def _asked_names(self) -> tuple[Any, ...]:
        return tuple(None if each is None else tuple(self._arms[i] for i in each) for each in self._pending())

    def _pending(self) -> list[Among]:
        """Return the choices since the last event."""
        return self._asked if self._pick < 0 else [*self._asked, self._among]

    # --- saving -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the bandit, open decisions included, as the bytes that `save` writes and `from_bytes` reads.

        The bytes depend only on what happened to the bandit: its arguments and its events (see `apply`).

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1())
        >>> bandit.update("a", 1.0)
        >>> rb.Bandit.from_bytes(bandit.to_bytes()).select()
        'b'
        """
        with self._guard.exclusive():
            self._engine.check_sound()
            if self._contexts is not None:
                del self._contexts.asked[len(self._pending()) :]
            fields = replace(  # the others are constant, or the same lists
                self._fields,
                received=self._received(),
                expired=self._decisions.expired,
                pick=self._pick,
                among=self._engine.among,
                state=self._engine.state,
                unrewarded=self._engine.state.unrewarded.tolist(),
            )
            return pack(fields)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
        compile: Compile = "background",
    ) -> Self:
        """Return the bandit that `to_bytes` wrote, in exactly the same state. Import a policy of your own first."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise validation.invalid("data", data, "bytes that to_bytes() returned")
        return cls._unpacked(bytes(data), "data", log, clock, compile)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bandit to a file, open decisions included. The old file stays until the new one is complete."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
        compile: Compile = "background",
    ) -> Self:
        """Return the bandit that `save` wrote, in exactly the same state. Import a policy of your own first."""
        return cls._unpacked(read(path), str(path), log, clock, compile)

    @classmethod
    def _unpacked(cls, data: bytes, source: str, log: Log | None, clock: Callable[[], float], compile: Compile) -> Self:
        bandit = cls.__new__(cls)
        bandit._use(unpack(data, source), log, clock, compile)
        return bandit

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by `to_bytes`. The copy shares nothing with the original, has no ``log``, the system's clock, and
        the default of ``compile``."""
        return type(self).from_bytes, (self.to_bytes(),)


def _checked_time(now: Any) -> float:
    return validation.finite(now, "clock()", hint="return seconds since 1970")


def _warn(warned: Sequence[Warned]) -> None:
    """Warn at the user's line. Call it after learning and without the lock, since a warning may be turned into an error."""
    for category, text in warned:
        warnings.warn(text, category, stacklevel=3)

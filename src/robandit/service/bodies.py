"""The bodies of requests and answers. Their descriptions are part of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from robandit.decisions.experiment import LONGEST_ID
from robandit.decisions.settings import (
    DEFAULT_OPEN,
    DEFAULT_POLICY,
    LONGEST_NAME,
    LONGEST_UNIT,
    LONGEST_WINDOW,
    MOST_ARMS,
    MOST_OPEN,
    SHORTEST_WINDOW,
)
from robandit.kernel.loops import LARGEST_REWARD
from robandit.live import sticky
from robandit.live.amounts import LONGEST_PART
from robandit.live.guardrails import LONGEST_NAME as LONGEST_METRIC
from robandit.live.guardrails import MOST_METRICS
from robandit.service.problems import Problem

MOST_ITEMS = 1_000
LONGEST_CONTEXT = 65_536
LONGEST_NOTE = 200

Name = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._\-]{{0,{LONGEST_NAME - 1}}}$")]
ArmName = Annotated[str, Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{1,{LONGEST_NAME}}}$")]
Unit = Annotated[str, Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{0,{LONGEST_UNIT}}}$")]
StickyUnit = Annotated[
    str,
    Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{1,{sticky.LONGEST_UNIT}}}$", examples=["user-17"]),
]
MetricName = Annotated[str, Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{1,{LONGEST_METRIC}}}$", examples=["error"])]
Part = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9._:\-]{{1,{LONGEST_PART}}}$", examples=["refund-1"])]
Note = Annotated[str, Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{0,{LONGEST_NOTE}}}$")]
Id = Annotated[str, Meta(pattern=rf"^[ -~]{{1,{LONGEST_ID}}}$", examples=["018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11"])]
EdgeId = Annotated[str, Meta(pattern=r"^[a-z0-9]{8,16}-(0|[1-9][0-9]{0,14})$", examples=["k3m9qd2x7wfa-12"])]
EdgeTime = Annotated[float, Meta(ge=0, le=1e11)]
RULES = {
    msgspec.json.schema(kind)["pattern"]: rule
    for kind, rule in (
        (Name, f"1 to {LONGEST_NAME} of A-Z a-z 0-9 . _ -, starting with a letter or a digit"),
        (ArmName, f"1 to {LONGEST_NAME} characters, without control characters"),
        (StickyUnit, f"1 to {sticky.LONGEST_UNIT} characters, without control characters"),
        (Unit, f"at most {LONGEST_UNIT} characters, without control characters"),
        (Part, f"1 to {LONGEST_PART} characters of A-Z a-z 0-9 . _ : -"),
        (Note, f"at most {LONGEST_NOTE} characters, without control characters"),
        (Id, f"1 to {LONGEST_ID} printable ASCII characters"),
        (EdgeId, "LIFE-NUMBER: 8 to 16 characters of a-z 0-9, a hyphen, and a number of at most 15 digits"),
    )
}
"""The patterns in words."""
Value = Annotated[float, Meta(ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
Seconds = Annotated[float, Meta(description="Seconds since 1970 (UTC).")]
Head = Annotated[int, Meta(ge=0, description="The number of the last event that the answer includes.")]
Seq = Annotated[int, Meta(ge=1, description="The number of this event in the log of the experiment.")]
Number = Annotated[
    float | Literal["infinity", "-infinity"] | None,
    Meta(description="An infinity is a string, because JSON has no infinity. null: not known yet."),
]
Propensity = Annotated[
    float | None,
    Meta(
        description="The probability of the choice. null: the choice was deterministic, or its probability is unknown."
    ),
]


class Request(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The base class of the bodies of requests."""


class NewGuardrail(Request):
    """A limit on a metric of each arm."""

    metric: MetricName
    at_most: Annotated[
        float,
        Meta(
            description="Without quantile: the largest mean, between 0 and 1, such as an error rate. Else: the largest quantile."
        ),
    ]
    quantile: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        Meta(description="Such as 0.95. null: the limit is on the mean of values from 0 to 1."),
    ] = None
    alpha: Annotated[
        float,
        Meta(gt=0, lt=1, description="The probability that an arm within the limit is ever paused, over all arms."),
    ] = 0.05


class NewExperiment(Request):
    """The settings of a new experiment."""

    arms: Annotated[
        list[ArmName],
        Meta(
            min_length=1,
            max_length=MOST_ARMS,
            description="The names of the arms, all different.",
            extra_json_schema={"uniqueItems": True},
        ),
    ]
    policy: Annotated[
        str | None,
        Meta(
            description=f"The policy, in the notation of specs. null: {DEFAULT_POLICY}, or AdaClipTS with features.",
            examples=["AdaRUCB", "EpsilonGreedy(epsilon=0.05)"],
        ),
    ] = None
    minimize: Annotated[
        bool, Meta(description="true: rewards are costs, so smaller is better. Send them with their own sign.")
    ] = False
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    reward_window: Annotated[
        Annotated[float, Meta(ge=SHORTEST_WINDOW, le=LONGEST_WINDOW)] | None,
        Meta(description="Seconds after which a decision without a reward expires. null: never."),
    ] = None
    on_expiry: Annotated[
        Value | Literal["drop"],
        Meta(description="The value that is learned from an expired decision, or drop to learn nothing."),
    ] = "drop"
    max_open: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_OPEN)] | None,
        Meta(description=f"The maximum number of decisions that wait for rewards. null: {DEFAULT_OPEN}."),
    ] = None
    unit: Annotated[
        Unit, Meta(description="The unit of the rewards, which the dashboard shows.", examples=["ms", "EUR"])
    ] = ""
    fallback: Annotated[
        ArmName | None,
        Meta(
            description="The arm to answer with while the store cannot be reached. It is not stored. null: the answer is 503."
        ),
    ] = None
    sticky_for: Annotated[
        Annotated[float, Meta(ge=SHORTEST_WINDOW, le=LONGEST_WINDOW)] | None,
        Meta(
            description="Seconds for which the unit of a decision, such as a user, keeps its arm. Only the first reward of that "
            "time is learned. null: decisions have no unit."
        ),
    ] = None
    cap: Annotated[
        Annotated[float, Meta(gt=0, le=LARGEST_REWARD)] | None,
        Meta(
            description="Rewards are at least 0, and the standing may claim, at any time, which arm has the better mean of "
            "min(reward, cap). The policy does not use it. null: rewards have any sign, and no claims are made."
        ),
    ] = None
    floor: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(
            description="The share of all decisions that is drawn uniformly from the active arms, such as 0.02. Every propensity "
            "is then known. It costs regret. null: none."
        ),
    ] = None
    control: Annotated[
        dict[str, Annotated[float, Meta(gt=0, le=1)]] | None,
        Meta(
            description='The shares of all decisions that single arms get in any case, such as {"a": 0.05}. With floor, they sum '
            "to at most 1. null: none."
        ),
    ] = None
    objective: Annotated[
        str | None,
        Meta(
            description="What is optimised, of the rewards as you send them: mean, a quantile from p1 to p99.9, or the share of "
            "rewards beyond a limit (costs above it, rewards below it), which is minimised. null: the mean, or what the policy "
            "optimises.",
            examples=["p95", "within:2.0"],
        ),
    ] = None

    metrics: Annotated[
        Annotated[list[MetricName], Meta(min_length=1, max_length=MOST_METRICS)] | None,
        Meta(description='The names of other numbers that rewards come with, such as ["error"]. null: none.'),
    ] = None
    guardrails: Annotated[
        Annotated[list[NewGuardrail], Meta(min_length=1, max_length=MOST_METRICS)] | None,
        Meta(
            description="Limits on metrics, whose names need not be in metrics. An arm that breaks one is paused. null: none."
        ),
    ] = None
    deadline: Annotated[
        Annotated[float, Meta(gt=0, le=LONGEST_WINDOW)] | None,
        Meta(
            description="Seconds after which a decision times out, for rewards that are elapsed times in seconds, with minimize. A "
            "time-out, a longer reward and a failure cost failure_cost. Open decisions are evidence while they wait. null: none."
        ),
    ] = None
    failure_cost: Annotated[
        Value | None,
        Meta(description="The cost of a failure or a time-out, at least the deadline. null: the deadline."),
    ] = None
    features: Annotated[
        dict[str, dict[str, Any]] | None,
        Meta(
            description='The fields of contexts that the policy learns from, such as {"tokens": {"type": "number", "log": true}, '
            '"region": {"type": "category", "values": ["eu", "us"]}}, with at most 64 columns. A number has log, missing, and '
            "center with scale (otherwise, its first 100 values decide both). A category has missing, and values or buckets. "
            "null: contexts are only stored.",
            examples=[
                {"tokens": {"type": "number", "log": True}, "region": {"type": "category", "values": ["eu", "us"]}}
            ],
        ),
    ] = None


class NewDecision(Request):
    """A request for a decision."""

    id: Annotated[
        Id | None,
        Meta(description="Makes the call safe to repeat. A UUIDv7 is recommended. null: the server creates one."),
    ] = None
    among: Annotated[
        Annotated[list[ArmName], Meta(min_length=1, max_length=MOST_ARMS)] | None,
        Meta(description="Choose among these arms only. null: all active arms."),
    ] = None
    arm: Annotated[
        ArmName | None, Meta(description="Record this arm, which was chosen elsewhere. Cannot be used with among.")
    ] = None
    context: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(
            description="Any JSON up to 64 KiB and 200 levels. It is stored. An experiment with features needs an object with "
            "their values, and learns from these; other fields are stored only."
        ),
    ] = msgspec.UNSET
    unit: Annotated[
        StickyUnit | None,
        Meta(
            description="Who the decision is for, such as a user: gets the same arm for the sticky_for seconds of the experiment. "
            "It is stored. Cannot be used with arm. (The unit of the rewards, such as ms, is a setting of the experiment.)"
        ),
    ] = None


NewMetrics = Annotated[
    dict[str, bool | Value] | None,
    Meta(
        description='Other numbers of the outcome, such as {"error": 0, "latency_ms": 180}, by the names in the settings. A '
        "guardrail does not count a decision without its metric."
    ),
]


class NewReward(Request):
    """The reward of a decision."""

    id: Annotated[Id, Meta(description="The id of the decision.")]
    value: Annotated[Value, Meta(description="A number from -1e150 to 1e150 that is 0 or at least 1e-130 in size.")]
    metrics: NewMetrics = None
    final: Annotated[
        bool,
        Meta(
            description="false: an amount that is added, and learned as one sum with the others at the final reward or the expiry."
        ),
    ] = True
    part: Annotated[
        Part | None,
        Meta(description="Names an amount of the decision, so that the call can be repeated. With final = false only."),
    ] = None


class NewFailure(Request):
    """A decision that failed."""

    id: Annotated[Id, Meta(description="The id of the decision.")]
    metrics: NewMetrics = None


class NewFailures(Request):
    """Several decisions that failed."""

    items: Annotated[list[NewFailure], Meta(min_length=1, max_length=MOST_ITEMS)]


class NewDecisions(Request):
    """Requests for several decisions."""

    items: Annotated[list[NewDecision], Meta(min_length=1, max_length=MOST_ITEMS)]


class NewRewards(Request):
    """The rewards of several decisions."""

    items: Annotated[list[NewReward], Meta(min_length=1, max_length=MOST_ITEMS)]


class NewObservation(Request):
    """A decision that an edge made, and its end: either value or expired is given."""

    id: Annotated[EdgeId, Meta(description="LIFE-NUMBER: a random name of the edge's process, and a number from 0.")]
    arm: ArmName
    propensity: Annotated[float, Meta(gt=0, le=1, description="The probability of the arm in the allocation.")]
    allocation: Annotated[str, Meta(min_length=1, max_length=100, description="The version of the allocation.")]
    decided: Annotated[EdgeTime, Meta(description="When the decision was made, in seconds since 1970.")]
    value: Annotated[Value | None, Meta(description="The reward, as in a call of its own.")] = None
    expired: Annotated[bool, Meta(description="true: the reward will never come.")] = False
    rewarded: Annotated[EdgeTime | None, Meta(description="When the reward came.")] = None


class NewObservations(Request):
    """What edges observed."""

    items: Annotated[list[NewObservation], Meta(min_length=1, max_length=MOST_ITEMS)]


class NewArm(Request):
    """A new arm."""

    arm: ArmName


class ArmState(Request):
    """The new state of an arm."""

    state: Annotated[
        Literal["active", "paused", "retired"],
        Meta(description="A retired arm stays retired. Rewards of its open decisions are still learned."),
    ]


Scope = Literal["decide", "reward", "read", "admin"]


class NewKey(Request):
    """A new access key."""

    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=4, description="admin includes the others.")]
    experiments: Annotated[
        Annotated[list[Name], Meta(min_length=1, max_length=MOST_ARMS)] | None,
        Meta(description="The experiments that the key is limited to. null: all."),
    ] = None
    expires_in: Annotated[
        Annotated[float, Meta(gt=0, le=LONGEST_WINDOW)] | None,
        Meta(description="Seconds until the key expires. null: never."),
    ] = None
    note: Annotated[Note, Meta(description="A note for people, such as who uses the key.")] = ""


# --- answers ----------------------------------------------------------------------------------------------------------------


class Decision(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A decision."""

    id: str
    experiment: str
    arm: str
    propensity: Propensity
    time: Seconds
    seq: Seq
    fallback: Annotated[
        bool,
        Meta(
            description="The store could not be reached: the arm is the fallback, the id is new, and nothing was stored (seq is 0)."
        ),
    ] = False
    repeat: Annotated[
        bool,
        Meta(description="The unit got its arm again: the policy did not choose. Absent: false."),
    ] = False


class Reward(msgspec.Struct, kw_only=True):
    """A reward, or an amount of one, that was stored."""

    id: str
    experiment: str
    arm: str
    value: float
    outcome: Annotated[
        Literal["applied", "late", "added"],
        Meta(description="late: stored, but not learned. added: an amount that is learned at the end."),
    ]
    reason: Annotated[
        Literal["window", "reset", "assignment"] | None,
        Meta(
            description="Why it is late: it came after the window, after a reset, or after another reward of the same unit "
            "while it kept its arm."
        ),
    ]
    time: Seconds
    seq: Seq

    part: Annotated[str | msgspec.UnsetType, Meta(description="The name of the amount.")] = msgspec.UNSET
    total: Annotated[
        float | msgspec.UnsetType, Meta(description="The sum that was learned, if amounts were added before.")
    ] = msgspec.UNSET
    metrics: Annotated[dict[str, float] | msgspec.UnsetType, Meta(description="Absent: none.")] = msgspec.UNSET
    failed: Annotated[bool | msgspec.UnsetType, Meta(description="The decision failed. Absent: false.")] = msgspec.UNSET


class DecisionItem(msgspec.Struct, kw_only=True):
    """The answer to one item of a batch."""

    status: int
    replayed: bool = False
    decision: Decision | None = None
    problem: Problem | None = None


class RewardItem(msgspec.Struct, kw_only=True):
    """The answer to one item of a batch."""

    status: int
    replayed: bool = False
    reward: Reward | None = None
    problem: Problem | None = None


class Decisions(msgspec.Struct, kw_only=True):
    """The answers to the items, in the same order."""

    items: list[DecisionItem]


class Rewards(msgspec.Struct, kw_only=True):
    """The answers to the items, in the same order."""

    items: list[RewardItem]


class Allocation(msgspec.Struct, kw_only=True):
    """The probabilities with which edges draw arms. The propensity of a draw is its probability."""

    experiment: str
    version: Annotated[str, Meta(description="Names the allocation in observations. It is also the ETag.")]
    arms: Annotated[list[str], Meta(description="The active arms.")]
    probabilities: Annotated[list[float], Meta(description="In the same order. Their sum is 1.")]
    valid_for: Annotated[
        float, Meta(description="Seconds after which there is a new one. An old one can still be used.")
    ]
    made: Seconds
    decisions: Annotated[int, Meta(description="The number of decisions that it was made for.")]
    reward_window: Annotated[
        float | None,
        Meta(description="That of the experiment: when an edge reports a decision without a reward as expired."),
    ]


class RefusedObservation(msgspec.Struct, kw_only=True):
    """An observation that was not counted."""

    index: Annotated[int, Meta(ge=0, description="Its position in the batch, from 0.")]
    problem: Problem


class Observed(msgspec.Struct, kw_only=True):
    """What came of the observations of a batch, in numbers."""

    learned: Annotated[int, Meta(description="Rewards that were learned.")]
    late: Annotated[int, Meta(description="Rewards that came after the window: stored, but not learned.")]
    expired: Annotated[int, Meta(description="Decisions that expired.")]
    replayed: Annotated[int, Meta(description="Decisions that were counted before.")]
    refused: Annotated[list[RefusedObservation], Meta(description="Observations that were not counted, and why.")]


class Settings(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The settings with which an experiment was created."""

    arms: tuple[str, ...]
    policy: str
    minimize: bool
    seed: int | None
    reward_window: float | None
    on_expiry: float | Literal["drop"]
    max_open: int
    unit: Annotated[str, Meta(description="The unit of the rewards.")]
    fallback: str | None
    sticky_for: Annotated[
        float | None, Meta(description="Seconds for which the unit of a decision keeps its arm. Absent: null.")
    ] = None
    cap: Annotated[float | None, Meta(description="Larger rewards count as this one in claims. Absent: null.")] = None
    floor: Annotated[
        float | None, Meta(description="The share of decisions that is drawn uniformly. Absent: null.")
    ] = None
    control: Annotated[
        dict[str, float] | None, Meta(description="The shares of decisions that single arms get. Absent: null.")
    ] = None
    metrics: Annotated[list[str] | None, Meta(description="Other numbers that rewards come with. Absent: null.")] = None
    guardrails: Annotated[list[NewGuardrail] | None, Meta(description="Limits on metrics. Absent: null.")] = None
    objective: Annotated[str | None, Meta(description="What is optimised. Absent: the mean.")] = None
    deadline: Annotated[float | None, Meta(description="Seconds after which a decision times out. Absent: null.")] = (
        None
    )
    failure_cost: Annotated[
        float | None, Meta(description="The cost of a failure or a time-out. Absent: the deadline.")
    ] = None
    features: Annotated[
        dict[str, dict[str, Any]] | None,
        Meta(description="The fields of contexts that are learned from. Absent: null."),
    ] = None


class Counts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Events since the last reset."""

    decisions: int
    rewards: Annotated[int, Meta(description="Rewards that were learned.")]
    late: Annotated[int, Meta(description="Rewards that came after the window, or after a reset.")]
    expired: int
    open: Annotated[int, Meta(description="Decisions that wait for their rewards.")]
    repeats: Annotated[int, Meta(description="Decisions in which a unit got its arm again. Absent: 0.")] = 0
    unlearned: Annotated[
        int, Meta(description="Rewards that were not learned, because another reward of the same unit was. Absent: 0.")
    ] = 0
    failures: Annotated[int, Meta(description="Rewards that were reported as failures. Absent: 0.")] = 0


class Metric(msgspec.Struct, kw_only=True):
    """A metric of an arm, over all rewards that had it."""

    count: int
    mean: Number


class Arm(msgspec.Struct, kw_only=True):
    """An arm of an experiment."""

    arm: str
    state: Literal["active", "paused", "retired"]
    pulls: Annotated[int, Meta(description="The number of rewards learned.")]
    reason: Annotated[
        str | msgspec.UnsetType,
        Meta(
            description="The guardrail that it broke, such as paused by guardrail: error 9.1 % of 146, at most 5 %. Absent: none."
        ),
    ] = msgspec.UNSET
    metrics: Annotated[
        dict[str, Metric] | msgspec.UnsetType, Meta(description="Absent: the experiment has no metrics.")
    ] = msgspec.UNSET
    failures: Annotated[
        int | msgspec.UnsetType, Meta(description="Failures, however fast. Absent: there is no deadline.")
    ] = msgspec.UNSET
    timeouts: Annotated[
        int | msgspec.UnsetType,
        Meta(description="Time-outs, and rewards above the deadline. Absent: there is no deadline."),
    ] = msgspec.UNSET


class Summary(msgspec.Struct, kw_only=True):
    """An experiment at a glance."""

    name: str
    state: Literal["running", "paused"]
    created: Seconds
    seq: Head
    epoch: Annotated[int, Meta(description="The number of resets.")]
    settings: Settings
    counts: Counts
    arms: list[Arm]


class Experiments(msgspec.Struct, kw_only=True):
    """All experiments that the key may read, by name."""

    experiments: list[Summary]


class ArmEstimates(Arm, kw_only=True):
    """What is known about an arm. All numbers have the sign and the unit of the rewards that were sent."""

    mean: Annotated[Number, Meta(description="Of at most 2,048 rewards; trimmed without a deadline.")] = None
    value: Annotated[
        Number | msgspec.UnsetType,
        Meta(
            description="The quantile, or the share of rewards beyond the limit, if that is the objective: then mean is null, and "
            "low and high are the limits of this value. Absent: the objective is the mean."
        ),
    ] = msgspec.UNSET
    low: Annotated[
        Number,
        Meta(description="The lower limit of its 95 % interval. -infinity: the rewards are skewed to that side."),
    ] = None
    high: Annotated[Number, Meta(description="The upper limit of its 95 % interval.")] = None
    policy: Annotated[dict[str, Number], Meta(description="The policy's own numbers, such as its mean and index.")] = {}


class Tail(msgspec.Struct, kw_only=True):
    """The tail of an arm's rewards on one side of the median."""

    index: Number
    low: Number
    high: Number
    light: Annotated[bool, Meta(description="Whether the tail is light, that is, not heavy.")]


class ArmTails(msgspec.Struct, kw_only=True):
    """The tails of an arm's rewards. A tail is null if there are too few rewards."""

    arm: str
    left: Tail | None
    right: Tail | None


class Diagnosis(msgspec.Struct, kw_only=True):
    """The tails of the rewards, and whether they contradict the policy's assumption."""

    leading: Annotated[str, Meta(description="The arm with the most rewards.")]
    contradicted: Annotated[bool | None, Meta(description="Whether its rewards contradict the policy's assumption.")]
    assumption: str
    advice: Annotated[str, Meta(description="The policy that suits these rewards, and why.")]
    tails: list[ArmTails]
    changes: Annotated[list[str], Meta(description="Changes over time that were detected, oldest first.")]


class Experiment(Summary, kw_only=True):
    """An experiment with its estimates."""

    arms: list[ArmEstimates]  # type: ignore[assignment]
    diagnosis: Annotated[Diagnosis | None, Meta(description="null before the first reward.")] = None
    warnings: Annotated[list[str], Meta(description="Warnings for people, as sentences.")] = []


class ArmStanding(Arm, kw_only=True):
    """How an arm stands. All numbers have the sign and the unit of the rewards that were sent."""

    mean: Annotated[Number, Meta(description="Of at most 2,048 rewards; trimmed without a deadline.")]
    low: Annotated[Number, Meta(description="The lower limit of its 95 % interval.")]
    high: Annotated[Number, Meta(description="The upper limit of its 95 % interval.")]
    chance: Annotated[
        float | None,
        Meta(
            description="The chance that it has the best mean of the active arms. It describes the kept rewards, and is no test. "
            "null: it is not active, or has too few rewards."
        ),
    ]


class Leader(msgspec.Struct, kw_only=True):
    """The arm with the greatest chance to have the best mean."""

    arm: Annotated[str | None, Meta(description="null: there is none yet.")]
    chance: float | None
    sentence: str


class Statement(msgspec.Struct, kw_only=True):
    """A claim that holds with probability 0.95, however often it is looked at, or the reason why there is none."""

    shown: Annotated[bool, Meta(description="Whether there is a claim.")]
    arm: Annotated[str | None, Meta(description="The arm that it says is the best one.")]
    sentence: str


class Standing(msgspec.Struct, kw_only=True):
    """How the arms of an experiment stand."""

    experiment: str
    minimize: bool
    cap: float | None
    rewards: Annotated[int, Meta(description="The number of rewards at the time.")]
    arms: list[ArmStanding]
    leader: Leader
    statement: Annotated[Statement | None, Meta(description="On means of min(reward, cap). null: no cap was declared.")]
    pairs: Annotated[
        Statement | None,
        Meta(description="On which arm wins most pairs of rewards, not on means. null: no cap was declared."),
    ]


class Explanation(Decision, kw_only=True):
    """A decision with what was known when it was made."""

    observed: Annotated[bool, Meta(description="Whether the arm was chosen elsewhere.")]
    unit: Annotated[str | None, Meta(description="Who it was made for, such as a user. Absent: null.")] = None
    among: list[str] | None
    context: Any
    features: Annotated[
        dict[str, float] | msgspec.UnsetType,
        Meta(
            description="The encoded features, by the names of their columns. The numbers of the policy are those for them: its "
            "mean, the width of its law, and the chance to be chosen among all active arms. Absent: the experiment has none."
        ),
    ] = msgspec.UNSET
    policy: str
    version: Annotated[str, Meta(description="The version of Robandit that decided.")]
    arms: Annotated[
        list[ArmEstimates],
        Meta(description="The arms right before the decision, with the policy's estimates and indices."),
    ]
    status: Literal["open", "rewarded", "expired", "reset"]
    reward: Annotated[Reward | None, Meta(description="The reward, even if it was late.")]
    expired: Annotated[Seconds | None, Meta(description="When it expired, if it did.")]


class LogRow(msgspec.Struct, kw_only=True):
    """An event of the log."""

    seq: int
    time: Seconds
    kind: str
    id: str
    arm: str | None = None
    reward: float | None = None
    learned: Annotated[bool, Meta(description="Whether the policy learned this reward.")] = False
    propensity: float | None = None
    decided: Annotated[float | None, Meta(description="When the decision was made.")] = None
    context: Any = None
    unit: Annotated[str | None, Meta(description="Who the decision was made for, such as a user.")] = None
    repeat: Annotated[bool, Meta(description="Whether the unit got its arm again.")] = False
    part: Annotated[str | None, Meta(description="The name of an amount of the decision.")] = None
    metrics: Annotated[Any, Meta(description="The metrics of the reward, or the guardrail that an arm broke.")] = None
    failed: Annotated[bool, Meta(description="Whether the decision failed: the reward is the cost of a failure.")] = (
        False
    )
    x: Annotated[
        Any,
        Meta(
            description="The encoded features, in the order of the columns; or the scale of a number, fixed from here on."
        ),
    ] = None


class Key(msgspec.Struct, kw_only=True):
    """An access key, without its secret."""

    id: str
    scopes: list[str]
    experiments: list[str] | None
    note: str
    created: Seconds
    expires: Seconds | None
    revoked: Seconds | None


class MadeKey(Key, kw_only=True):
    """A new access key. The secret is shown only here."""

    key: str


class Keys(msgspec.Struct, kw_only=True):
    """All access keys."""

    keys: list[Key]


class Entry(msgspec.Struct, kw_only=True):
    """An action of an administrator."""

    seq: int
    time: Seconds
    key: str
    action: str
    subject: str
    detail: Any


class AuditLog(msgspec.Struct, kw_only=True):
    """Actions of administrators, oldest first."""

    entries: list[Entry]


class Health(msgspec.Struct, kw_only=True):
    """The state of the server."""

    status: str
    version: str


_encoder = msgspec.json.Encoder()
encode = _encoder.encode

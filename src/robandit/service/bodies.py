"""The bodies of requests and answers. Their descriptions are part of the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

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
from robandit.errors import formatted
from robandit.hints import unknown
from robandit.kernel.loops import LARGEST_REWARD, SMALLEST_REWARD
from robandit.service.problems import Problem, Refusal

MOST_ITEMS = 1_000
LONGEST_CONTEXT = 65_536
LONGEST_NOTE = 200
MOST_COMMAS = (
    40_000  # of a body, or of an item: to decode so many names takes about 30 ms, in which nothing else is answered
)
LONGEST_QUOTE = 200  # characters of a message that may quote the body

Name = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._\-]{{0,{LONGEST_NAME - 1}}}$")]
ArmName = Annotated[str, Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{1,{LONGEST_NAME}}}$")]
Unit = Annotated[str, Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{0,{LONGEST_UNIT}}}$")]
Note = Annotated[str, Meta(pattern=rf"^[^\u0000-\u001f\u007f-\u009f]{{0,{LONGEST_NOTE}}}$")]
Id = Annotated[str, Meta(pattern=rf"^[ -~]{{1,{LONGEST_ID}}}$", examples=["018f3c9e-7c1b-7d3a-9d57-3f6f0e9d8a11"])]
RULES = {
    msgspec.json.schema(kind)["pattern"]: rule
    for kind, rule in (
        (Name, f"1 to {LONGEST_NAME} of A-Z a-z 0-9 . _ -, starting with a letter or a digit"),
        (ArmName, f"1 to {LONGEST_NAME} characters, without control characters"),
        (Unit, f"at most {LONGEST_UNIT} characters, without control characters"),
        (Note, f"at most {LONGEST_NOTE} characters, without control characters"),
        (Id, f"1 to {LONGEST_ID} printable ASCII characters"),
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


class _Request(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class NewExperiment(_Request):
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
            description=f"The policy, in the notation of specs. null: {DEFAULT_POLICY}.",
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


class NewDecision(_Request):
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
        Meta(description="Any JSON up to 64 KiB and 200 levels. It is stored, but not used to decide."),
    ] = msgspec.UNSET


class NewReward(_Request):
    """The reward of a decision."""

    id: Annotated[Id, Meta(description="The id of the decision.")]
    value: Annotated[
        float,
        Meta(
            ge=-LARGEST_REWARD,
            le=LARGEST_REWARD,
            description="A number from -1e150 to 1e150 that is 0 or at least 1e-130 in size.",
        ),
    ]


class NewDecisions(_Request):
    """Requests for several decisions."""

    items: Annotated[list[NewDecision], Meta(min_length=1, max_length=MOST_ITEMS)]


class NewRewards(_Request):
    """The rewards of several decisions."""

    items: Annotated[list[NewReward], Meta(min_length=1, max_length=MOST_ITEMS)]


# Like an array of at most `MOST_ITEMS` values. Of an array that is longer, msgspec would first decode all items, which takes 0.4 s
# for 4 MiB; here it stops at the first one that is too many.
_Some = msgspec.defstruct(
    "_Some",
    [(f"item_{i}", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for i in range(MOST_ITEMS)],
    array_like=True,
    forbid_unknown_fields=True,
)


class _Items(_Request):
    """A batch whose items are decoded one by one, so that a wrong one does not spoil the others."""

    items: _Some  # type: ignore[valid-type]


class _ShortItems(_Request):
    """The same, in a body so short that the number of items is no trouble. It is decoded faster."""

    items: Annotated[list[msgspec.Raw], Meta(min_length=1, max_length=MOST_ITEMS)]


class NewArm(_Request):
    """A new arm."""

    arm: ArmName


class ArmState(_Request):
    """The new state of an arm."""

    state: Annotated[
        Literal["active", "paused", "retired"],
        Meta(description="A retired arm stays retired. Rewards of its open decisions are still learned."),
    ]


Scope = Literal["decide", "reward", "read", "admin"]


class NewKey(_Request):
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


class Reward(msgspec.Struct, kw_only=True):
    """A reward that was stored."""

    id: str
    experiment: str
    arm: str
    value: float
    outcome: Annotated[Literal["applied", "late"], Meta(description="late: stored, but not learned.")]
    reason: Annotated[
        Literal["window", "reset"] | None,
        Meta(description="Why it is late: it came after the window, or after a reset."),
    ]
    time: Seconds
    seq: Seq


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


class Settings(msgspec.Struct, kw_only=True):
    """The settings with which an experiment was created."""

    arms: list[str]
    policy: str
    minimize: bool
    seed: int | None
    reward_window: float | None
    on_expiry: float | Literal["drop"]
    max_open: int
    unit: str
    fallback: str | None


class Counts(msgspec.Struct, kw_only=True):
    """Events since the last reset."""

    decisions: int
    rewards: Annotated[int, Meta(description="Rewards that were learned.")]
    late: int
    expired: int
    open: Annotated[int, Meta(description="Decisions that wait for their rewards.")]


class Arm(msgspec.Struct, kw_only=True):
    """An arm of an experiment."""

    arm: str
    state: Literal["active", "paused", "retired"]
    pulls: Annotated[int, Meta(description="The number of rewards learned.")]


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

    mean: Annotated[Number, Meta(description="A trimmed mean of a sample of at most 2,048 rewards.")] = None
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


class Explanation(Decision, kw_only=True):
    """A decision with what was known when it was made."""

    observed: Annotated[bool, Meta(description="Whether the arm was chosen elsewhere.")]
    among: list[str] | None
    context: Any
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


Body = TypeVar("Body", bound=msgspec.Struct)
_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def decoder(kind: type[Body]) -> Any:
    """Return a function that decodes the body of a request, and refuses one that does not fit."""
    decode = msgspec.json.Decoder(kind).decode
    fields = msgspec.structs.fields(kind)
    known = tuple(field.encode_name for field in fields)
    fewest = max(1, sum(field.required for field in fields))
    numbers = tuple(field.encode_name for field in fields if "float" in repr(field.type))
    only = b'"%b"' % known[0].encode() if len(known) == 1 else b""

    def decoded(body: Any) -> Body:
        written = bytes(body)  # an item of a batch is a msgspec.Raw
        size = len(written)
        if size > 2 * MOST_COMMAS and kind is not _Items and written.count(b",") > MOST_COMMAS:
            rule = f"at most {MOST_COMMAS:,} commas"
            raise Refusal("too-large", f"A call in {size:,} bytes of JSON may have {rule}: send less", rule=rule)
        try:
            given: Body = decode(written)
        except msgspec.ValidationError as error:
            raise _wrong(str(error), known) from None
        except msgspec.DecodeError as error:
            if not written:
                raise Refusal("malformed", "The body is empty: this call needs JSON") from None
            _check_numbers(written, str(error))
            raise Refusal("malformed", f"The body is not valid JSON: {str(error)[:200]}") from None
        except UnicodeDecodeError:
            raise Refusal("malformed", "The body is not valid UTF-8: send JSON in UTF-8") from None
        except RecursionError:
            raise Refusal("malformed", "The body is nested too deeply: send flatter JSON") from None
        if written.count(b":") > fewest and not (only and written.count(only) == 1 and b"\\u" not in written):
            _check_fields(written, known)  # which takes 20 ms for a batch of 4 MiB
        for name in numbers:
            if getattr(given, name) == 0.0:
                _check_zero(name, written)
        return given

    return decoded


_written_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _check_fields(body: bytes, known: Sequence[str]) -> None:
    """Refuse a field that is given twice, of which msgspec takes the last. Colons within the values are not counted."""
    values = [bytes(value) for value in _written_fields(body).values()]
    if body.count(b":") - sum(value.count(b":") for value in values) == len(values):
        return
    for name in known if len(body) <= LONGEST_CONTEXT else ():  # in 4 MiB, the search takes half a second
        # A letter may be escaped: "\u0069d" is "id".
        letters = "".join(rf"(?:{letter}|(?i:\\u{ord(letter):04x}))" for letter in name)
        key = re.compile(rf'"{letters}"\s*:'.encode())
        if len(key.findall(body)) - sum(len(key.findall(value)) for value in values) > 1:
            raise Refusal("invalid", f"{name} is given twice: send each field once", parameter=name, rule="given once")
    raise Refusal("invalid", "a field is given twice: send each field once", rule="given once")


def _check_zero(name: str, body: bytes) -> None:
    """Refuse a number that is not 0 but became 0, because it is too small for a float."""
    written = bytes(_written_fields(body).get(name, b"0")).decode()
    if written.lower().partition("e")[0].strip("-0."):
        rule = f"0 or at least {SMALLEST_REWARD:g} in size"
        raise Refusal("invalid", f"{name} = {written[:40]} must be {rule}", parameter=name, rule=rule)


_decoded_items = decoder(_Items)
_decoded_short = decoder(_ShortItems)


def items_of(body: bytes) -> list[msgspec.Raw]:
    """Return the items of a batch, each of which is still JSON."""
    if len(body) <= LONGEST_CONTEXT:
        return _decoded_short(body).items  # type: ignore[no-any-return]
    found = msgspec.structs.astuple(_decoded_items(body).items)
    items = [item for item in found if item is not msgspec.UNSET]
    if not items:
        raise _wrong("Expected `array` of length >= 1 - at `$.items`", ())
    return items


def _wrong(error: str, known: Sequence[str]) -> Refusal:
    """Return msgspec's message in our words: "value must be a number, not a string". ``known`` are the fields of the body."""
    if extra := re.fullmatch("Object contains unknown field `(.*)`", error, re.DOTALL):
        name = extra[1][:LONGEST_QUOTE]
        return Refusal("invalid", unknown(f"field {formatted(name)}", name, known), parameter=name)
    text, _, place = error.partition(" - at ")
    field = place.strip("`").removeprefix("$").lstrip(".")
    if text.endswith("out of range"):
        rule = f"a number that fits a 64-bit float, and within +-{LARGEST_REWARD:g} for rewards"
        return Refusal("invalid", f"{field or 'the body'} must be {rule}", parameter=field or None, rule=rule)
    if missing := re.fullmatch("Object missing required field `(.*)`", text):
        name = ".".join(filter(None, (field, missing[1])))
        return Refusal("invalid", f"{name} is missing: this call needs it", parameter=name, rule="given")
    if text.startswith("Invalid enum value"):
        rule = _CHOICES.get(field.rpartition(".")[2].partition("[")[0], "one of the values in the reference")
        given = text.removeprefix("Invalid enum value ")[:LONGEST_QUOTE]
        return Refusal("invalid", f"{field} = {given} must be {rule}", parameter=field or None, rule=rule)
    if not text.startswith("Expected "):
        text = text[:LONGEST_QUOTE]  # it may quote a field's name
        return Refusal("invalid", f"{field}: {text}" if field else text, parameter=field or None)
    if text.startswith("Expected `array` of at most length "):  # `_Some`, whose place msgspec does not name
        text, field = f"Expected `array` of length <= {MOST_ITEMS}", "items"
    rule, _, given = text.removeprefix("Expected ").partition(", got ")
    rule = next((words for pattern, words in RULES.items() if repr(pattern) in rule), _plain(rule))
    wrong = f", not {_plain(given)}" if given else ""
    return Refusal("invalid", f"{field or 'the body'} must be {rule}{wrong}", parameter=field or None, rule=rule)


_CHOICES = {
    "on_expiry": 'a number or "drop"',
    "state": '"active", "paused" or "retired"',
    "scopes": '"decide", "reward", "read" or "admin"',
}
_WORDS = {
    "float": "a number",
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def _plain(kinds: str) -> str:
    """Return msgspec's names of types in words."""

    def words(quoted: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(kind, kind) for kind in quoted[1].split(" | "))

    return re.sub("`([^`]*)`", words, kinds)


def _check_numbers(body: bytes, error: str) -> None:
    """Refuse NaN and infinity by their rule. They are not JSON, but Python and others write them."""
    at = re.search(r"\(byte (\d+)\)$", error)
    found = None if at is None else re.compile(rb"NaN|Infinity").match(body, int(at[1]))
    if found is not None:
        rule = "a finite number"
        name = ("-" if body[found.start() - 1 : found.start()] == b"-" else "") + found[0].decode()
        hint = "Skip such a reward, or send a finite cost"
        text = f"{name} is not a number in JSON: each number must be finite. {hint}"
        raise Refusal("invalid", text, rule=rule)

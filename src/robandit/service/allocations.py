"""The calls of edges, which decide without asking the server: they get an allocation, and send what they observed in batches."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from robandit.decisions.base import MOST_EXPERIMENTS, BaseEngine, without_frames
from robandit.decisions.edges import Observation, Observed
from robandit.decisions.events import Allocated
from robandit.decisions.experiment import GivenAllocation, LiveExperiment
from robandit.errors import Overloaded
from robandit.kernel.loops import LARGEST_REWARD, SMALLEST_REWARD
from robandit.service import bodies
from robandit.service.counting import received
from robandit.service.decoding import decoder, items_of
from robandit.service.http import Answer, Request, answer
from robandit.service.metrics import Calls
from robandit.service.problems import Refusal, problem_of, wrong_value

if TYPE_CHECKING:
    from robandit.service.state import State

DURATION = re.compile(r"^([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m|h)$")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}
SHORTEST, LONGEST = 0.1, 3_600.0  # seconds of an allocation
FRESH = 0.05  # seconds in which a look at an experiment is used; what this server does is seen at once
TRIES = 5  # to make an allocation while arms come and go
AT_ONCE = 2  # allocations that are computed
PART = (
    100  # observations that are learned without others having a turn: in 0.3 ms, or 20 ms before the policy is compiled
)
LATEST = 1e11  # seconds since 1970
USUAL_BODY = 1 << 19  # bytes; a larger one is decoded item by item
_ID = re.compile(r"[a-z0-9]{8,16}-(?:0|[1-9][0-9]{0,14})").fullmatch
_TINY = re.compile(rb"[0-9][eE]-[0-9]{3}").search
_observation = decoder(bodies.NewObservation)


class Allocations:
    """Makes the allocations of a server: one at a time for each experiment, in another thread."""

    def __init__(self, engine: BaseEngine) -> None:
        self._engine = engine
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._looks: dict[str, tuple[asyncio.Task[tuple[LiveExperiment, GivenAllocation | None]], float]] = {}
        """The newest look at each experiment, and when it began. Callers share it: hundreds of edges would keep the store busy."""
        self._making: dict[int, asyncio.Task[GivenAllocation]] = {}

    async def current(self, name: str, valid_for: float) -> GivenAllocation:
        """Return the present allocation of an experiment. It is made if it is due."""
        experiment, stored = await self._seen(name)
        found = experiment.allocation(valid_for)
        if found is not None and found != stored:  # perhaps not stored yet
            experiment, found = await self._engine.read(name, lambda seen: (seen, seen.allocation(valid_for)))
        if found is not None:
            return found
        number = experiment.number
        if number not in self._making:
            self._making[number] = task = asyncio.create_task(self._made(name, valid_for))
            task.add_done_callback(lambda done: self._making.pop(number))
        return await asyncio.shield(self._making[number])

    async def _seen(self, name: str) -> tuple[LiveExperiment, GivenAllocation | None]:
        """Return an experiment with its newest stored allocation, as it was a moment ago."""
        look, began = self._looks.get(name, (None, 0.0))
        if look is not None and look.done():
            is_good = not look.cancelled() and look.exception() is None and time.monotonic() - began <= FRESH
            if not is_good or look.result()[0] is not self._engine.experiments.get(name):
                look = None
        if look is None:
            if len(self._looks) > MOST_EXPERIMENTS:
                self._looks.clear()
            look = asyncio.create_task(self._engine.read(name, lambda seen: (seen, seen.newest_allocation())))
            self._looks[name] = look, time.monotonic()
        return await asyncio.shield(look)

    async def _made(self, name: str, valid_for: float) -> GivenAllocation:
        for _ in range(TRIES):
            async with self._turn:
                epoch, allocating = await self._engine.read(name, lambda seen: (seen.epoch, seen.allocating(valid_for)))
                computed = await asyncio.to_thread(allocating)
            version = secrets.token_hex(8)
            made = await self._engine.change(name, partial(_allocate, computed, epoch, version))
            if made is not None:
                return made
        raise Overloaded(f"arms of experiment {name!r} come and go: try again in a second")


def _allocate(computed: Allocated, epoch: int, version: str, experiment: LiveExperiment) -> GivenAllocation | None:
    return experiment.allocate(computed, epoch, version)


async def allocation(state: State, request: Request) -> Answer:
    """Get an allocation. It has the probabilities with which edges decide as the policy would in the next moments.

    All callers share it until a new one is due: after the time of the parameter for, or if an arm comes or goes, or after a reset.
    """
    valid_for = _seconds(request.query.get("for", "1s"))
    found, arms, window = await state.allocations.current(request.parameters[0], valid_for)
    tag = b'"%b"' % found.version.encode()
    headers = ((b"etag", tag),)
    if request.known is not None and tag in request.known:
        return Answer(304, b"", headers=headers)
    body = bodies.Allocation(
        experiment=request.parameters[0],
        version=found.version,
        arms=list(arms),
        probabilities=[found.shares.get(arm, 0.0) for arm in arms],
        valid_for=found.valid_for,
        made=found.made,
        decisions=found.decisions,
        reward_window=window,
    )
    return answer(body, headers=headers)


def _seconds(given: str) -> float:
    rule = "a duration from 100ms to 1h, such as 500ms, 10s or 5m"
    match = DURATION.fullmatch(given)
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not SHORTEST <= seconds <= LONGEST:
        raise wrong_value("for", given, rule)
    return seconds


class _Part:
    """Some observations of a batch, with the position of the first one."""

    def __init__(self, given: Sequence[tuple[int, Observation]], first: bool, seen: dict[str, Observation]) -> None:
        self._given = given
        self._first = first
        self._seen = seen

    def observe(self, experiment: LiveExperiment) -> Observed:
        if self._first:
            self._seen.clear()  # a batch takes effect again if it could not be stored
        return experiment.observe(self._given, self._seen)


async def observe_batch(state: State, request: Request) -> Answer:
    """Send up to 1,000 decisions that edges made, with their rewards. Each counts once, however often it is sent.

    One that is refused does not stop the others.
    """
    name = request.parameters[0]
    items = await _items_of(state, request)
    calls = await received(state, name, "observation", len(items))
    good = [(place, each) for place, each in enumerate(items) if not isinstance(each, Exception)]
    wrong = [(place, each) for place, each in enumerate(items) if isinstance(each, Exception)]
    seen: dict[str, Observation] = {}
    parts = [_Part(good[first : first + PART], not first, seen) for first in range(0, len(good), PART)]
    try:
        made = await state.engine.change_all(name, [part.observe for part in parts], ids=())
        error = next((each for each in made if isinstance(each, Exception)), None)
        if error is not None:
            raise error
    except BaseException:
        calls.outcomes["observation", "rejected"] += len(items)
        raise
    counted = Observed()
    for each in made:
        assert isinstance(each, Observed)
        counted.add(each)
    refused = []
    async for place, error in state.engine.slices.paced(sorted([*wrong, *counted.refused], key=lambda pair: pair[0])):
        refused.append(bodies.RefusedObservation(index=place, problem=problem_of(error)[0]))
    _count(calls, counted, len(refused))
    numbers = {name: getattr(counted, name) for name in ("learned", "late", "expired", "replayed")}
    return answer(bodies.Observed(**numbers, refused=refused))


def _count(calls: Calls, counted: Observed, refused: int) -> None:
    calls.outcomes["observation", "applied"] += counted.learned + counted.expired
    calls.outcomes["observation", "late"] += counted.late
    calls.outcomes["observation", "replayed"] += counted.replayed
    calls.outcomes["observation", "rejected"] += refused
    for delay in counted.delays:
        calls.delays.add(delay)


# --- bodies -------------------------------------------------------------------------------------------------------------


class _Items(msgspec.Struct, forbid_unknown_fields=True):
    """A usual body, which is decoded as a whole and then checked."""

    items: list[Observation]


_usual_items = msgspec.json.Decoder(_Items).decode


async def _items_of(state: State, request: Request) -> list[Observation | Exception]:
    """Return the items of a batch. One that is malformed is an error, and does not stop the others."""
    body = request.body
    usual = _usual(body) if len(body) <= USUAL_BODY else None
    if usual is not None:
        return usual
    try:
        raw = items_of(body)
    except Exception:
        calls = await received(state, request.parameters[0], "observation", 1)
        calls.outcomes["observation", "rejected"] += 1
        raise
    items: list[Observation | Exception] = []
    async for each in state.engine.slices.paced(raw):
        try:
            items.append(_checked(_observation(each)))
        except Exception as error:
            items.append(without_frames(error))
    return items


def _usual(body: bytes) -> list[Observation | Exception] | None:
    """Return the items if all of them are as they must be. Else return None: whoever decodes each by itself finds out why.

    This takes a fifth of the time. The number of colons tells whether a field is given twice.
    """
    try:
        items = _usual_items(body).items
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    colons = 1
    for each in items:
        value, rewarded = each.value, each.rewarded
        if value is None:
            good = each.expired
        else:
            good = not each.expired and (SMALLEST_REWARD <= abs(value) <= LARGEST_REWARD or value == 0.0)
        if not (good and _ID(each.id) and 0.0 < each.propensity <= 1.0 and 0.0 <= each.decided <= LATEST):
            return None
        if rewarded is not None:
            if not 0.0 <= rewarded <= LATEST:
                return None
            colons += 1
        colons += 6
    good = 1 <= len(items) <= bodies.MOST_ITEMS and body.count(b":") == colons
    has_zero = any(each.value == 0.0 for each in items)
    return [*items] if good and not (has_zero and _may_have_tiny(body)) else None


def _may_have_tiny(body: bytes) -> bool:
    """Return whether a number in a body may be so small that it became 0. The search for an exponent takes a millisecond."""
    return b"0" * 200 in body or ((b"e-" in body or b"E-" in body) and _TINY(body) is not None)


def _checked(given: bodies.NewObservation) -> Observation:
    if (given.value is None) != given.expired:
        rule = "either value or expired: true"
        raise Refusal("invalid", f"Each observation must have {rule}", parameter="value", rule=rule)
    if given.value is not None and 0.0 < abs(given.value) < SMALLEST_REWARD:
        rule = f"0 or at least {SMALLEST_REWARD:g} in size"
        raise Refusal("invalid", f"value = {given.value!r} must be {rule}", parameter="value", rule=rule)
    return Observation(*msgspec.structs.astuple(given))

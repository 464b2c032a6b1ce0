"""A policy at work on numbered arms: its state, its entries, and the arms that it may choose.

An entry is a step of `robandit.kernel.loops` with the policy's hooks. It runs interpreted until its compiled form is there, with
the same results. The `robandit.Bandit` around it knows names, ids and the world outside. The engine is not thread-safe; only
`RunningPolicy._finish` is called from another thread, and replaces entries.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, cast

import numpy as np

from robandit.drift.alarm import Alarm
from robandit.errors import BrokenState, CompilationWarning, KernelError, NotApplicable, RobanditError, formatted
from robandit.kernel import compiled, loops
from robandit.kernel.background import in_background, resume
from robandit.kernel.build import Entry, at_hand, flat, kernel_of, shape_of, unchecked
from robandit.kernel.cache import Kernel
from robandit.kernel.interpreted import interpreted
from robandit.kernel.types import Floats
from robandit.policies.base import Policy
from robandit.policies.floor.floor import Floor, with_floor
from robandit.policies.linear.model import MOST_CHANCES, Linear
from robandit.policies.wrapping import Wrapping

Function = TypeVar("Function", bound=Callable[..., Any])
Compile: TypeAlias = Literal["background", "now", "never"]
"""When a bandit compiles its hooks."""

# Each entry of `robandit.kernel.loops`: the purpose printed during compilation, the hooks, and example arguments.
_ENTRIES: dict[str, tuple[str, tuple[str, ...], tuple[Any, ...]]] = {
    "ask": ("live", ("select",), ()),
    "ask_waiting": ("live", ("select", "waiting"), (np.zeros(1),)),
    "tell": ("live", ("take", "update", "full"), (0, 0.0, 0.0)),
    "issue": ("decisions", ("take",), (0,)),
    "forget": ("decisions", ("expire",), (0, 0.0)),
    "describe": ("estimates", ("estimate",), (np.zeros((1, 1)),)),
    "chance_of": ("propensities", ("chance",), (0,)),
    "chance_waiting": ("propensities", ("chance", "waiting_chance"), (0, np.zeros(1))),
}
SIGNED_COLUMNS = ("mean", "quantile", "index")
"""The columns of estimates that are rewards, not sizes, counts or shares. For costs they are shown with the sign of costs; the
negated index is then a lower confidence bound of the mean cost."""
# What hooks may raise when they run as plain Python. Anything else comes from elsewhere, such as from the handler of a signal.
_ERRORS = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)
# What methods of a policy raise if the numbers of a state make no sense, such as those of a file that somebody wrote by hand.
_SENSELESS = (ArithmeticError, LookupError, MemoryError, ValueError)
LONG = 0.02  # seconds after which `describe` is compiled: the time of some policies, such as KLinf-UCB, grows with their rewards
MOST_STEPS = 1_000  # choices of `play_ahead`; of more decisions, each choice stands for several
FEWEST_DRAWS = 100  # that stand for the decisions of a policy that draws random numbers
_PACKAGE = str(Path(__file__).parent.parent)


def source(policy: Policy, state: Any, name: str) -> tuple[partial[Any], str, tuple[Any, ...]]:
    """Return the function of an entry, its label, and example arguments, which do not keep the state alive."""
    purpose, hooks, more = _ENTRIES[name]
    bound = partial(getattr(loops, name), *policy.hooks(*hooks))
    like = type(state)(*(np.zeros((1,) * field.ndim, field.dtype) for field in state))
    return bound, f"{policy.label}, {purpose}", (policy.params(), like, *more)


def live_kernels(policy: Policy) -> list[Kernel]:
    """Return the kernels of all entries that a live bandit compiles, to be compiled by another process."""
    names = ["ask", "tell", "issue", "forget"]
    if policy.chance is not None and not policy.weighted:
        names.append("chance_of")
    state = policy.start(2, None, np.zeros(4, dtype=np.uint64))
    entries = [source(policy, state, name) for name in names]
    return [kernel_of(bound, args) for bound, _, args in entries]


def _of_policy(method: Function) -> Function:
    """Let a method, which calls methods of the policy that are not compiled, raise `BrokenState` if they cannot use the state."""

    @wraps(method)
    def guarded(self: RunningPolicy, *args: Any, **kwargs: Any) -> Any:
        self.check_sound()
        try:
            return method(self, *args, **kwargs)
        except RobanditError:
            raise
        except _SENSELESS as error:
            self.refuse(error)

    return cast(Function, guarded)


class RunningPolicy:
    """A policy with its state. ``available`` has one truth value per arm."""

    def __init__(
        self,
        policy: Policy,
        state: Any,
        available: Sequence[bool],
        among: tuple[int, ...] | None,
        compile: Compile = "now",
        shifts: Floats | None = None,
    ) -> None:
        """Take over a state in which the arms ``among`` are allowed (None: all available ones), and prepare the first entries.

        With ``shifts``, open decisions are evidence (`robandit.policies._parts.waiting`). The caller keeps them up to date.
        """
        self.policy = policy
        self.available = list(available)
        self.among = among
        """The arms that the last choice was restricted to, or None. The state's mask shows it until another choice is made."""
        self._compile = compile
        self._params = policy.params()
        self.deterministic = policy.chance is None and not policy.weighted
        self._entries: dict[str, Entry] = {}
        self._warned = False
        self.broken = ""
        """The reason not to go on, if there is one."""
        self._slow = False  # whether `describe` was slow
        self._shapes: Any = None
        self._shifts = () if shifts is None else (shifts,)
        self._ask, self._chance = ("ask", "chance_of") if shifts is None else ("ask_waiting", "chance_waiting")
        self._use(state)
        self.rule = int(state.unrewarded[-1])
        """Whether pulls without a reward count: 0 in files and logs of Robandit 0.2."""
        self._shapes = shape_of(state)  # the compiled entries do not check them
        self.state.allowed[:] = self._mask(among)
        self.allowed = frozenset(np.flatnonzero(self.state.allowed).tolist())
        """The arms that the state's mask allows."""
        # Bandit.select and Bandit.update call these two directly, because a call of a method costs a tenth of a choice.
        self.ask_entry: Entry
        self.tell_entry: Entry
        # Bandit.decide calls this one directly, after `prepare` has set it.
        self.issue_entry: Any = None
        self.prepare(self._ask)
        self.prepare("tell")

    def _use(self, state: Any) -> None:
        if self._shapes and shape_of(state) != self._shapes:
            raise KernelError(
                f"{self.policy!r} changed the types of its state's arrays: grow() must keep them contiguous"
            )
        self.state = state
        self.args = flat((self._params, state))
        self.ask_args = self.args + self._shifts

    # --- entries -------------------------------------------------------------------------------------------------------

    def prepare(self, name: str) -> None:
        """Make an entry ready, if it is not. Call it before anything is changed, since compiling may fail or be interrupted.

        Entries other than `ask` and `tell` are prepared when they are first used, because many bandits never do. `describe` is
        compiled only when it is slow: it is called rarely, takes a millisecond, and takes as long to compile as `ask`.
        """
        if name in self._entries:
            return
        if name == "issue" and self.policy.chance is not None and not self.policy.weighted:
            self.prepare(self._chance)
        bound, label, args = self._source(name)
        ready: Entry | None = None
        if name == "describe" or self._compile == "never":
            pass
        elif self._compile == "now":
            ready = compiled(bound, label=label, args=args)
        else:
            ready = at_hand(bound, args)
        if ready is not None:
            self._set(name, unchecked(ready))
            return
        self._set(name, _with_fallback(weakref.ref(self), name, interpreted(bound, args=args)))
        if name != "describe" and self._compile == "background":
            self._compile_later(name)

    def _compile_later(self, name: str) -> None:
        bound, label, args = self._source(name)
        in_background(self, bound, label=label, args=args, then=partial(RunningPolicy._finish, name=name))

    def _source(self, name: str) -> tuple[partial[Any], str, tuple[Any, ...]]:
        return source(self.policy, self.state, name)

    def _set(self, name: str, entry: Entry) -> None:
        broken = bool(self.broken)
        entry = self.check_sound if broken else entry
        self._entries[name] = entry
        if name == self._ask:
            self.ask_entry = entry
        elif name == "tell":
            self.tell_entry = entry
        elif name == "issue":
            self.issue_entry = entry
        if self.broken and not broken:  # another thread has refused it meanwhile
            self._set(name, self.check_sound)

    def _finish(self, result: Entry | Exception, name: str) -> None:
        """Take over a compiled entry; or go on without it, and let the next choice warn."""
        if not isinstance(result, Exception):
            self._set(name, unchecked(result))
        elif not self._warned and not self.broken:
            self._warned = True
            self.ask_entry = partial(self._ask_and_warn, str(result))

    def _ask_and_warn(self, reason: str, *args: Any) -> Any:
        self.ask_entry = self._entries[self._ask]
        hint = 'The bandit goes on interpreted, which is slow. compile="now" raises this as an error'
        text = f"{reason.partition(' Numba says:')[0].splitlines()[0].rstrip('.')}. {hint}"
        warnings.warn(text, CompilationWarning, stacklevel=_callers_level())
        return self.ask_entry(*args)

    def compiled_after(self, name: str, error: Exception) -> Entry:
        """Compile an entry now, because it raised an error when it ran interpreted; compiled code may not."""
        if isinstance(error, IndexError):  # compiled code would raise it, too
            self.refuse(error)
        hook = _hook_that_raised(error) or _ENTRIES[name][1][0]
        what = f"{hook}() of {self.policy!r} raised {type(error).__name__}: {formatted(str(error))[1:-1]}"
        if self._compile == "never":
            hint = 'Fix the hook, or allow compilation, compile="background" or "now"'
            raise KernelError(f"{what}; compiled code might return NaN or infinity instead. {hint}") from error
        bound, label, args = self._source(name)
        self._set(name, unchecked(compiled(bound, label=label, args=args)))
        return self._entries[name]

    def refuse(self, error: BaseException) -> NoReturn:
        """Raise `BrokenState` because a hook used an index out of range, or the policy cannot use its state; and so from now on.

        Compiled code may have changed a part of the state before it raised the error.
        """
        hook = _hook_that_raised(error)
        what = f"{hook}() of {self.policy!r}" if hook else repr(self.policy)
        hint = "Fix the policy, or load a bandit that was saved before"
        self.broken = (
            f"{what} raised {type(error).__name__}: {formatted(str(error))[1:-1]}. The state or the policy is broken, "
            f"and the bandit does not go on. {hint}"
        )
        for name in self._entries:
            self._set(name, self.check_sound)
        raise BrokenState(self.broken) from error

    def check_sound(self, *args: Any) -> None:
        """Raise `BrokenState` if an earlier call did. It replaces all entries then."""
        if self.broken:
            raise BrokenState(self.broken)

    # --- decisions in flight -------------------------------------------------------------------------------------------

    def follow(self, rule: int, open_decisions: Sequence[int]) -> None:
        """Count pulls without a reward from now on (1), or not (0). ``open_decisions`` has their number for each arm."""
        if rule != self.rule:
            self.rule = rule
            self.state.unrewarded[:] = [*open_decisions, 1] if rule else 0

    # --- contexts ------------------------------------------------------------------------------------------------------

    def see(self, x: Any) -> None:
        """Give the policy the features of a decision, before any call that is about this decision."""
        if self.policy.contextual:
            self.state.x[:] = x
            if self.policy.switches and self.policy.hooks("full")[0](self._params, self.state):
                self.grow()

    @_of_policy
    def explain(self, x: Any) -> tuple[list[list[float]], list[float]]:
        """Return the policy's columns and the chance of each arm at x, on a copy of the state, with all available arms.

        With more than `MOST_CHANCES` arms, chances of randomised policies are NaN: they would take seconds.
        """
        other = RunningPolicy.__new__(RunningPolicy)
        vars(other).update(vars(self) | {"_shapes": None, "_entries": dict(self._entries)})
        other._use(type(self.state)(*(field.copy() for field in self.state)))
        other.restrict(None)
        other.see(x)
        rows = other.describe(average=False)
        if self.policy.chance is not None and len(rows) > MOST_CHANCES:
            return rows, [math.nan] * len(rows)
        if self.policy.chance is None:
            chosen = other.ask(None)
            return rows, [float(arm == chosen) for arm in range(len(rows))]
        other.prepare("chance_of")
        return rows, [float(other._entries["chance_of"](*other.args, arm)) for arm in range(len(rows))]

    @_of_policy
    def effects(self, contrasts: Callable[[Floats], Floats]) -> tuple[Floats, Floats] | None:
        """Return what `Linear.effects` does; None if the policy is not linear."""
        policy: Any = self.policy
        while isinstance(policy, Wrapping):
            policy = policy.of
        is_linear = isinstance(policy, Linear) and not policy.shared
        return policy.effects(self.state, contrasts(self.state.seen)) if is_linear else None

    # --- choices -------------------------------------------------------------------------------------------------------

    def ask(self, among: tuple[int, ...] | None) -> int:
        """Return the arm to pull now, among these arms (None: all available arms)."""
        if among != self.among:
            self.restrict(among)
        try:
            arm: int = self.ask_entry(*self.ask_args)
        except IndexError as error:
            self.refuse(error)
        if arm not in self.allowed:
            self.reject(arm)
        return arm

    def reject(self, arm: int) -> NoReturn:
        """Raise `KernelError` because the policy chose an arm that is not allowed."""
        allowed = sorted(self.allowed)
        raise KernelError(f"{self.policy!r} chose arm {arm}, but the allowed arms are {allowed}: fix its select()")

    def _mask(self, among: tuple[int, ...] | None) -> list[bool]:
        if among is None:
            return self.available
        chosen = set(among)
        return [available and arm in chosen for arm, available in enumerate(self.available)]

    @_of_policy
    def restrict(self, among: tuple[int, ...] | None) -> None:
        """Allow these arms only (None: all available arms)."""
        self.policy.set_allowed(self.state, self._mask(among))
        self.allowed = frozenset(np.flatnonzero(self.state.allowed).tolist())
        self.among = among

    def check_restrictable(self, purpose: str) -> None:
        """Raise `NotApplicable` if the policy always chooses among all arms."""
        if not self.policy.respects_allowed:
            fact = f"{self.policy.name} cannot {purpose}: its select() does not read s.allowed"
            raise NotApplicable(
                f"{fact}, or its class lacks respects_allowed = True; use another policy, or an IndexPolicy"
            )

    # --- learning ------------------------------------------------------------------------------------------------------

    def tell(self, arm: int, reward: float) -> bool:
        """Learn from a pull and its reward. Return whether the state had to grow, which may be due to an alarm of the policy."""
        try:
            full: bool = self.tell_entry(*self.args, arm, reward, loops.NOW)
        except IndexError as error:
            self.refuse(error)
        if full:
            self.grow()
        return full

    @_of_policy
    def grow(self) -> None:
        """Let the state grow, or handle an alarm."""
        self._use(self.policy.grown(self.state))

    def issue(self, arm: int) -> tuple[float, float | None]:
        """Record a pull whose reward comes later; `prepare` first. Return its mark, and its probability (None: deterministic)."""
        probability: float | None = None
        try:
            if self.policy.chance is not None and not self.policy.weighted:
                probability = self._entries[self._chance](*self.args, arm, *self._shifts)
            mark: float = self._entries["issue"](*self.args, arm)
        except IndexError as error:
            self.refuse(error)
        if not -math.inf < mark < math.inf:
            self.reject_mark(mark)
        if self.deterministic:
            return mark, None
        return mark, self._checked_probability(mark if probability is None else probability)

    def reject_mark(self, mark: float) -> NoReturn:
        """Raise `KernelError` because a mark is not finite. NaN would be `loops.NOW`."""
        raise KernelError(f"take() of {self.policy!r} returned {mark}: a mark must be a finite number")

    def _checked_probability(self, probability: float) -> float:
        if 0.0 <= probability <= 1.0:
            return probability
        if 1.0 < probability <= 1.0 + 1e-9:  # rounding
            return 1.0
        if math.isnan(probability):
            return math.nan  # always the same object, so that tuples that hold it are equal
        raise KernelError(f"{self.policy!r} chose an arm with probability {probability}, which is not in [0, 1]")

    def forget(self, arm: int, mark: float) -> None:
        """Record that the reward of an earlier pull will never come; `prepare` first."""
        try:
            self._entries["forget"](*self.args, arm, mark)
        except IndexError as error:
            self.refuse(error)

    def play_ahead(self, rule: int, open_decisions: Sequence[int]) -> Callable[[int, int], list[float]]:
        """Return a function that makes decisions on a copy of the state, without rewards, and returns the share of each arm.

        A floor draws nothing meanwhile: its distribution is added to the shares, so that they have it exactly.

        It takes the number of decisions, and that of decisions to make before them, which are not counted. Any thread may call it.
        Of more than `MOST_STEPS` decisions, each choice stands for several, so that the time is bounded.
        """
        self.check_sound()
        self.prepare("issue")
        copied = type(self.state)(*(field.copy() for field in self.state))
        if self.among is not None:
            self.policy.set_allowed(copied, self.available)
        if rule != self.rule:
            copied.unrewarded[:] = [*open_decisions, 1] if rule else 0
        allowed = frozenset(np.flatnonzero(copied.allowed).tolist())
        floor = self.policy if isinstance(self.policy, Floor) else None
        inner, params = (
            (self.policy, self._params) if floor is None else (floor.of, self._params._replace(floor_share=0.0))
        )
        args, fewest = flat((params, copied)), FEWEST_DRAWS if inner.randomised else 1
        shifts = tuple(each.copy() for each in self._shifts)

        def play(decisions: int, before: int) -> list[float]:
            entries = self._entries  # read at each step: compiled ones may come meanwhile
            counts = [0] * len(self.available)
            for total, is_counted in ((before, False), (max(decisions, fewest), True)):
                size = -(-total // MOST_STEPS)
                for made in range(0, total, max(size, 1)):
                    arm = entries[self._ask](*args, *shifts)
                    if arm not in allowed:
                        self.reject(arm)
                    entries["issue"](*args, arm)
                    several = min(size, total - made)
                    copied.unrewarded[arm] += (several - 1) * copied.unrewarded[-1]
                    counts[arm] += several if is_counted else 0
            shares = [count / sum(counts) for count in counts]
            return (
                shares
                if floor is None
                else [float(with_floor(self._params, copied, i, x)) for i, x in enumerate(shares)]
            )

        return play

    # --- arms that come and go -------------------------------------------------------------------------------------------

    @_of_policy
    def add_arm(self, shifts: Floats | None = None) -> None:
        """Add an arm at the end, available. ``shifts`` has room for it."""
        self.restrict(None)
        self._shifts = () if shifts is None else (shifts,)
        self._use(self.policy.extended(self.state))
        self.policy.resumed(self.state, len(self.available))
        self.available.append(True)
        self.restrict(None)

    @_of_policy
    def set_available(self, arm: int, *, available: bool) -> None:
        """Make an arm available, or not."""
        self.restrict(None)
        if available:
            self.policy.resumed(self.state, arm)
        else:
            self.policy.paused(self.state, arm)
        self.available[arm] = available
        self.restrict(None)

    # --- estimates and counts ------------------------------------------------------------------------------------------

    @_of_policy
    def counters(self) -> dict[str, int]:
        """Return the policy's counters."""
        return self.policy.counters(self.state)

    @_of_policy
    def alarms(self) -> tuple[Alarm, ...]:
        """Return the newest changes that the policy's own detector noticed; none if it has no detector."""
        return self.policy.alarms(self.state) if isinstance(self.policy, Wrapping) else ()

    @_of_policy
    def describe(self, *, average: bool = True) -> list[list[float]]:
        """Return the policy's columns, one row per arm. It works on a copy of the state, because evaluations fill caches.

        A linear policy describes its arms at the average x of all decisions, or at that of the state.
        """
        columns = self.policy.columns
        out = np.full((len(self.available), len(columns)), math.nan)
        if columns:
            copied = type(self.state)(*(field.copy() for field in self.state))
            if average and self.policy.contextual and hasattr(copied, "seen"):
                copied.x[:] = copied.seen / copied.seen[0] if copied.seen[0] else copied.x
            if self.among is not None:
                self.policy.set_allowed(copied, self.available)
            self.prepare("describe")
            start = time.perf_counter()
            self._entries["describe"](*flat((self._params, copied)), out)
            if time.perf_counter() - start > LONG and self._compile != "never" and not self._slow:
                self._slow = True
                self._compile_later("describe")
        rows: list[list[float]] = out.tolist()
        return rows


def _with_fallback(engine: weakref.ref[RunningPolicy], name: str, entry: Entry) -> Entry:
    """Return an interpreted entry of an engine, which is compiled if it raises an error."""

    def run(*args: Any) -> Any:
        resume()
        try:
            return entry(*args)
        except _ERRORS as error:
            alive = engine()
            assert alive is not None
            return alive.compiled_after(name, error)(*args)

    return run


def _hook_that_raised(error: BaseException) -> str | None:
    """Return the name of the hook in which an error was raised: the outermost function that is not part of the machinery."""
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if not module.startswith(("robandit.live", "robandit.kernel", "robandit.policies.base")):
            return trace.tb_frame.f_code.co_name
        trace = trace.tb_next
    return None


def _callers_level() -> int:
    """Return the ``stacklevel`` of a warning about the line that called Robandit."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level

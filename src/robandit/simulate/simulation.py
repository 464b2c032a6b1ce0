"""The loop over replications of policies on a problem: random streams, threads, progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from robandit import validation
from robandit.errors import InvalidInput, InvalidReward, KernelError
from robandit.hints import guided
from robandit.kernel import compiled, loops
from robandit.kernel.build import flat, kernel_of
from robandit.kernel.cache import Kernel
from robandit.kernel.cores import cores
from robandit.kernel.messages import say
from robandit.kernel.random import streams
from robandit.kernel.types import Ints, UInts
from robandit.kernel.workers import compile_all
from robandit.laws.table import draw, missed, with_missed
from robandit.policies.base import Policy, check_policy_given
from robandit.policies.linear.columns import for_columns
from robandit.problems import Contextual, Delayed, Problem, bernoulli, delayed, with_objective
from robandit.problems.contextual import Rows
from robandit.problems.delays import Delay
from robandit.simulate.result import Result, check_problem
from robandit.validation import flag, integer, invalid, items_of, read_items

CHUNK = 1 << 16  # pulls between two checks of the stop event: a few milliseconds


@guided
def simulate(
    policies: Policy | Sequence[Policy],
    problem: Problem,
    horizon: int,
    replications: int = 100,
    seed: int | None = None,
    *,
    delay: int | Delay | None = None,
    objective: str = "mean",
    threads: int | None = None,
    checkpoints: Sequence[int] | None = None,
    first: int = 0,
    progress: bool | None = None,
    stop: threading.Event | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> Result:
    """Play each policy on a problem many times, and return its regret.

    Each replication has its own random streams, spawned from the seed: one per arm and one for the policy. So the k-th reward of
    arm i in replication r is the same for every policy. Comparisons are paired, and adding a policy does not change the results
    of the others. The same seed gives the same bytes for any number of threads.

    Parameters
    ----------
    policies
        One policy, or several different policies.
    problem
        One law per arm, laws that change (`robandit.problems.changing`), rewards that come late (`robandit.problems.delayed`), or
        a replay of recorded rewards (`robandit.problems.InOrder`, `robandit.problems.Logged`).
    horizon
        Pulls in each replication.
    replications
        Independent runs of each policy.
    seed
        An integer >= 0. None draws a random seed, which is stored in the result.
    delay
        How many further decisions are made before a reward is known: an integer, or a law (`robandit.problems.delays`). Simulates
        ``robandit.problems.delayed(problem, delay)``.
    objective
        What regret is about: the mean, a quantile such as ``"p95"``, or a limit such as ``"within:2.0"``. Simulates
        ``robandit.problems.with_objective(problem, objective)``.
    threads
        The number of threads. None: one per available core.
    checkpoints
        Times from 1 to the horizon at which regret is recorded. The horizon is always added. None: about 50, on a log scale.
    first
        The number of the first replication. ``replications=20, first=40`` plays replications 40 to 59 of a longer run.
    progress
        Whether to show a progress bar. None: only if standard error is a terminal.
    stop
        Set it in another thread to stop within a fraction of a second, with `concurrent.futures.CancelledError`.
    pool
        Threads to use instead of new ones, so that several simulations can share them.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=2.5)
    >>> result = rb.simulate([rb.AdaRUCB(), rb.UCB1()], problem, horizon=1000, replications=4, seed=1)
    >>> result.regret.shape == (2, 4, len(result.checkpoints))
    True
    """
    several = isinstance(policies, Iterable) and not isinstance(policies, str)
    chosen = items_of(policies, "policies", "policies") if several else (policies,)
    _check_policies(chosen)
    check_problem(problem)
    problem = with_objective(problem, objective)
    if delay is not None:
        problem = delayed(problem, delay)
    # Convert to Python integers, because the loop would be compiled again for NumPy integers.
    horizon = integer(horizon, "horizon", 1)
    problem.check_horizon(horizon)
    replications = integer(replications, "replications", 1)
    first = integer(first, "first", 0, None)
    if threads is not None:
        threads = integer(threads, "threads", 1, None)
    if progress is not None:
        progress = flag(progress, "progress")
    given_seed = validation.seed(seed)
    root = int(np.random.SeedSequence().entropy) if given_seed is None else given_seed  # type: ignore[arg-type]
    times = _checkpoints(horizon, checkpoints)
    try:
        regret = np.zeros((len(chosen), replications, len(times)))
        pulls = np.zeros((len(chosen), replications, problem.arms), dtype=np.int64)
        done = np.zeros(len(chosen) * replications, dtype=np.int64)  # pulls of each job: separate counters need no lock
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than an address has
        raise invalid("replications", replications, "a number whose results fit into memory") from error
    result = Result(
        policies=chosen,
        problem=problem,
        horizon=horizon,
        seed=root,
        checkpoints=times,
        regret=regret,
        pulls=pulls,
        first=first,
    )
    ending = threading.Event()
    jobs: list[Callable[[], tuple[float, dict[str, int]]]] = []
    contexts = _contexts(problem)
    fitted = [
        policy if contexts is None else for_columns(policy, contexts.columns, shared=contexts.shared)
        for policy in chosen
    ]
    prepared = [policy.prepared(horizon).signed(problem.minimize) for policy in fitted]
    if len(prepared) > 1:
        _compile_together(prepared, problem, horizon, threads)
    for i, ready in enumerate(prepared):
        play = compiled_play(ready, problem, horizon)
        jobs += [partial(_replicate, result, ready, play, i, r, ending, done) for r in range(replications)]
    workers = min(threads or cores(), len(jobs))
    executor = nullcontext(pool) if pool is not None else ThreadPoolExecutor(workers, "robandit")
    futures: list[Future[tuple[float, dict[str, int]]]] = []
    with _bar(progress, horizon * len(jobs)) as advance, executor as players:
        try:
            futures.extend(players.submit(job) for job in jobs)
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()
                if stop is not None and stop.is_set():
                    raise CancelledError("stopped before the end")
                advance(int(done.sum()))
        except BaseException:  # a failure or Ctrl-C: no job starts, running jobs stop at their next check
            ending.set()
            wait([future for future in futures if not future.cancel()])
            raise
    for i in range(len(chosen)):
        runs = [f.result() for f in futures[i * replications : (i + 1) * replications]]
        result.seconds[i] = sum(seconds for seconds, _ in runs)
        for _, counts in runs:
            for name, count in counts.items():
                result.counters[i][name] = result.counters[i].get(name, 0) + count
    return result


def _check_policies(policies: tuple[Any, ...]) -> None:
    for i, policy in enumerate(policies):
        check_policy_given(policy, f"policies[{i}]")
    clash = name_clash(policies)
    message = (
        clash[1] if clash else "" if policies else "policies is empty: give at least one, such as robandit.AdaRUCB()"
    )
    if message:
        raise InvalidInput(
            message, parameter="policies", value=policies, rule="different policies with different names"
        )


def name_clash(policies: Sequence[Policy]) -> tuple[int, str] | None:
    """Return the number of the first policy that has the name of one before it, and the message; None if there is none."""
    numbers: dict[str, int] = {}
    for i, policy in enumerate(policies):
        other = policies[numbers.setdefault(policy.name, i)]
        if type(other) is not type(policy):
            both = f"{other.tag()} and {policy.tag()} have the same name, {policy.name}"
            return i, f'{both}: give one class another label, such as label = "{type(policy).__name__} 2"'
        if numbers[policy.name] < i and other == policy:
            return i, f"the policy {policy.name} is given twice: leave one out"
        if numbers[policy.name] < i:  # names round to six digits
            return i, f"{policy!r} and {other!r} have the same name, {policy.name}: choose values that differ more"
    return None


def _checkpoints(horizon: int, given: Sequence[int] | None) -> Ints:
    if given is None:
        times = np.unique(np.round(np.geomspace(1, horizon, 50)).astype(np.int64))
    elif isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise invalid("checkpoints", given, "a list of times", hint="such as [100, 1000]")
    else:
        hint = "times lie between 1 and the horizon"
        items = read_items(given, "checkpoints", "a list of times", hint="such as [100, 1000]")
        checked = [integer(time, f"checkpoints[{i}]", 1, horizon, hint=hint) for i, time in enumerate(items)]
        times = np.unique(np.array(checked, dtype=np.int64))
    return np.union1d(times, np.array([horizon], dtype=np.int64))


def compiled_play(policy: Policy, problem: Problem, horizon: int) -> Callable[..., int]:
    """Return the compiled loop for this policy. It depends only on the types of the problem's arrays, not on their values."""
    entry, args = _play_entry(policy, problem, horizon)
    return compiled(entry, label=policy.label, args=args)


def _compile_together(policies: Sequence[Policy], problem: Problem, horizon: int, processes: int | None) -> None:
    """Compile the loops of several policies in parallel. One alone is compiled here, which saves the start of a process."""
    kernels = {kernel.name: kernel for kernel in (play_kernel(policy, problem, horizon) for policy in policies)}
    missing = [kernel for kernel in kernels.values() if not kernel.is_stored()]
    if len(missing) > 1:
        say(f"compiling {len(missing)} policies, first run only")
        compile_all({kernel.name: partial(tuple, [kernel]) for kernel in missing}, lambda _: None, processes=processes)


def play_kernel(policy: Policy, problem: Problem, horizon: int) -> Kernel:
    """Return the kernel of the loop for this policy, to be compiled by another process."""
    return kernel_of(*_play_entry(policy, problem, horizon))


def any_play_kernel(policy: Policy) -> Kernel:
    """Return the kernel of the loop for this policy on any problem, with any parameters that it must be told."""
    problem = bernoulli(means=[0.2, 0.8])  # all moments are finite, so every policy can be informed
    return play_kernel(policy.informed_by(problem).prepared(10), problem, 10)


def _play_entry(policy: Policy, problem: Problem, horizon: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
    hooks: tuple[Any, ...] = policy.hooks("select", "take", "update", "full")
    k, state = problem.arms, policy.start(problem.arms, horizon, np.zeros(4, dtype=np.uint64))
    if _contexts(problem) is not None:
        see = loops.see_features if policy.contextual else loops.see_nothing
        rows = Rows(*(np.zeros((1, 1)) for _ in Rows._fields))
        ints, floats = np.zeros(1, dtype=np.int64), np.zeros(3)
        args = (
            policy.params(),
            state,
            rows,
            ints,
            floats,
            ints.copy(),
            floats.copy(),
            late_record(ints.copy()),
            0,
            horizon,
        )
        play: Any = loops.play_contexts
        return partial(play, *hooks, see), args
    hooks = (*hooks, draw, missed)
    words, times, pulls = np.zeros((k, 4), dtype=np.uint64), np.zeros(1, dtype=np.int64), np.zeros(k, dtype=np.int64)
    fixed = (problem.tabulate(), words, np.zeros(k), times, np.zeros(1), pulls, np.zeros(3))  # as in `_replicate`
    late = _late(problem, horizon, words)
    return partial(loops.play_late if late else loops.play, *hooks), (policy.params(), state, *fixed, *late, 0, horizon)


def _contexts(problem: Problem) -> Contextual | None:
    """Return the problem with contexts that is played, perhaps with delays, or None."""
    inner = problem.problem if isinstance(problem, Delayed) else problem
    return inner if isinstance(inner, Contextual) else None


def _late(problem: Problem, horizon: int, words: UInts) -> tuple[loops.Late, ...]:
    """Return the record of the rewards of a new run, if they come late. Delays are drawn from the last stream."""
    return (late_record(problem.delay.drawn(horizon, words[-1])),) if isinstance(problem, Delayed) else ()


def late_record(delays: Ints) -> loops.Late:
    """Return the record of the decisions of a new run with these delays."""
    horizon = len(delays)
    known = np.arange(1, horizon + 1) + delays
    order = np.argsort(known, kind="stable")
    due = np.append(known[order], 3 * horizon)  # the last is never reached
    arms, learned = np.zeros(horizon, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return loops.Late(arms, np.zeros(horizon), np.zeros(horizon), order, due, learned)


def _replicate(
    result: Result, policy: Policy, play: Callable[..., int], i: int, r: int, ending: threading.Event, done: Ints
) -> tuple[float, dict[str, int]]:
    """Play replication r of policy i into its rows of the result; return the processor time and the policy's counters."""
    problem, horizon = result.problem, result.horizon
    words = streams(np.random.SeedSequence(result.seed, spawn_key=(result.first + r,)), problem.arms + 2)
    late = _late(problem, horizon, words)
    words = words[:-1]  # those of the policy and of the arms
    params = policy.params()
    state = policy.start(problem.arms, horizon, words[0])
    rejected = np.zeros(3)
    start = time.thread_time()  # processor time, which does not depend on other programs
    t, earlier = 0, 0.0
    job = i * result.regret.shape[1] + r
    contexts = _contexts(problem)
    if contexts is not None:
        rows = contexts.rows(horizon, int(words[-1, 0]))
        record = late[0] if late else late_record(np.zeros(horizon, dtype=np.int64))
        start = time.thread_time()
        while t < horizon and not ending.is_set():
            end = min(t + CHUNK, horizon)
            same = (result.checkpoints, result.regret[i, r], result.pulls[i, r], rejected, record)
            done[job] = t = play(*flat((params, state, rows, *same, t, end)))
            if rejected[0] > 0.0:
                raise _rejection(policy, problem, int(rejected[1]), 0.0, in_play=False)
            if t < end:
                state = policy.grown(state)
        return time.thread_time() - start, policy.counters(state)
    rng = np.ascontiguousarray(words[1:])
    for piece, until in problem.stretches(horizon):
        table = piece.at_start(result.first + r, words[1:])
        pulls = np.zeros(problem.arms, dtype=np.int64)
        gaps = piece.counted_gaps.copy()  # compiled code needs a writable array
        if earlier > 0.0:
            table = with_missed(table, earlier)
        fixed = (table, rng, gaps, result.checkpoints, result.regret[i, r], pulls, rejected)
        while t < until and not ending.is_set():
            end = min(t + CHUNK, until)
            t = play(*flat((params, state, *fixed, *late, t, end)))
            done[job] = t
            if rejected[0] > 0.0:
                raise _rejection(policy, piece, int(rejected[1]), float(rejected[2]), in_play=rejected[0] == 2.0)
            if t < end:
                state = policy.grown(state)
        earlier += float(gaps @ pulls)
        result.pulls[i, r] += pulls
    return time.thread_time() - start, policy.counters(state)


def _rejection(policy: Policy, problem: Problem, arm: int, reward: float, *, in_play: bool) -> Exception:
    if not in_play:
        return KernelError(f"{policy!r} chose arm {arm}, but arms are 0 to {problem.arms - 1}: its select() is wrong")
    value = -reward if problem.minimize else reward
    drawn = f"{problem.laws[arm]!r} (arm {arm}) drew {value:g}"
    if abs(value) < loops.SMALLEST_REWARD:
        fact, hint = f"which is smaller than {loops.SMALLEST_REWARD:g}", "scale the problem up"
    else:
        fact, hint = f"beyond +-{loops.LARGEST_REWARD:g}", "scale the problem down"
    return InvalidReward(f"{drawn}, {fact}: rewards are squared; {hint}")


@contextmanager
def _bar(show: bool | None, pulls: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar on standard error, or does nothing if no bar is shown."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    numbers = TextColumn("{task.percentage:3.0f} % {task.fields[rate]}")
    columns = (TextColumn("simulating"), BarColumn(), numbers, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=pulls, rate="")
        start = time.perf_counter()

        def advance(done: int) -> None:
            rate = done / max(time.perf_counter() - start, 1e-9)
            bar.update(task, completed=done, rate=f"{rate / 1e6:.1f} M pulls/s")

        yield advance

"""Replications of policies on a problem: seeds, threads, progress, and what comes out."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.errors import CorruptFile, InvalidInput, InvalidReward, KernelError, NewerFile, formatted
from robandit.files import UNSEALED, named, read_sealed, sealed, write_atomically
from robandit.kernel import compiled, loops
from robandit.kernel.build import flat
from robandit.kernel.cores import cores
from robandit.kernel.random import streams
from robandit.kernel.types import Floats, Ints
from robandit.laws.table import draw, missed
from robandit.policies.base import Policy, check_policy_given
from robandit.problems import Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Result", "simulate"]

FORMAT_VERSION = 2  # 1 had no number of the first replication, which was 0
CHUNK = 1 << 16  # pulls between two looks at the stop sign: a few milliseconds
RESAMPLES = 2000
LONGEST = 2**53  # up to here doubles count exactly


def simulate(
    policies: Policy | Sequence[Policy],
    problem: Problem,
    horizon: int,
    replications: int = 100,
    seed: int | None = None,
    *,
    threads: int | None = None,
    checkpoints: Sequence[int] | None = None,
    first: int = 0,
    progress: bool | None = None,
    stop: threading.Event | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> Result:
    """Play each policy on a problem, many times, and measure its regret.

    Replication r has its own random streams, spawned from the seed: one for each arm and one for the policy. So the
    k-th reward of arm i in replication r is the same for every policy: comparisons are paired, and adding a policy
    changes no other's numbers. The same seed gives the same bytes for any number of threads.

    Parameters
    ----------
    policies
        One policy or several, no two equal.
    problem
        One law per arm, or a replay of recorded rewards (`robandit.problems.InOrder`, `robandit.problems.Logged`).
    horizon
        Pulls in each replication.
    replications
        How often each policy starts anew.
    seed
        A whole number >= 0; None draws one, which is kept in the result.
    threads
        None: one per available core.
    checkpoints
        Times at which regret is recorded, between 1 and the horizon; the horizon is always added. None: about 50,
        evenly spaced in the logarithm.
    first
        The number of the first replication. Replications 40 to 59 of a run are those of ``replications=20, first=40``.
    progress
        Show a progress bar; None: when standard error is a terminal.
    stop
        Set it in another thread to end early, within a fraction of a second, with `concurrent.futures.CancelledError`.
    pool
        Threads that several simulations share, in place of its own; replications wait there for their turn.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=2.5)
    >>> result = rb.simulate([rb.AdaRUCB(), rb.UCB1()], problem, horizon=1000, replications=4, seed=1)
    >>> result.regret.shape == (2, 4, len(result.checkpoints))
    True
    """
    chosen = tuple(policies) if isinstance(policies, Iterable) else (policies,)
    _check_policies(chosen)
    _check_problem(problem)
    _check_whole("horizon", horizon, 1, LONGEST)
    problem.check_horizon(int(horizon))
    _check_whole("replications", replications, 1, LONGEST)
    _check_whole("first", first, 0)
    if threads is not None:
        _check_whole("threads", threads, 1)
    root = int(np.random.SeedSequence().entropy) if seed is None else seed  # type: ignore[arg-type]
    _check_whole("seed", root, 0)
    horizon, replications = int(horizon), int(replications)  # NumPy's whole numbers would be compiled for anew
    marks = _checkpoints(horizon, checkpoints)
    result = Result(
        policies=chosen,
        problem=problem,
        horizon=horizon,
        seed=int(root),
        checkpoints=marks,
        regret=np.zeros((len(chosen), replications, len(marks))),
        pulls=np.zeros((len(chosen), replications, problem.arms), dtype=np.int64),
        first=int(first),
    )
    ending = threading.Event()
    done = np.zeros(len(chosen) * replications, dtype=np.int64)  # pulls, one counter per job: no lock is needed
    jobs: list[Callable[[], tuple[float, dict[str, int]]]] = []
    for i, policy in enumerate(chosen):
        ready = policy.prepared(horizon)
        play = compiled_play(ready, problem, horizon)
        jobs += [partial(_replicate, result, ready, play, i, r, ending, done) for r in range(replications)]
    workers = min(threads or cores(), len(jobs))
    own = nullcontext(pool) if pool is not None else ThreadPoolExecutor(workers, "robandit")
    futures: list[Future[tuple[float, dict[str, int]]]] = []
    with _bar(progress, horizon * len(jobs)) as advance, own as players:
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
        except BaseException:  # a failure or Ctrl-C: nothing new starts, running jobs stop at their next look
            ending.set()
            wait([future for future in futures if not future.cancel()])
            raise
    for i in range(len(chosen)):
        runs = [f.result() for f in futures[i * replications : (i + 1) * replications]]
        result.seconds[i] = sum(seconds for seconds, _ in runs)
        for _, counted in runs:
            for name, count in counted.items():
                result.counters[i][name] = result.counters[i].get(name, 0) + count
    return result


@dataclass(frozen=True, eq=False)
class Result:
    """What a simulation measured. Arrays are indexed by policy, replication, then checkpoint or arm."""

    policies: tuple[Policy, ...]
    problem: Problem
    horizon: int
    seed: int
    checkpoints: Ints
    regret: Floats
    """Pseudo-regret: the gaps of the arms pulled, added up. It depends on choices only, not on the luck of rewards.

    On a problem that is played in order (`robandit.problems.InOrder`) it is realised regret: what the arm with the greatest mean of
    the whole table gave at those times, minus what the policy got. That can be negative.
    """
    pulls: Ints
    first: int = 0
    """The number of the first replication."""
    seconds: Floats = field(init=False, repr=False)
    """Processor time in the loop, per policy, compilation excluded. Not saved."""
    counters: tuple[dict[str, int], ...] = field(init=False, repr=False)
    """What each policy counted, over all replications, such as KLinf-UCB's infeasible indices. Not saved."""

    def __post_init__(self) -> None:
        """Times are filled in by `simulate`."""
        object.__setattr__(self, "seconds", np.full(len(self.policies), np.nan))
        object.__setattr__(self, "counters", tuple({} for _ in self.policies))

    def __repr__(self) -> str:
        """One line; `summary` has the numbers."""
        names = ", ".join(p.name for p in self.policies)
        return f"<Result: {names}; horizon {self.horizon}, {self.regret.shape[1]} replications, seed {self.seed}>"

    def summary(self) -> pl.DataFrame:
        """Final regret of each policy, one row each: mean with a 95 % interval, median, quantiles, worst.

        The interval is a percentile bootstrap of the mean over replications (fixed seed), for regret is too skewed
        for mean +- standard error. With one replication it is empty (NaN).
        """
        import polars as pl

        rows = []
        for i, policy in enumerate(self.policies):
            final = self.regret[i, :, -1]
            low, high = _bootstrap_mean(final)
            rows.append(
                {
                    "policy": policy.name,
                    "mean": float(final.mean()),
                    "mean_low": low,
                    "mean_high": high,
                    "median": float(np.median(final)),
                    "q05": float(np.quantile(final, 0.05)),
                    "q95": float(np.quantile(final, 0.95)),
                    "worst": float(final.max()),
                }
            )
        return pl.DataFrame(rows)

    def curves(self) -> pl.DataFrame:
        """Regret over time, a row per policy and checkpoint: mean, median, 5 % and 95 % quantiles and the worst."""
        import polars as pl

        frames = []
        for i, policy in enumerate(self.policies):
            regret = self.regret[i]
            frames.append(
                pl.DataFrame(
                    {
                        "policy": [policy.name] * len(self.checkpoints),
                        "t": self.checkpoints,
                        "mean": regret.mean(axis=0),
                        "median": np.median(regret, axis=0),
                        "q05": np.quantile(regret, 0.05, axis=0),
                        "q95": np.quantile(regret, 0.95, axis=0),
                        "worst": regret.max(axis=0),
                    }
                )
            )
        return pl.concat(frames)

    def to_parquet(self, path: str | os.PathLike[str], *, whole: bool = True) -> None:
        """Write everything but the times to a Parquet file: a row per policy and replication, the rest as metadata.

        Parameters
        ----------
        path
            Where to.
        whole
            False leaves out a problem with a long record, but for its fingerprint: who reads the file must have it from elsewhere.
        """
        content = self.to_bytes(whole=whole)
        write_atomically(path, lambda file: file.write(content))

    def to_bytes(self, *, whole: bool = True) -> bytes:
        """What `to_parquet` writes."""
        import polars as pl

        p, r, _ = self.regret.shape
        frame = pl.DataFrame(
            {
                "policy": np.repeat(np.arange(p), r),
                "replication": np.tile(np.arange(r), p),
                "regret": pl.Series(list(self.regret.reshape(p * r, -1)), dtype=pl.List(pl.Float64)),
                "pulls": pl.Series(list(self.pulls.reshape(p * r, -1)), dtype=pl.List(pl.Int64)),
            }
        )
        about = {
            "version": FORMAT_VERSION,
            "policies": [policy.to_dict() for policy in self.policies],
            "problem": self.problem.to_dict()
            if whole or not self.problem.bulky
            else {"fingerprint": self.problem.fingerprint},
            "horizon": self.horizon,
            "seed": str(self.seed),  # may have 128 bits, which JSON readers round
            "checkpoints": self.checkpoints.tolist(),
            "first": self.first,
        }
        buffer = io.BytesIO()  # Polars turns a full disk into errors of its own
        frame.write_parquet(buffer, metadata={"robandit": json.dumps(about), "seal": UNSEALED.decode()})
        return sealed(buffer.getvalue())

    @staticmethod
    def from_parquet(path: str | os.PathLike[str], problem: Problem | None = None) -> Result:
        """Read what `to_parquet` wrote; ``problem`` is the one that it left out, where it did."""
        import polars as pl

        if problem is not None:
            _check_problem(problem)
        where = named(path)
        content = read_sealed(where)
        try:
            about = json.loads(pl.read_parquet_metadata(content)["robandit"])
            version = int(about["version"])
        except Exception as error:
            raise CorruptFile(f"{where} is damaged: {error}") from error
        if version > FORMAT_VERSION:
            raise NewerFile(
                f"{where} has format {version}; this Robandit reads up to {FORMAT_VERSION}: upgrade robandit"
            )
        try:
            frame = pl.read_parquet(content).sort("policy", "replication")
            policies = tuple(Policy.from_dict(d) for d in about["policies"])
            rows = len(frame) // len(policies)
            return Result(
                policies=policies,
                problem=_problem(about["problem"], problem, where),
                horizon=int(about["horizon"]),
                seed=int(about["seed"]),
                checkpoints=np.array(about["checkpoints"], dtype=np.int64),
                regret=np.array(frame["regret"].to_list(), dtype=np.float64).reshape(len(policies), rows, -1),
                pulls=np.array(frame["pulls"].to_list(), dtype=np.int64).reshape(len(policies), rows, -1),
                first=int(about.get("first", 0)),
            )
        except (InvalidInput, CorruptFile):
            raise
        except Exception as error:
            raise CorruptFile(f"{where} is damaged: {error}") from error


def _problem(data: Any, known: Problem | None, where: Path) -> Problem:
    """The problem of a result file, which may hold only its fingerprint."""
    if not isinstance(data, dict) or set(data) != {"fingerprint"}:
        return Problem.from_dict(data)
    if known is None:
        raise InvalidInput(f"{where} is a part of a run and holds no problem: open its run folder, or give the problem")
    if known.fingerprint != data["fingerprint"]:
        raise CorruptFile(
            f"{where} was measured on another problem: its fingerprint is {str(data['fingerprint'])[:12]}..."
        )
    return known


def _check_problem(problem: Any) -> None:
    if not isinstance(problem, Problem):
        raise InvalidInput(f"problem = {problem!r} must be a Problem: make one with Problem(laws) or robandit.problems")


def _check_whole(name: str, value: Any, least: int, most: float = math.inf) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"{name} = {formatted(value)} must be a whole number >= {least}")
    if value > most:
        raise InvalidInput(
            f"{name} = {formatted(value)} must be at most 2^53: a pull takes nanoseconds, and that many take years"
        )


def _check_policies(policies: tuple[Any, ...]) -> None:
    if not policies:
        raise InvalidInput("policies is empty: give at least one, such as robandit.AdaRUCB()")
    for policy in policies:
        check_policy_given(policy)
        if policies.count(policy) > 1:
            raise InvalidInput(f"{policy!r} is given twice: on common random numbers it would only repeat itself")
        if [p.name for p in policies].count(policy.name) > 1:
            raise InvalidInput(f"two policies are named {policy.name!r}: give one class another label")


def _checkpoints(horizon: int, wanted: Sequence[int] | None) -> Ints:
    if wanted is None:
        marks = np.unique(np.round(np.geomspace(1, horizon, 50)).astype(np.int64))
    elif isinstance(wanted, (str, Mapping)) or not isinstance(wanted, Iterable):
        raise InvalidInput(f"checkpoints = {wanted!r} must be a list of times, such as [100, 1000]")
    else:
        wanted = list(wanted)
        for mark in wanted:
            _check_whole("a checkpoint", mark, 1)
            if mark > horizon:
                raise InvalidInput(f"checkpoint {mark} lies beyond the horizon {horizon}: leave it out or play longer")
        marks = np.unique(np.array(wanted, dtype=np.int64))
    return np.union1d(marks, np.array([horizon], dtype=np.int64))


def compiled_play(policy: Policy, problem: Problem, horizon: int) -> Callable[..., int]:
    """The loop for this policy; the problem only lends its types."""
    hooks: tuple[Any, ...] = (*policy.hooks("select", "take", "update", "full"), draw, missed)
    entry: Callable[..., int] = partial(loops.play, *hooks)
    k = problem.arms
    args = (
        policy.params(),
        policy.start(k, horizon, np.zeros(4, dtype=np.uint64)),
        problem.tabulate(),
        np.zeros((k, 4), dtype=np.uint64),
        np.zeros(k),
        np.zeros(1, dtype=np.int64),
        np.zeros(1),
        np.zeros(k, dtype=np.int64),
        np.zeros(3),
        0,
        horizon,
    )
    return compiled(entry, label=policy.label, args=args)


def _replicate(
    result: Result, policy: Policy, play: Callable[..., int], i: int, r: int, ending: threading.Event, done: Ints
) -> tuple[float, dict[str, int]]:
    """Replication r of policy i, into its rows of the result; returns the time it took and what the policy counted."""
    problem, horizon = result.problem, result.horizon
    words = streams(np.random.SeedSequence(result.seed, spawn_key=(result.first + r,)), problem.arms + 1)
    params = policy.params()
    state = policy.start(problem.arms, horizon, words[0])
    refused = np.zeros(3)
    fixed = (
        problem.at_start(result.first + r, words[1:]),
        np.ascontiguousarray(words[1:]),
        problem.counted_gaps.copy(),  # the problem's own is read-only, which is another type to compiled code
        result.checkpoints,
        result.regret[i, r],
        result.pulls[i, r],
        refused,
    )
    start = time.thread_time()  # processor time: other programs do not count
    t = 0
    job = i * result.regret.shape[1] + r
    while t < horizon and not ending.is_set():
        end = min(t + CHUNK, horizon)
        t = play(*flat((params, state, *fixed, t, end)))
        done[job] = t
        if refused[0] > 0.0:
            raise _refusal(policy, problem, int(refused[1]), float(refused[2]), in_play=refused[0] == 2.0)
        if t < end:
            state = policy.grow(state)
    return time.thread_time() - start, policy.counters(state)


def _refusal(policy: Policy, problem: Problem, arm: int, reward: float, *, in_play: bool) -> Exception:
    if not in_play:
        return KernelError(f"{policy!r} chose arm {arm}, but arms are 0 to {problem.arms - 1}: its select() is wrong")
    return InvalidReward(
        f"{problem.laws[arm]!r} (arm {arm}) drew {reward:g}, beyond +-{loops.LARGEST_REWARD:g}: rewards are squared; scale "
        "the problem down"
    )


def _bootstrap_mean(values: Floats) -> tuple[float, float]:
    if len(values) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    means = np.empty(RESAMPLES)
    for j in range(RESAMPLES):
        means[j] = values[rng.integers(0, len(values), len(values))].mean()
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


@contextmanager
def _bar(wanted: bool | None, pulls: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, or nothing."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("simulating"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=pulls, rate="")
        start = time.perf_counter()

        def advance(done: int) -> None:
            rate = done / max(time.perf_counter() - start, 1e-9)
            bar.update(task, completed=done, rate=f"{rate / 1e6:.1f} M pulls/s")

        yield advance

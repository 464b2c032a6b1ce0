"""The result of a simulation: arrays, summaries, and its Parquet file."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.errors import CorruptFile, InvalidInput
from robandit.files import UNSEALED, check_format, named, read_sealed, sealed, write_atomically
from robandit.kernel.types import Floats, Ints
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.validation import flag, instance, invalid

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

FORMAT_VERSION = 2  # version 1 did not store the number of the first replication, which was 0


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a simulation. Arrays are indexed by policy, replication, then checkpoint or arm."""

    policies: tuple[Policy, ...]
    problem: Problem
    horizon: int
    seed: int
    checkpoints: Ints
    regret: Floats
    """Pseudo-regret: the sum of the gaps of the arms pulled. It depends on the choices, but not on the random rewards.

    On a problem that is played in order (`robandit.problems.InOrder`) it is realised regret, which can be negative. This is the sum
    of the rewards of the arm with the greatest mean of the whole table at those times, minus the sum of the policy's rewards.

    On a problem that changes (`robandit.problems.Changing`) it is dynamic: the gaps are those at the time of each pull.
    """
    pulls: Ints
    first: int = 0
    """The number of the first replication."""
    seconds: Floats = field(init=False, repr=False)
    """Processor time in the loop for each policy, without compilation. It is not saved."""
    counters: tuple[dict[str, int], ...] = field(init=False, repr=False)
    """Each policy's own counters, such as KLinf-UCB's infeasible indices, summed over all replications. They are not saved."""

    def __post_init__(self) -> None:
        """Leave times and counters empty; `simulate` fills them in."""
        instance(self.policies, tuple, "policies", "a tuple of policies", owner="Result")
        object.__setattr__(self, "seconds", np.full(len(self.policies), np.nan))
        object.__setattr__(self, "counters", tuple({} for _ in self.policies))

    def __repr__(self) -> str:
        """Return one line. `summary` returns the numbers."""
        names = ", ".join(p.name for p in self.policies)
        return f"<Result: {names}; horizon {self.horizon}, {self.regret.shape[1]} replications, seed {self.seed}>"

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays."""
        from robandit.simulate.plot import result_html

        return result_html(self)

    def plot(self) -> Figure:
        """Return a Matplotlib figure of regret over time: medians, with bands from the 5 % to the 95 % quantile.

        It shows the eight policies with the lowest mean regret. A notebook displays it; a script calls ``savefig`` on it.

        >>> import robandit as rb
        >>> result = rb.simulate(rb.UCB1(), rb.problems.gaussian(means=[0.0, -1.0]), 100, 3, seed=0)
        >>> result.plot().axes[0].get_xlabel()
        'pulls'
        """
        from robandit.simulate.plot import regret_figure

        return regret_figure(self)

    def summary(self) -> pl.DataFrame:
        """Return the final regret with one row per policy: mean with a 95 % interval, median, quantiles, worst.

        The interval is a percentile bootstrap of the mean over replications (`robandit.intervals`), since regret is too skewed for
        mean +- standard error. With one replication it is NaN. Experiments compute the same interval for the same replications.
        """
        import polars as pl

        from robandit.intervals import bootstrap_intervals

        finals = list(self.regret[:, :, -1])
        rows = []
        for policy, final, interval in zip(self.policies, finals, bootstrap_intervals(finals), strict=True):
            median, q05, q95 = np.median(final), np.quantile(final, 0.05), np.quantile(final, 0.95)
            rows.append((policy.name, *interval, *map(float, (median, q05, q95, final.max()))))
        columns = ["policy", "mean", "mean_low", "mean_high", "median", "q05", "q95", "worst"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def curves(self) -> pl.DataFrame:
        """Return regret over time, one row per policy and checkpoint: mean, median, 5 % and 95 % quantiles and the worst."""
        import polars as pl

        frames = []
        for policy, regret in zip(self.policies, self.regret, strict=True):
            columns = {"t": self.checkpoints, "mean": regret.mean(axis=0), "median": np.median(regret, axis=0)}
            columns |= {f"q{q:02}": np.quantile(regret, q / 100, axis=0) for q in (5, 95)}
            columns |= {"worst": regret.max(axis=0)}
            frames.append(pl.DataFrame(columns).select(pl.lit(policy.name).alias("policy"), pl.all()))
        return pl.concat(frames)

    def to_parquet(self, path: str | os.PathLike[str], *, whole: bool = True) -> None:
        """Write a Parquet file with one row per policy and replication. All other fields that are saved become metadata.

        Parameters
        ----------
        path
            The file to write.
        whole
            If False, only the fingerprint of a problem with a long record is stored. Reading the file then needs the problem.
        """
        write_atomically(path, self.to_bytes(whole=whole))

    def to_bytes(self, *, whole: bool = True) -> bytes:
        """Return the bytes that `to_parquet` writes."""
        import polars as pl

        whole = flag(whole, "whole", owner="Result")
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
            "problem": self.problem.to_dict() if whole else problem_reference(self.problem),
            "horizon": self.horizon,
            "seed": str(self.seed),  # a string: seeds may have 128 bits, and JSON readers round large numbers
            "checkpoints": self.checkpoints.tolist(),
            "first": self.first,
        }
        return sealed_parquet(frame, about)

    @staticmethod
    def from_parquet(path: str | os.PathLike[str], problem: Problem | None = None) -> Result:
        """Read a file that `to_parquet` wrote. ``problem`` is required if the file holds only its fingerprint."""
        import polars as pl

        if problem is not None:
            check_problem(problem)
        where = named(path)
        content = read_sealed(where)
        try:
            about = json.loads(pl.read_parquet_metadata(content)["robandit"])
            version = int(about["version"])
        except Exception as error:
            raise CorruptFile(f"{where} is damaged: {error}") from error
        check_format(version, FORMAT_VERSION, where)
        try:
            frame = pl.read_parquet(content).sort("policy", "replication")
            policies = tuple(Policy.from_dict(d) for d in about["policies"])
            rows = len(frame) // len(policies)
            return Result(
                policies=policies,
                problem=_referenced_problem(about["problem"], problem, where),
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


def check_problem(problem: Any) -> None:
    """Raise `InvalidInput` unless this is a problem."""
    if not isinstance(problem, Problem):
        raise invalid("problem", problem, "a Problem", hint="make one with Problem(laws) or robandit.problems")


def sealed_parquet(frame: pl.DataFrame, about: dict[str, Any], **options: Any) -> bytes:
    """Return a frame as the bytes of a Parquet file with checksum and metadata. Options are passed to ``write_parquet``."""
    buffer = io.BytesIO()  # not a file, because Polars raises its own exceptions on a full disk
    frame.write_parquet(buffer, metadata={"robandit": json.dumps(about), "seal": UNSEALED.decode()}, **options)
    return sealed(buffer.getvalue())


def problem_reference(problem: Problem) -> dict[str, Any]:
    """Return a problem as plain JSON data, or only its fingerprint if it has a long record."""
    return {"fingerprint": problem.fingerprint} if problem.bulky else problem.to_dict()


def _referenced_problem(data: Any, known: Problem | None, where: Path) -> Problem:
    """Return the problem from the data of `problem_reference`. ``known`` is returned if its fingerprint matches the data."""
    if not isinstance(data, dict) or set(data) != {"fingerprint"}:
        return Problem.from_dict(data)
    if known is None:
        missing = f"{where} is a part of a run and does not hold its problem"
        raise InvalidInput(f"{missing}: open the run folder, or pass problem=")
    if known.fingerprint != data["fingerprint"]:
        fingerprint = f"{str(data['fingerprint'])[:12]}..."
        raise CorruptFile(f"{where} was measured on another problem: its fingerprint is {fingerprint}")
    return known

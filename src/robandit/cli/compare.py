"""``robandit compare``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["compare"]


def compare(
    *,
    horizon: int = 100_000,
    replications: int = 50,
    seed: int = 1,
    threads: int | None = None,
    out: Path = Path("robandit-report.html"),
) -> None:
    """Compare all policies on a heavy-tailed problem: a table here, and a report in one HTML file.

    The problem: three arms with negated Pareto rewards of tail index 1.5 (infinite variance) and means -1, -1.5 and -2. Each policy
    is told exactly what it must know (`informed_by`); those for which that does not exist here are left out, and named.

    Parameters
    ----------
    horizon
        Pulls in each replication.
    replications
        How often each policy starts anew.
    seed
        Same seed, same numbers.
    threads
        By default one per core.
    out
        Where to write the report.
    """
    from rich.console import Console

    from robandit import problems
    from robandit.errors import FileError, NotApplicable
    from robandit.policies import AdaRUCB, Policy, all_policies
    from robandit.report.page import write_page
    from robandit.report.table import leaderboard
    from robandit.simulate import simulate

    if not out.absolute().parent.is_dir():
        raise FileError(f"{out} cannot be written: the folder {out.absolute().parent} does not exist; make it first")
    if out.is_dir():
        raise FileError(f"{out} cannot be written: it is a folder; name a file in it")
    problem = problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    policies: list[Policy] = []
    left_out: list[str] = []
    for policy in [*all_policies(), AdaRUCB(bonus="tight")]:
        try:
            policies.append(policy.informed_by(problem))
        except NotApplicable as reason:
            left_out.append(f"left out: {policy.name}: {reason}")
    result = simulate(policies, problem, horizon, replications, seed, threads=threads)
    Console().print(leaderboard(result))
    for line in left_out:
        print(line)
    write_page(result, out, command=f"robandit compare --horizon {horizon} --replications {replications} --seed {seed}")
    print(f"report: {out}")

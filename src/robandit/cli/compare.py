"""``robandit compare``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["compare"]


def compare(
    *,
    policy: list[str] | None = None,
    horizon: int = 100_000,
    replications: int = 50,
    seed: int = 1,
    threads: int | None = None,
    out: Path = Path("robandit-report.html"),
) -> None:
    """Compare all policies on a heavy-tailed problem: a table here, and a report in one HTML file.

    The problem: three arms with negated Pareto rewards of tail index 1.5 (infinite variance) and means -1, -1.5 and -2. Each policy
    is told exactly what it must know (`informed_by`); those for which that does not exist here, or that cannot play so long, are
    left out, and named. UCB1 and UCB-V, which assume bounded rewards, play as controls.

    Parameters
    ----------
    policy
        Name of a policy, such as AdaRUCB; give the option once for each. All that learn, unless given.
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
    from robandit.errors import NotApplicable
    from robandit.files import check_writable
    from robandit.policies import AdaRUCB, all_policies, entitled, named
    from robandit.report.page import write_page
    from robandit.report.table import leaderboard
    from robandit.simulate import simulate

    check_writable(out)
    problem = problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    learners = [each for each in all_policies() if each.uses_rewards]
    chosen = named(policy) if policy else [*learners, AdaRUCB(bonus="tight")]
    policies, left_out = entitled(chosen, problem, max(horizon, 1))  # a horizon below 1 is refused by simulate()
    if not policies:
        raise NotApplicable("; ".join(left_out))
    result = simulate(policies, problem, horizon, replications, seed, threads=threads)
    Console().print(leaderboard(result))
    for line in left_out:
        print(line)
    named_only = "".join(f" --policy {name}" for name in policy or [])
    command = f"robandit compare{named_only} --horizon {horizon} --replications {replications} --seed {seed}"
    write_page(result, out, command=command)
    print(f"report: {out}")

"""``robandit compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from robandit.cli.options import (
    All,
    Figures,
    Imports,
    Objective,
    OptionalInteger,
    Policies,
    Quick,
    Replications,
    Seed,
    Threads,
    check_figures,
    chosen_policies,
    command_line,
    import_given,
)


def compare(
    *,
    problem: list[str] | None = None,
    suite: Literal["heavy", "light", "paper", "lower-bound", "changing", "delayed"] | None = None,
    policy: Policies = None,
    every: All = False,
    objective: Objective = "mean",
    horizon: OptionalInteger = None,
    replications: Replications = None,
    seed: Seed = 1,
    threads: Threads = None,
    out: Path = Path("robandit-report.html"),
    figures: Figures = None,
    quick: Quick = False,
    imports: Imports = None,
) -> None:
    """Compare policies on heavy-tailed problems. Prints a table and writes an HTML report.

    By default ten policies play one problem with infinite variance. --all plays every policy, and --policy those that you name.

    Each policy is given exactly the parameters it must know. A policy is skipped, with a reason, if the problem
    does not have such a parameter (an infinite variance, for example) or the horizon is too long. UCB1 and UCB-V assume bounded
    rewards and serve as baselines.

    For example: `robandit compare --quick --problem heavy/latency --policy AdaKLUCB --policy UCB1`

    Parameters
    ----------
    problem
        A problem, such as 'student_t(means=[0.0, -1.0], dof=1.5)', or one of a suite, such as heavy/latency. Repeat the option for
        more. For costs, which are minimised: 'pareto(means=[1.0, 1.5], tail=1.5, minimize=True)'. The default has three arms with
        negated Pareto rewards: tail index 1.5 (infinite variance), means -1, -1.5, -2.
    suite
        Use all problems of this suite. Each has its own horizon.
    horizon
        Pulls per replication; by default 50,000, or the horizon of the suite's problem.
    out
        The HTML file of the report.
    """
    import sys
    import tempfile

    from robandit.cli.run_folder import conclude
    from robandit.cli.terminal.run_bar import run_bar
    from robandit.experiments.compare_plan import compared
    from robandit.experiments.runner import run
    from robandit.files import check_writable

    chosen = chosen_policies(policy, every)
    import_given(imports)
    check_writable(out)
    check_figures(figures)
    size: dict[str, Any] = {"horizon": horizon, "replications": replications, "seed": seed, "quick": quick}
    choices = {"import": imports, "problem": problem, "suite": suite, "policy": policy, "all": every}
    aim = None if objective == "mean" else objective
    command = command_line("compare", **choices, objective=aim, **size)
    plan = compared(problem or [], suite, chosen, **size, objective=objective)
    with tempfile.TemporaryDirectory(prefix="robandit-") as folder:
        with run_bar() as show:
            outcome = run(plan, Path(folder), threads=threads, command=command, progress=show)
        results = outcome.store.results()
    sys.exit(conclude(results, out, command=command, figures=figures))

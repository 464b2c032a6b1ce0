"""``robandit compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from robandit.cli.options import Flag, Number, Whole

__all__ = ["compare"]


def compare(
    *,
    problem: list[str] | None = None,
    suite: Literal["heavy", "light", "paper", "lower-bound"] | None = None,
    policy: list[str] | None = None,
    horizon: Whole = None,
    replications: Whole = None,
    seed: Number = 1,
    threads: Whole = None,
    out: Path = Path("robandit-report.html"),
    figures: Path | None = None,
    quick: Flag = False,
) -> None:
    """Compare policies on heavy-tailed problems: a table here, and a report in one HTML file.

    Each policy is told exactly what it must know (`informed_by`); those for which that does not exist, or that cannot play so long,
    are left out, and named. UCB1 and UCB-V, which assume bounded rewards, play as controls.

    For example: `robandit compare --quick --problem heavy/latency --policy AdaKLUCB --policy UCB1`

    Parameters
    ----------
    problem
        A problem, such as 'student_t(means=[0.0, -1.0], dof=1.5)' or a task of a suite, heavy/latency; give the option once for
        each. By default three arms with negated Pareto rewards of tail index 1.5 (infinite variance) and means -1, -1.5 and -2.
    suite
        All problems of a fixed set, at their own horizons.
    policy
        A policy, such as AdaRUCB or 'AdaRUCB(bonus="tight")'; give the option once for each. `robandit policies` shows the
        names, and all is every policy that learns. By default all, and 'AdaRUCB(bonus="tight")'.
    horizon
        Pulls in each replication; by default 50,000, or each suite problem's own.
    replications
        How often each policy starts anew; by default 50.
    seed
        A whole number from 0 on; same seed, same numbers.
    threads
        How many threads play at once; by default one per core.
    out
        Where to write the report, an HTML file.
    figures
        A folder for PDF and SVG figures of the report; by default none are written.
    quick
        A tenth of the pulls and 20 replications, unless given.
    """
    import shlex
    import sys
    import tempfile

    from robandit.cli.terminal.conclusion import conclude
    from robandit.cli.terminal.run_bar import runbar
    from robandit.experiments.compare_plan import compared
    from robandit.experiments.runner import run
    from robandit.files import check_folder, check_writable

    check_writable(out)
    check_folder(figures)
    options = {"problem": problem or (), "suite": (suite,) if suite else (), "policy": policy or ()}
    words = [word for name, values in options.items() for value in values for word in (f"--{name}", value)]
    for name, value in (("horizon", horizon), ("replications", replications), ("seed", seed)):
        words += [f"--{name}", str(value)] if value is not None else []
    command = shlex.join(["robandit", "compare", *words, *(["--quick"] if quick else [])])
    plan = compared(
        problem or [], suite, policy or [], horizon=horizon, replications=replications, seed=seed, quick=quick
    )
    with tempfile.TemporaryDirectory(prefix="robandit-") as folder:
        with runbar(plan) as progress:
            outcome = run(plan, Path(folder), threads=threads, command=command, progress=progress)
        results = outcome.store.results()
    sys.exit(conclude(results, out, command=command, figures=figures))

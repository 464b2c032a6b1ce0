"""``robandit verify``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from robandit.cli.options import Flag, Seed, Threads, command_line

if TYPE_CHECKING:
    from robandit.kernel.cache import Kernel
    from robandit.policies.base import Policy


def verify(
    *statement: str,
    quick: Flag = False,
    seed: Seed = 0,
    threads: Threads = None,
    out: Path = Path("robandit-verify.html"),
) -> None:
    """Check the statements of the AdaR-UCB paper, and our own, by experiment. Writes an HTML page and a JSON file.

    The paper's statements: table-1, theorem-4 (with theorem-1), theorem-2, theorem-3, lemma-2, theorem-5, theorem-6, theorem-7,
    theorem-8, proposition-9, proposition-10 (with algorithm-2). Ours, about AdaKL-UCB: adakl-comparison, adakl-validity,
    adakl-width, adakl-theorem. Each statement is split into claims about a number. A claim holds if the
    confidence interval of the measured number lies inside the predicted range. It fails if the interval lies outside, and is
    inconclusive otherwise. Exit code 3 means that a required claim failed.

    For example: `robandit verify theorem-4 --quick`

    Parameters
    ----------
    statement
        The statements to check; by default all.
    quick
        Make fewer and smaller runs. All statements then take less than three minutes on two cores.
    out
        The HTML file of the page; the JSON file has the same name with .json.
    """
    import sys

    from rich.console import Console

    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import steps, tracked
    from robandit.cli.terminal.verify import block, recap
    from robandit.files import check_writable
    from robandit.kernel.workers import compile_all
    from robandit.report.verify import summary, write_findings
    from robandit.simulate.simulation import any_play_kernel
    from robandit.validation import invalid
    from robandit.verify import Effort, checked, statements

    chosen = statements(statement)
    data = out.with_suffix(".json")
    if data == out:
        raise invalid("--out", str(out), "an .html file", hint="the .json file of the same name gets the data")
    for path in (out, data):
        check_writable(path)
    effort = Effort(quick=quick, seed=seed, threads=threads)

    def loop(policy: Policy) -> list[Kernel]:
        return [any_play_kernel(policy)]

    loops = {policy.name: partial(loop, policy) for each in chosen for policy in each.policies()}
    if loops:
        with steps("compiling", len(loops)) as advance:
            compile_all(loops, advance, processes=threads)
    console = Console()
    outcomes = []
    for each in chosen:
        outcomes.append(checked(each, effort, tracked(each.name)))
        console.print(block(outcomes[-1]))
    command = command_line("verify", *statement, quick=quick, seed=seed)
    write_findings(outcomes, out, data, command=command, effort=effort)
    if len(outcomes) > 1:
        console.print(recap(outcomes))
    console.print(summary(outcomes))
    write_line(f"written: {out}, {data}")
    if any(outcome.failed for outcome in outcomes):
        sys.exit(3)

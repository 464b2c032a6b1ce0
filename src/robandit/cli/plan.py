"""``robandit plan``."""

from __future__ import annotations

import os
from pathlib import Path

from robandit.cli.options import Imports, OptionalIntegers, RunFolder, import_given

WORTHWHILE = 10.0  # seconds that another size of units must save before it is suggested


def plan(spec: Path, *, workers: OptionalIntegers = None, out: RunFolder = None, imports: Imports = None) -> None:
    """Estimate the processor time, the disk space and the elapsed time on several workers before you run an experiment.

    The times are for idle machines: other programs on the same cores make the run longer, perhaps three times as long. Each policy
    plays each problem on this machine for a moment. This takes about 20 seconds, plus compilation. Units that are
    already in the run folder are not counted, but their speeds are used. The command writes no file.

    Parameters
    ----------
    spec
        The TOML file, as for `robandit run`.
    workers
        A number of workers with one thread each; repeat the option for more. By default 1, 2, 16, 128, 1000 and the
        number of cores of this machine.
    """
    from rich.console import Console

    from robandit.cli.run_folder import another_with_out, run_folder
    from robandit.cli.terminal.cost import cost_board, cost_lines, duration, time_board
    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import tracked
    from robandit.experiments.cost import better_cut, cost, measure, recorded
    from robandit.experiments.spec import read_spec
    from robandit.experiments.store import Store
    from robandit.kernel.cores import cores
    from robandit.validation import integer

    counts = sorted({integer(n, "--workers", 1, None) for n in workers or (1, 2, 16, 128, 1000, cores())})
    import_given(imports)
    experiment = read_spec(spec)
    folder = run_folder(spec, out)
    exists = os.path.exists(folder / "run.json")  # Path.exists raises for names that are too long
    with another_with_out(folder):
        todo = Store.open(folder).continued(experiment.plan()) if exists else experiment.plan()
    known = recorded(todo, folder) if exists else {}
    speeds = known | measure(todo, known=known, track=tracked("measuring"))
    estimate = cost(todo, ns_per_pull=speeds, folder=folder if exists else None)

    write_line(f"{experiment.name}: {f'run folder {folder}' if exists else f'no run folder {folder} yet'}")
    print(*cost_lines(estimate, todo), sep="\n")
    if not estimate.units:
        return
    if known:
        print(f"speeds of {len(known)} of {len(todo.cells)} cells are from the run folder, the others measured now")
    print()
    Console().print(cost_board(estimate), time_board(estimate, counts, cores()))
    better = None if exists else better_cut(todo, speeds, counts[-1])  # an existing folder keeps its units
    if better is not None and estimate.time_on(counts[-1]) - better[1] >= WORTHWHILE:
        print(f"With units of {better[0]:,} pulls, {counts[-1]:,} workers would take {duration(better[1])}:")
        print(f"in Python, run dataclasses.replace(plan, unit_pulls={better[0]}).")

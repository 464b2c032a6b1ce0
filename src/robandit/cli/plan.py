"""``robandit plan``."""

from __future__ import annotations

import os
from pathlib import Path

from robandit.cli.options import Imports, OptionalIntegers, RunFolder, import_given


def plan(spec: Path, *, workers: OptionalIntegers = None, out: RunFolder = None, imports: Imports = None) -> None:
    """Estimate the processor time of an experiment, and the time on several workers, before you run it.

    Each policy plays each problem on this machine for a moment. This takes about 20 seconds, plus compilation. Units that are
    already in the run folder are not counted. The times are for idle workers as fast as this machine: other programs on the same
    cores make the run longer, perhaps three times as long. The command writes no file.

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
    from robandit.cli.terminal.cost import cost_board, duration
    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import tracked
    from robandit.experiments.cost import cost
    from robandit.experiments.spec import read_spec
    from robandit.experiments.store import Store
    from robandit.kernel.cores import cores
    from robandit.validation import integer
    from robandit.wording import counted

    counts = sorted({integer(n, "--workers", 1, None) for n in workers or (1, 2, 16, 128, 1000, cores())})
    import_given(imports)
    experiment = read_spec(spec)
    folder = run_folder(spec, out)
    exists = os.path.exists(folder / "run.json")  # Path.exists raises for names that are too long
    with another_with_out(folder):
        todo = Store.open(folder).continued(experiment.plan()) if exists else experiment.plan()
    estimate = cost(todo, folder=folder if exists else None, track=tracked("measuring"))

    write_line(f"{experiment.name}: {f'run folder {folder}' if exists else f'no run folder {folder} yet'}")
    left = f"{counted(estimate.units, 'unit')} of work left, {estimate.done:,} done"
    if not estimate.units:
        print(left)
        return
    print(f"{left}; {estimate.pulls:,} pulls; processor time: {duration(estimate.seconds)}")
    for n in counts:
        print(f"time on {counted(n, 'worker')}: at least {duration(estimate.time_on(n))}")
    Console().print(cost_board(estimate))

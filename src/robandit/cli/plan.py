"""``robandit plan``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Wholes

__all__ = ["plan"]

WORTHWHILE = 10.0  # seconds that another cut must save to be named


def plan(spec: Path, *, workers: Wholes = None, out: Path | None = None) -> None:
    """Say what an experiment will cost before it is run: processor time, bytes, and the time on so many workers.

    Each policy is played on each problem for a moment, here; that takes about 20 seconds, and the time to compile what is not
    compiled yet. What a run folder has already is not counted, and its times are used instead. Nothing is written.

    Parameters
    ----------
    spec
        The TOML file, as for `robandit run`.
    workers
        How many workers of one thread each; give the option once for each number. By default 1, 2, 16, 128, 1000 and this machine's
        cores.
    out
        The run folder; by default the spec's name without .toml, beside it.
    """
    from rich.console import Console

    from robandit.cli.run_folder import another_with_out, run_folder
    from robandit.cli.terminal.cost import cost_board, cost_lines, duration, time_board
    from robandit.cli.terminal.progress import tracked
    from robandit.errors import InvalidInput
    from robandit.experiments.cost import better_cut, cost, measure, recorded
    from robandit.experiments.spec import read_spec
    from robandit.experiments.store import Store
    from robandit.kernel.cores import cores

    for number in workers or ():
        if number < 1:
            raise InvalidInput(f"--workers {number}: it must be a whole number >= 1")
    numbers = sorted({*workers} if workers else {1, 2, 16, 128, 1000, cores()})
    read = read_spec(spec)
    folder = run_folder(spec, out)
    there = (folder / "run.json").exists()
    with another_with_out(folder):
        todo = Store.open(folder).continued(read.plan()) if there else read.plan()
    known = recorded(todo, folder) if there else {}
    speeds = known | measure(todo, known=known, track=tracked("measuring"))
    found = cost(todo, ns_per_pull=speeds, folder=folder if there else None)

    print(
        f"{read.name}: {'in the run folder' if there else 'there is no run folder'} {folder}{'' if there else ' yet'}"
    )
    for line in cost_lines(found, todo):
        print(line)
    if not found.units:
        return
    if known:
        print(f"speed as the run folder has it for {len(known)} of {len(todo.cells)} cells, else as measured here")
    print()
    console = Console()
    console.print(cost_board(found))
    console.print(time_board(found, numbers, cores()))
    better = None if there else better_cut(todo, speeds, numbers[-1])  # a folder keeps the units that it has
    if better is not None and found.time_on(numbers[-1]) - better[1] >= WORTHWHILE:
        print(f"With units of {better[0]:,} pulls, {numbers[-1]:,} workers would take {duration(better[1])}:")
        print(f"in Python, run dataclasses.replace(plan, unit_pulls={better[0]}).")

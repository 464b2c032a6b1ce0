"""``robandit replay``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Flag, Number, Whole
from robandit.cli.table_options import File, Reading
from robandit.experiments.replay_plan import Mode

__all__ = ["replay"]


def replay(
    file: File = None,
    *,
    reading: Reading = Reading(),
    propensity: str | None = None,
    mode: list[Mode] | None = None,
    policy: list[str] | None = None,
    horizon: Whole = None,
    replications: Whole = None,
    seed: Number = 1,
    threads: Whole = None,
    out: Path | None = None,
    figures: Path | None = None,
    quick: Flag = False,
) -> None:
    """Compare policies on recorded rewards: which one would have served, and what it would have cost.

    bootstrap: rewards are drawn at random from each arm's record. in-order: time by time, where every arm has a reward at every
    time. rejection: a log of choices and rewards is read in its order, and rows with another choice than the policy's are passed
    over. By default bootstrap, in-order if the record allows it, and rejection if it has propensities; it says which, and why. It
    also says whether the record itself tells which arm is best.

    What is finished is kept in a folder: the same command goes on where it stopped. At the end the folder has `results/` (tidy
    Parquet) and `report.html`. Exit code 3 says that some units failed.

    For example: `robandit replay waits.csv --arm server --reward seconds --negate`

    Parameters
    ----------
    file
        A table with a row per reward, CSV, Parquet or JSON lines; - reads standard input.
    propensity
        The column with the probability (above 0, at most 1) that the logged arm was chosen; by default "propensity", if there is
        one.
    mode
        How to replay: bootstrap, in-order or rejection; give the option once for each.
    policy
        A policy, such as AdaRUCB or 'AdaRUCB(bonus="tight")'; give the option once for each. `robandit policies` shows the
        names, and all is every policy that learns. By default all, and 'AdaRUCB(bonus="tight")'.
    horizon
        Pulls in each replication; by default as many as there are rewards (times; rewards of the rarest arm), at most 50,000.
    replications
        How often each policy starts anew; by default 50.
    seed
        A whole number from 0 on; same seed, same numbers.
    threads
        How many threads play at once; by default one per core.
    out
        The run folder; by default the file's name without its ending and with "-replay", here.
    figures
        A folder for PDF and SVG figures of the report; by default none are written.
    quick
        A tenth of the pulls and 20 replications, unless given.
    """
    import shlex

    from robandit.cli.run_folder import play_into
    from robandit.cli.terminal.progress import rows
    from robandit.experiments.replay_plan import replayed
    from robandit.files import check_folder

    check_folder(figures)
    words = reading.words(file)
    for name, values in (("propensity", (propensity,)), ("mode", mode or ()), ("policy", policy or ())):
        words += [word for value in values if value is not None for word in (f"--{name}", value)]
    for name, value in (("horizon", horizon), ("replications", replications), ("seed", seed), ("out", out)):
        words += [f"--{name}", str(value)] if value is not None else []
    command = shlex.join(["robandit", "replay", *words, *(["--quick"] if quick else [])])
    records = reading.records(file, propensity)
    with rows("reading") as progress:
        plan = replayed(
            records,
            policy or (),
            name=reading.name(file),
            modes=mode or (),
            horizon=horizon,
            replications=replications,
            seed=seed,
            quick=quick,
            progress=progress,
        )
    folder = out if out is not None else Path(f"{reading.name(file)}-replay")
    play_into(folder, plan, threads=threads, command=command, figures=figures)

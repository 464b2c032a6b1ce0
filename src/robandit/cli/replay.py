"""``robandit replay``."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import Any

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
from robandit.cli.table_options import File, Reading
from robandit.errors import InvalidInput
from robandit.experiments.replay_plan import Mode


def replay(
    file: File = None,
    *,
    reading: Reading = Reading(),
    propensity: str | None = None,
    features: str | None = None,
    mode: list[Mode] | None = None,
    policy: Policies = None,
    every: All = False,
    objective: Objective = "mean",
    horizon: OptionalInteger = None,
    replications: Replications = None,
    seed: Seed = 1,
    threads: Threads = None,
    out: Path | None = None,
    figures: Figures = None,
    quick: Quick = False,
    imports: Imports = None,
) -> None:
    """Compare policies on recorded rewards: what would each have cost or earned? Prints tables and writes a folder with a report.

    Totals have the unit and the sign of the record. They are compared with what the log itself cost, or with random choices if the
    record has a reward of every arm at every time; the difference has a 95 % interval.

    There are three modes. bootstrap draws rewards at random from the record of each arm. in-order replays the rewards by time; it
    needs a reward of every arm at every time. rejection reads a log of choices in order and skips the rows in which the policy
    chooses another arm. By default all modes run that the record allows: bootstrap always, in-order if possible, and
    rejection if the log has propensities. The output explains the choice and states whether the best arm of the record is
    significantly better than the others.

    With --features, policies that use these columns play beside others that do not, and the first lines say whether the context is
    worth it. Each decision has the features of a recorded row. The reward is that of the chosen arm in this row if the record has
    one of every arm at every time. Otherwise it is drawn by cells or by a fitted model, and the output says which.

    By default the ten policies of `robandit compare` play. --all plays every policy, and --policy those that you name.

    Finished units are kept in the run folder, and the same command continues where it stopped. At the end the folder has
    `results/` (tidy Parquet) and `report.html`. Exit code 3 means that some units failed.

    For example: `robandit replay waits.csv --arm server --reward seconds --minimize`

    Parameters
    ----------
    file
        A CSV, Parquet or JSON lines file with one reward per row, or - for standard input.
    propensity
        The column with the probability (above 0, at most 1) that the logged arm was chosen. By default "propensity", if it exists.
    features
        The columns that are known before each choice, such as tokens,region. Numbers are scaled, other values are categories (at
        most 64 columns in all). tokens:log takes the logarithm, store:category reads numbers as categories, and customer:hash
        hashes values to 32 columns.
    mode
        bootstrap, in-order or rejection; repeat the option for more.
    horizon
        Pulls per replication. By default the number of rewards (in-order: of times; rejection: of rewards of the rarest arm), but
        at most 50,000.
    out
        The run folder; by default NAME-replay (with --features NAME-contexts) in the current folder, where NAME is the name of the
        file without its ending.
    """
    from robandit.cli.run_folder import play_into
    from robandit.cli.terminal.progress import rows
    from robandit.experiments.context_plan import replayed_with_features
    from robandit.experiments.replay_plan import replayed

    for option, given in (("--mode", mode), ("--objective", objective != "mean")):
        if features is not None and given:
            raise InvalidInput(f"--features and {option} cannot be used together: omit one")
    chosen = chosen_policies(policy, every)
    import_given(imports)
    check_figures(figures)
    choices = {
        "import": imports,
        "propensity": propensity,
        "features": features,
        "mode": mode,
        "policy": policy,
        "all": every,
    }
    choices["objective"] = None if objective == "mean" else objective
    size: dict[str, Any] = {"horizon": horizon, "replications": replications, "seed": seed}
    command = command_line("replay", file, **asdict(reading), **choices, **size, out=out, quick=quick)
    records = reading.records(file, propensity)
    name = reading.name(file)
    with rows("reading") as progress:
        shared: dict[str, Any] = {"name": name, **size, "quick": quick, "progress": progress}
        if features is not None:
            plan = replayed_with_features(
                records, next(csv.reader([features], skipinitialspace=True), []), chosen, **shared
            )
        else:
            plan = replayed(records, chosen, modes=mode or (), objective=objective, **shared)
    folder = out or Path(f"{name}-{'replay' if features is None else 'contexts'}")
    play_into(folder, plan, threads=threads, command=command, figures=figures)

"""What a notebook displays of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robandit.experiments.statistics import Findings, Standing
from robandit.notebook import block, bullets, paragraph, table
from robandit.wording import counted, number, share

if TYPE_CHECKING:
    from robandit.experiments.runner import RunOutcome


def outcome_html(outcome: RunOutcome) -> str:
    """Return the verdict, one table of regret per problem, and the number of units."""
    findings = Findings(outcome.store.results())
    counts = f"{counted(outcome.done, 'unit')} played in {outcome.seconds:.0f} s, {outcome.before:,} done before, "
    counts += f"{len(outcome.failed):,} failed. Run folder: {outcome.store.folder}"
    failed = [f"{each.unit.cell!r}: {each.traceback.strip().splitlines()[-1]}" for each in outcome.failed]
    boards = [part for standing in findings.standings for part in _board(standing)]
    return block(paragraph(findings.verdict), *boards, paragraph(counts), bullets(failed) if failed else "")


def _board(standing: Standing) -> tuple[str, str]:
    played = standing.played
    rows = [
        (row["policy"], *(number(row[name]) for name in ("mean", "mean_low", "mean_high", "median", "q95", "worst")))
        + (share(row["share_of_uniform"]),)
        for row in standing.rows
    ]
    head = ("policy", "mean regret", "95 % interval from", "to", "median", "95 % quantile", "worst", "of random")
    return paragraph(f"regret after {counted(played.horizon, 'pull')}", strong=f"{played.name}:"), table(head, rows)

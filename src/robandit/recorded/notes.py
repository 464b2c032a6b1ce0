"""Questions about a table that may be dirty: names of arms that look alike, and negative costs."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from robandit.errors import formatted
from robandit.wording import counted, joined, listed, visible

ASKED = 5  # groups of names with a question
FEW = 0.05  # a greater share of negative costs is not a mistake, unless all are negative


def plain_name(name: str) -> str:
    """Return what names have in common that differ only by case, spaces, invisible characters or the encoding of a letter.

    >>> plain_name(" GPT  4\\u200b") == plain_name("gpt4"), plain_name("gpt-4") == plain_name("gpt4")
    (True, False)
    """
    folded = unicodedata.normalize("NFC", name.casefold())  # NFKC would join x² and x2
    return "".join(char for char in folded if not char.isspace() and visible(char) == char)


def name_questions(counts: Mapping[str, int], column: str = "") -> list[str]:
    """Ask whether names (with their numbers of rows) that differ only by case or space are one arm.

    ``column`` is that of the arms, empty if there is no table.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(counts, key=lambda name: -counts[name]):
        groups.setdefault(plain_name(name), []).append(name)
    alike = [names for names in groups.values() if len(names) > 1]
    asked = []
    for names in alike[:ASKED]:
        shown = joined([f"{formatted(name)} ({counted(counts[name], 'row')})" for name in names])
        asked.append(f"Are {shown} one arm? The names differ only by case or space.")
    if len(alike) > ASKED:
        asked.append(f"{counted(len(alike) - ASKED, 'more arm')} may have several names.")
    if alike and column:
        asked.append("To read all such names as one arm: --join-names (in Python join_names=True)")
    return asked


def negative_costs(
    counts: Mapping[str, int],
    total: int,
    rows: Sequence[int] = (),
    unit: str = "row",
) -> list[str]:
    """Ask whether negative costs are mistakes. ``counts`` maps arms to numbers of them, and ``rows`` are the first ones."""
    negative = sum(counts.values())
    if negative == total:
        way_out = "If they are costs times -1, or rewards, do not minimise."
        return [f"All {total:,} costs are negative, and the lowest is the best. {way_out}"]
    if not 0 < negative <= FEW * total:
        return []
    shown = listed([f"{n:,} of {formatted(arm)}" for arm, n in counts.items() if n], ASKED)
    if rows:
        more = ", ..." if negative > len(rows) else ""
        shown += f"; {unit}{'s' if negative > 1 else ''} {', '.join(f'{row:,}' for row in rows)}{more}"
    count = f"{counted(negative, 'cost')} {'is' if negative == 1 else 'are'} negative"
    return [f"{count} ({shown}). Negative costs may be mistakes, or mark missing values: --where can drop them."]

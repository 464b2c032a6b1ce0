"""Questions about a table that may be dirty: names of arms that look alike, and negative costs.

Each question prints the option that answers it, ready for a shell.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Mapping, Sequence

from robandit.errors import formatted
from robandit.recorded.where import quoted_column
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


def name_questions(counts: Mapping[str, int], column: str = "", where: str | None = None) -> list[str]:
    """Ask whether names (with their numbers of rows) that differ only by case or space are one arm.

    ``column`` is that of the arms, empty if there is no table, and ``where`` the condition that the rows fit already.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(counts, key=lambda name: -counts[name]):
        groups.setdefault(plain_name(name), []).append(name)
    alike = [names for names in groups.values() if len(names) > 1]
    asked = []
    for names in alike[:ASKED]:
        shown = joined([f"{formatted(name)} ({counted(counts[name], 'row')})" for name in names])
        asked.append(f"Are {shown} one arm? The names differ only by case or space.")
        if column and (option := dropping(names[1:], column, where)):
            asked.append(f"To keep only {formatted(names[0])}: {option}")
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
    column: str = "",
    where: str | None = None,
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
    note = f"{count} ({shown}). Negative costs may be mistakes, or mark missing values."
    option = where_option(f"{quoted_column(column)} >= 0", where) if column else ""
    return [note, f"To drop negative costs: {option}"] if option else [note]


def where_option(condition: str, where: str | None) -> str:
    """Return the option --where for a shell. Rows must also fit ``where``. Empty if the condition cannot be printed.

    >>> print(where_option("model != 'old '", "ok = true"))
    --where "(ok = true) and model != 'old '"
    """
    text = f"({where}) and {condition}" if where else condition
    if visible(text) != text:
        return ""
    # In double quotes, shells replace these characters; != stays as it is.
    plain = not set('"$`\\!') & set(text.replace("!=", ""))
    return f'--where "{text}"' if plain else f"--where {shlex.quote(text)}"


def dropping(names: Sequence[str], column: str, where: str | None) -> str:
    """Return the option --where that drops the rows of some arms; empty if there are none, or a name cannot be printed."""
    return (
        where_option(" and ".join(f"{quoted_column(column)} != {_text(name)}" for name in names), where)
        if names
        else ""
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

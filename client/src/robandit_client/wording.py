"""Format counts, lists and names for messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of control, formatting, half, line and paragraph characters. A terminal may obey them."""


def visible(text: str, keep: str = "") -> str:
    """Return text in which control characters and others that cannot be seen are escaped as in Python, except those to keep.

    >>> print(visible("a" + chr(27) + "[31m" + chr(0x202E) + "b\\nc"))
    a\\x1b[31m\\u202eb\\nc
    """
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if char not in keep and unicodedata.category(char) in INVISIBLE else char
        for char in text
    )


def counted(n: int, one: str, several: str = "") -> str:
    """Return a count with its noun. ``several`` is the plural, if it is not the singular with an s.

    >>> counted(1, "pull"), counted(2_000, "pull"), counted(3, "policy", "policies")
    ('1 pull', '2,000 pulls', '3 policies')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def joined(parts: Sequence[str]) -> str:
    """Return the parts with commas and a final "and".

    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

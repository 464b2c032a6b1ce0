"""Words that sentences about experiments share."""

from __future__ import annotations

__all__ = ["counted"]


def counted(n: int, one: str, several: str = "") -> str:
    """How many there are of something; ``several`` where an s does not do.

    >>> counted(1, "pull"), counted(2_000, "pull"), counted(3, "policy", "policies")
    ('1 pull', '2,000 pulls', '3 policies')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"

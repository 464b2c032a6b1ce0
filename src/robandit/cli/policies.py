"""``robandit policies``."""

from __future__ import annotations

__all__ = ["policies"]


def policies(*, markdown: bool = False) -> None:
    """Show every policy: its regret bounds, what it assumes and what it must be told.

    Parameters
    ----------
    markdown
        Write the documentation page instead.
    """
    from robandit.policies import all_policies, table
    from robandit.policies.comparison import as_markdown

    if markdown:
        print(as_markdown(all_policies()), end="")
    else:
        table()

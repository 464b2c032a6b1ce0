"""``robandit policies``."""

from __future__ import annotations

from robandit.cli.options import Flag

__all__ = ["policies"]


def policies(*, markdown: Flag = False) -> None:
    """Show every policy: the name that `--policy` takes, its regret bounds, what it assumes and what it must be told.

    Parameters
    ----------
    markdown
        Print the page of the documentation instead, as Markdown.
    """
    from robandit.policies import all_policies, table
    from robandit.policies.comparison import as_markdown

    if markdown:
        print(as_markdown(all_policies()), end="")
    else:
        table()

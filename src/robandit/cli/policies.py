"""``robandit policies``."""

from __future__ import annotations

from robandit.cli.options import Flag


def policies(*, markdown: Flag = False) -> None:
    """List every policy with its name for `--policy`, its regret bounds, its assumption, and the parameters it must know.

    Parameters
    ----------
    markdown
        Print the list as the Markdown page of the documentation.
    """
    from robandit.policies import all_policies, table
    from robandit.policies.comparison import as_markdown

    if markdown:
        print(as_markdown(all_policies()), end="")
    else:
        table()

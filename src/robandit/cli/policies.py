"""``robandit policies``."""

from __future__ import annotations

from robandit.cli.options import Flag


def policies(*, theory: Flag = False) -> None:
    """List every policy on one line: its name for `--policy`, and when to use it.

    Parameters
    ----------
    theory
        Print the regret bounds of each policy, its assumption, and the parameters it must know.
    """
    from robandit.policies import all_policies, table
    from robandit.policies.comparison import as_lines

    if theory:
        table()
    else:
        print(as_lines(all_policies()))

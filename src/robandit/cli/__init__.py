"""The command line: one file per command, no logic of its own."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 refused with a reason, 2 wrong usage, 3 a check failed, 130 interrupted."""
    import cyclopts

    from robandit import __version__
    from robandit.cli.compare import compare
    from robandit.cli.estimators import coverage
    from robandit.cli.policies import policies
    from robandit.cli.precompile import precompile
    from robandit.cli.verify import verify
    from robandit.errors import RobanditError

    app = cyclopts.App(
        name="robandit",
        help="Multi-armed bandits with heavy-tailed rewards.",
        version=__version__,
        default_parameter=cyclopts.Parameter(negative=()),
    )
    app.command(compare)
    app.command(policies)
    app.command(precompile)
    app.command(verify)
    estimators = cyclopts.App(name="estimators", help="Robust means and their confidence bounds.")
    estimators.command(coverage)
    app.command(estimators)
    try:
        app(exit_on_error=False)
    except cyclopts.CycloptsError:  # already printed, with the usage
        sys.exit(2)
    except RobanditError as error:
        print(f"robandit: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("robandit: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)

"""The command line: one file per command, no logic of its own."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 refused with a reason, 2 wrong usage, 3 something failed, 130 interrupted."""
    import cyclopts

    from robandit import __version__
    from robandit.cli import results, spec
    from robandit.cli.compare import compare
    from robandit.cli.doctor import doctor
    from robandit.cli.estimators import coverage
    from robandit.cli.policies import policies
    from robandit.cli.precompile import precompile
    from robandit.cli.run import run
    from robandit.cli.verify import verify
    from robandit.errors import RobanditError

    app = cyclopts.App(
        name="robandit",
        help="Multi-armed bandits with heavy-tailed rewards.",
        help_epilogue="Exit codes: 0 done, 1 refused with a reason, 2 wrong usage, 3 a check or a unit of work failed, 130 interrupted.",
        version=__version__,
        default_parameter=cyclopts.Parameter(negative=()),
    )
    for command in (compare, run, policies, verify, doctor, precompile):
        app.command(command)
    specs = cyclopts.App(name="spec", help="Experiments as TOML files.")
    for command in (spec.init, spec.check, spec.show):
        specs.command(command)
    app.command(specs)
    found = cyclopts.App(name="results", help="What a run folder holds.")
    for command in (results.show, results.export):
        found.command(command)
    app.command(found)
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

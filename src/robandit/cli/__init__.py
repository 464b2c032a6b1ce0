"""The command line: one file per command, no logic of its own."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import cyclopts

__all__ = ["application", "main"]

CODES = "0 done, 1 refused with a reason, 2 wrong usage, 3 a check or a unit of work failed, 130 interrupted, 141 output was closed"

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # no room for what is printed, or for a file


def application() -> cyclopts.App:
    """Every command and its options; none has run."""
    import cyclopts

    from robandit import __version__
    from robandit.cli import results, spec
    from robandit.cli.compare import compare
    from robandit.cli.completion import completion
    from robandit.cli.diagnose import diagnose
    from robandit.cli.doctor import doctor
    from robandit.cli.estimators import coverage
    from robandit.cli.plan import plan
    from robandit.cli.policies import policies
    from robandit.cli.precompile import precompile
    from robandit.cli.replay import replay
    from robandit.cli.run import run
    from robandit.cli.verify import verify

    app = cyclopts.App(
        name="robandit",
        help="Multi-armed bandits with heavy-tailed rewards.",
        help_epilogue=f"Exit codes: {CODES}.",
        version=__version__,
        default_parameter=cyclopts.Parameter(negative=()),
        suppress_keyboard_interrupt=False,  # it would end without a word
    )
    for single in (compare, diagnose, replay, run, plan, policies, verify, doctor, precompile, completion):
        app.command(single)
    groups: tuple[tuple[str, str, tuple[Callable[..., None], ...]], ...] = (
        ("spec", "Experiments as TOML files.", (spec.init, spec.check, spec.show)),
        ("results", "What a run folder holds.", (results.show, results.export)),
        ("estimators", "Robust means and their confidence bounds.", (coverage,)),
    )
    for name, about, commands in groups:
        group = cyclopts.App(name=name, help=about)
        for command in commands:
            group.command(command)
        app.command(group)
    return app


def main() -> None:
    """Run the command line; the exit codes are `CODES`."""
    import cyclopts

    from robandit.errors import RobanditError

    # Where standard output cannot write an umlaut, a question mark is better than nothing.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            application()(sys.argv[1:], exit_on_error=False)
        finally:
            sys.stdout.flush()  # short output meets a closed pipe only here
    except cyclopts.CycloptsError:  # already printed, with the usage
        sys.exit(2)
    except RobanditError as error:
        print(f"robandit: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        _unread()
    except OSError as error:
        if error.errno not in FULL:
            raise
        print(f"robandit: {error.filename or 'output'} cannot be written: {error.strerror}", file=sys.stderr)
        _drop_unwritten()
        sys.exit(1)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Rich has met it, and ends with 1
            _unread()
        raise
    except KeyboardInterrupt:
        print("robandit: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)


def _unread() -> NoReturn:
    """`robandit ... | head` has read enough: end without a word, with the code of programs that a closed pipe ends.

    It is not 0, since what failed may not have been said yet.
    """
    _drop()
    sys.exit(128 + 13)  # 13 is SIGPIPE, which Windows does not name


def _drop_unwritten() -> None:
    """What standard output still holds, and cannot write, is lost."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop()


def _drop() -> None:
    """Send what is left of standard output nowhere: Python would complain once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

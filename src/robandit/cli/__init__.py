"""The command line. Each command has a file; terminal/ formats the output."""

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

CODES = "0 success, 1 error, 2 wrong usage, 3 a check or a unit failed, 130 interrupted, 141 output closed"

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # the disk, the quota or the file is full


def application() -> cyclopts.App:
    """Return the application with all commands and options."""
    import cyclopts

    from robandit import __version__
    from robandit.cli import keys, results, spec
    from robandit.cli.archive import archive
    from robandit.cli.backup import backup
    from robandit.cli.compare import compare
    from robandit.cli.completion import completion
    from robandit.cli.diagnose import diagnose
    from robandit.cli.doctor import doctor
    from robandit.cli.migrate_store import migrate_store
    from robandit.cli.plan import plan
    from robandit.cli.policies import policies
    from robandit.cli.precompile import precompile
    from robandit.cli.replay import replay
    from robandit.cli.run import run
    from robandit.cli.serve import serve
    from robandit.cli.verify import verify

    app = cyclopts.App(
        name="robandit",
        help="Multi-armed bandits with heavy-tailed rewards.",
        help_epilogue=f"Exit codes: {CODES}.",
        version=__version__,
        default_parameter=cyclopts.Parameter(negative=()),
        suppress_keyboard_interrupt=False,  # Cyclopts would exit without a message
    )
    for single in (
        compare,
        diagnose,
        replay,
        run,
        plan,
        policies,
        verify,
        serve,
        backup,
        migrate_store,
        archive,
        doctor,
        precompile,
        completion,
    ):
        app.command(single)
    groups: tuple[tuple[str, str, tuple[Callable[..., None], ...]], ...] = (
        ("spec", "Write and check experiments as TOML files.", (spec.init, spec.check)),
        ("results", "Show or export the results of a run.", (results.show, results.export)),
        ("keys", "Create, list and revoke the access keys of a server.", (keys.create, keys.list_keys, keys.revoke)),
    )
    for name, about, commands in groups:
        group = cyclopts.App(name=name, help=about)
        for command in commands:
            group.command(command, name=command.__name__.partition("_")[0])
        app.command(group)
    return app


def main() -> None:
    """Run the command line and exit with one of `CODES`."""
    import cyclopts

    from robandit.cli.terminal.guard import guard, write_line
    from robandit.errors import KernelError, RobanditError
    from robandit.files import shown

    # Print a question mark for characters that standard output cannot encode.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    guard()
    try:
        try:
            application()(sys.argv[1:], exit_on_error=False, print_error=False)
        finally:
            sys.stdout.flush()  # short output reveals a closed pipe only when it is flushed
    except cyclopts.CycloptsError as error:
        write_line(f"robandit: {_usage_error(error)}", sys.stderr)
        print(f"For help: {' '.join(('robandit', *(error.command_chain or ())))} --help", file=sys.stderr)
        sys.exit(2)
    except RobanditError as error:
        if isinstance(error, KernelError):  # only the compiler's messages have several lines
            print(f"robandit: {error}", file=sys.stderr)
        else:
            write_line(f"robandit: {error}", sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        _exit_unread()
    except OSError as error:
        if error.errno not in FULL and error.filename is None:
            raise
        use = "written" if error.errno in FULL else "used"
        write_line(f"robandit: {shown(error.filename or 'output')} cannot be {use}: {error.strerror}", sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
        sys.exit(1)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Rich turns a closed pipe into exit code 1
            _exit_unread()
        raise
    except KeyboardInterrupt:
        print("robandit: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)


def _usage_error(error: cyclopts.CycloptsError) -> str:
    """Return the message, with the way out."""
    import cyclopts

    from robandit.cli.misspelt import unknown_option

    message = str(error).strip()
    if isinstance(error, cyclopts.UnknownOptionError):
        typed = error.token.keyword or error.token.value
        message = unknown_option(typed, error.argument_collection)
    if isinstance(error, cyclopts.CoercionError) and error.app and error.token and error.token.value.startswith("--"):
        typed = error.token.value  # where a file is expected
        options = error.app.assemble_argument_collection()
        message = f"{unknown_option(typed, options)}. For a file of this name, write ./{typed[:80]}"
    if isinstance(error, cyclopts.MissingArgumentError) and error.argument is not None:
        argument = error.argument
        name = argument.name.lstrip("-").upper() if argument.field_info.is_positional else argument.name
        message = f"{name} needs a value"
    if isinstance(error, cyclopts.RepeatArgumentError):
        name = error.token.keyword or error.token.value[:80]
        join = 'join the conditions with and, as in --where "ok = true and size < 5"'
        message = f"{name} is given twice: {join if name == '--where' else 'omit one'}"
    if isinstance(error, cyclopts.UnusedCliTokensError):
        unused = " ".join(error.unused_tokens or ())
        message = (
            f"{unused!r} has no option: write the option before its value, for example --policy UCB1 or --out results"
        )
    return message


def _exit_unread() -> NoReturn:
    """Exit silently when the reader of a pipe (such as head) stops. The code is not 0, because a failure may be unprinted."""
    _discard_output()
    sys.exit(128 + 13)  # 13 is SIGPIPE, which Windows does not define


def _discard_output() -> None:
    """Discard the rest of standard output, because Python would raise again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""``robandit spec``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Imports, import_given


def init(file: Path = Path("experiment.toml"), /) -> None:
    """Write an example spec with comments, for you to edit. It runs in about ten seconds.

    Parameters
    ----------
    file
        The file to write. An existing file is not overwritten.
    """
    import shlex

    from robandit.cli.terminal.guard import write_line
    from robandit.errors import FileError
    from robandit.experiments.spec import EXAMPLE
    from robandit.files import check_writable, shown, write_atomically

    check_writable(file)
    try:
        file.open("x").close()  # fails if it exists, even if another process makes it now
        write_atomically(file, EXAMPLE.encode())
    except FileExistsError:
        raise FileError(f"{shown(file)} exists and is not overwritten: name another file, or move this one") from None
    except OSError as error:
        raise FileError(f"{shown(file)} cannot be written: {error.strerror or error}") from error
    except FileError:  # a full disk: leave no empty file behind
        file.unlink(missing_ok=True)
        raise
    name = shlex.quote(str(file))
    write_line(f"written: {file}. Next: robandit spec check {name}, then robandit run {name}")


def check(file: Path, /, *, imports: Imports = None) -> None:
    """Check a spec, and print the size of the experiment and the policies that are skipped.

    Parameters
    ----------
    file
        The TOML file. An error message names the key. Modules under `imports` are run.
    """
    from robandit.experiments.spec import read_spec, summary

    import_given(imports)
    spec = read_spec(file)
    print(summary(spec, spec.plan()))

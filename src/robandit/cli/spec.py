"""``robandit spec``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Flag

__all__ = ["check", "init", "show"]


def init(file: Path = Path("experiment.toml"), /) -> None:
    """Write a commented example of a spec, to be changed; it runs in about ten seconds.

    Parameters
    ----------
    file
        Where to write it. A file that is there already is left alone.
    """
    import shlex

    from robandit.errors import FileError
    from robandit.experiments.spec import EXAMPLE
    from robandit.files import check_writable

    check_writable(file)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(EXAMPLE)
    except FileExistsError:
        raise FileError(f"{file} is there already, and is left as it is: name another file, or move it away") from None
    except OSError as error:
        raise FileError(f"{file} cannot be written: {error.strerror or error}") from error
    name = shlex.quote(str(file))
    print(f"written: {file}. Next: robandit spec check {name}, then robandit run {name}")


def check(file: Path, /) -> None:
    """Read a spec strictly, and say how large the experiment is, and what is left out.

    Parameters
    ----------
    file
        The TOML file. What is wrong with it is shown with its line.
    """
    from robandit.experiments.spec import read_spec, summary

    spec = read_spec(file)
    print(summary(spec, spec.plan()))


def show(file: Path, /, *, json: Flag = False) -> None:
    """Show a spec with everything filled in: each problem, and each policy as it is told what it must know.

    Parameters
    ----------
    file
        The TOML file.
    json
        As JSON, with the laws of every problem.
    """
    from json import dumps

    from robandit.experiments.spec import read_spec, resolved_text

    spec = read_spec(file)
    print(dumps(spec.resolved(), indent=2, allow_nan=False) if json else resolved_text(spec))

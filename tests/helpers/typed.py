"""Run commands in this process: a new one would spend two seconds on imports."""

import contextlib
import io
import sys
from unittest import mock

from robandit.cli import main


def typed(*words, cwd, code=0):
    """Return what `robandit WORDS` prints: standard output with its lines joined, and standard error."""
    out, err = printed(*words, cwd=cwd, code=code)
    return " ".join(out.split()), err


def printed(*words, cwd, code=0):
    """Return standard output and standard error of `robandit WORDS`."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["robandit", *words]),
    ):
        try:
            main()
            ended = 0
        except SystemExit as end:
            ended = end.code or 0
    assert ended == code, err.getvalue() + out.getvalue()
    return out.getvalue(), err.getvalue()

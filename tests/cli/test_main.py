"""The entry of the command line: how it ends when something outside of it fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from robandit import cli


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])  # Python notices at the end, or at once
def test_a_full_disk_is_reported_in_one_line(unbuffered, tmp_path):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "robandit", "--version"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == "robandit: output cannot be written: No space left on device\n"
    assert done.returncode == 1


def test_other_errors_of_the_system_are_not_taken_for_a_full_disk(monkeypatch):
    def lost():
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(cli, "application", lost)
    with pytest.raises(ConnectionResetError):
        cli.main()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diagnose", "x.csv", "--where"], "--where needs a value"),
        (["run"], "SPEC needs a value"),
        (
            ["diagnose", "x.csv", "--where", "ok = true", "--where", "size < 5"],
            '--where is given twice: join the conditions with and, as in --where "ok = true and size < 5"',
        ),
        (["diagnose", "x.csv", "--arm", "a", "--arm", "b"], "--arm is given twice: omit one"),
    ],
)
def test_a_missing_or_repeated_value_is_named(words, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["robandit", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())

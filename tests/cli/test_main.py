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

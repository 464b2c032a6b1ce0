"""The example of the page "A bandit in production", run twice as a user would."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "production.py"


def test_the_example_runs_and_continues_where_it_stopped(tmp_path):
    outputs = [
        subprocess.run(
            [sys.executable, EXAMPLE, tmp_path], capture_output=True, text=True, check=True, timeout=300
        ).stdout
        for _ in range(2)
    ]
    tables = [dict(re.findall(r"^(\w+) +\w+ +(\d+) requests", output, re.MULTILINE)) for output in outputs]
    first, second = ({arm: int(count) for arm, count in table.items()} for table in tables)
    assert list(first) == list(second) == ["eu", "us", "asia", "sa"]
    assert sum(first.values()) == 2 * 2000 + 1
    assert sum(second.values()) == sum(first.values()) + 2000 + 1
    assert first["eu"] == second["eu"], "a retired arm gets no more requests"
    for output in outputs:
        assert "eu    retired" in output
        assert "open decisions: 0" in output
    # The best server gets nine tenths of the traffic that it may get, less what exploration takes.
    assert second["sa"] - first["sa"] > 0.75 * 2000


def test_an_error_ends_the_example(tmp_path):
    """The thread that saves must not keep the program alive."""
    broken = tmp_path / "broken.py"
    broken.write_text(EXAMPLE.read_text(encoding="utf-8").replace('"us": 1.0, ', ""), encoding="utf-8")
    done = subprocess.run([sys.executable, broken, tmp_path], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'us'\n")


def test_the_example_is_short():
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= 60

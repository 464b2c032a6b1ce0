"""`robandit run --engine dask` in processes of its own: Ctrl-C, a scheduler that dies, and the same bytes in the end."""

import os
import signal
import subprocess
import sys

import pytest

from helpers.dask_farm import dask_farm, kill, wait_for
from helpers.small_plan import contents
from robandit.experiments import parse_spec, run

pytestmark = [
    pytest.mark.xdist_group("clusters"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked from a warm process"),
]
pytest.importorskip("distributed", reason='Dask is not installed: pip install "robandit[cluster]"')

SPEC = """
replications = 8
horizons = [2_500_000]
policies = ["Uniform"]
problems = ["gaussian(means=[0.0, -0.5])"]
"""


def start(*words, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "robandit", "run", "s.toml", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own, as at a terminal
    )


def in_group(number):
    """Processes of a group that are not merely waiting to be forgotten."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.split()[0] == str(number) and "Z" not in line.split()[1]]


def starting(number):
    """Process numbers of the workers that a group has spawned."""
    listed = subprocess.run(["ps", "-wweo", "pid=,pgid=,args="], capture_output=True, text=True, check=True).stdout
    found = (line.split(maxsplit=2) for line in listed.splitlines())
    return [int(pid) for pid, group, words in found if group == str(number) and "spawn_main" in words]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    run(parse_spec(SPEC).plan(), folder).store.write_results()
    return contents(folder, "parts", "results")


def test_a_run_whose_worker_is_killed_at_the_start_and_that_is_interrupted_goes_on(expected, tmp_path):
    """The same command three times: after an error, after Ctrl-C, and to the end."""
    (tmp_path / "s.toml").write_text(SPEC)
    options = ["--engine", "dask", "--workers", "1"]

    process = start(*options, cwd=tmp_path)
    wait_for(lambda: starting(process.pid))
    kill(starting(process.pid)[0])
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert len(said.splitlines()) == 1
    assert said.startswith("robandit: starting 1 worker process on this machine failed")
    assert said.rstrip().endswith("to continue, repeat the command")
    wait_for(lambda: not in_group(process.pid), 120)

    process = start(*options, cwd=tmp_path)
    parts = tmp_path / "s" / "parts"
    wait_for(lambda: list(parts.glob("*.parquet")), 120)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    go_on = "robandit run s.toml --engine dask --workers 1"
    assert said.splitlines()[-1] == f"robandit: interrupted; finished units are kept in s. To continue: {go_on}"
    assert all(
        line.startswith(("dashboard: ", "playing ", "compiling ", "robandit: ")) for line in said.splitlines()
    ), said
    wait_for(lambda: not in_group(process.pid), 120)
    assert os.listdir(tmp_path / "s" / "locks") == []
    kept = len(os.listdir(parts))
    assert 0 < kept < len(expected) - 2

    process = start(*options, cwd=tmp_path)
    told, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert f"{kept} done before" in told
    assert said.count("dashboard: ") == 1
    assert "1 worker" in said.splitlines()[-1]
    assert all(line.startswith(("dashboard: ", "playing ", "compiling ")) for line in said.splitlines()), said
    assert contents(tmp_path / "s", "parts", "results") == expected
    wait_for(lambda: not in_group(process.pid), 120)


def test_a_scheduler_that_dies_is_exit_code_1_and_says_how_to_go_on(tmp_path):
    (tmp_path / "s.toml").write_text(SPEC)
    with dask_farm(tmp_path) as make:
        cluster = make(workers=1)
        file = cluster.file.name
        process = start("--engine", "dask", "--scheduler-file", file, cwd=tmp_path)
        parts = tmp_path / "s" / "parts"
        wait_for(lambda: list(parts.glob("*.parquet")), 120)
        kill(cluster.scheduler)
        _, said = process.communicate(timeout=60)
        cluster.end()
        assert process.returncode == 1, said
        last = said.splitlines()[-1]
        assert "was lost" in last
        assert last.endswith(f"To continue: robandit run s.toml --engine dask --scheduler-file {file}")
        assert "Traceback" not in said
        assert os.listdir(tmp_path / "s" / "locks") == []

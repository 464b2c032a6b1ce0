"""docs/how-to/cluster.md: what can run here runs as it stands; the rest is checked as far as its packages are installed."""

import ast
import importlib
import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from robandit.cli.plan import plan
from robandit.cli.run import run

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "cluster.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
SHELL = "\n".join(re.findall(r"^```sh\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE))
ELSEWHERE = ("SLURMCluster",)  # needs machines that are not here


def imported(tree):
    """Every name that a snippet imports, with its module."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in found for alias in node.names}


def printed(text, folder):
    """By a script of its own: workers import the script that starts them."""
    script = folder / "snippet.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, script], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_local_cluster_runs(tmp_path):
    pytest.importorskip("distributed")
    (text,) = (each for each in PYTHON if "dask_engine" in each)
    assert "workers=2" in text
    assert "2 units played, 0 failed" in printed(text.replace("workers=2", "workers=1"), tmp_path)
    assert (tmp_path / "first-cluster" / "results" / "regret.parquet").exists()


def test_other_snippets_run(tmp_path):
    texts = [text for text in PYTHON if not any(name in text for name in (*ELSEWHERE, "dask_engine"))]
    assert len(texts) == 1
    assert printed(texts[0], tmp_path).count(" units") == 1


@pytest.mark.parametrize("name", ELSEWHERE)
def test_snippets_for_other_clusters_use_names_and_arguments_that_exist(name):
    (text,) = (each for each in PYTHON if name in each)
    tree = ast.parse(text)
    for what, module in imported(tree).items():
        if module.startswith("robandit") or importlib.util.find_spec(module.partition(".")[0]) is not None:
            assert hasattr(importlib.import_module(module), what), f"{module}.{what}"
    (call,) = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == name)
    module = imported(tree)[name]
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed: the arguments of {name} are not checked")
    known = set(inspect.signature(getattr(importlib.import_module(module), name)).parameters)
    if name == "SLURMCluster":  # it hands them on to its jobs
        core, slurm = (importlib.import_module(f"dask_jobqueue.{each}") for each in ("core", "slurm"))
        known |= set(inspect.signature(core.Job.__init__).parameters)
        known |= set(inspect.signature(slurm.SLURMJob.__init__).parameters)
    assert {keyword.arg for keyword in call.keywords} <= known


@pytest.mark.parametrize(("command", "function"), [("run", run), ("plan", plan)])
def test_commands_have_options_that_exist(command, function):
    lines = [shlex.split(line, comments=True) for line in SHELL.splitlines() if line.startswith(f"robandit {command} ")]
    assert lines
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(function).parameters}
    for words in lines:
        assert {word for word in words if word.startswith("--")} <= known, words

"""Shares the rewriting of assertions among the processes of a run.

pytest rewrites the assertions of every test file, so that a failure shows the values, and stores the byte code. In a new clone,
each process of `pytest -n` would rewrite all files at the same time, which takes 11 seconds of processor time.
"""

import os
from pathlib import Path

from _pytest.assertion import rewrite


def rewrite_share(config, folder):
    """Rewrite and store a share of the test files that this run collects from a folder: other processes have the other files."""
    worker, count = os.environ.get("PYTEST_XDIST_WORKER"), os.environ.get("PYTEST_XDIST_WORKER_COUNT")
    if worker is None or config.getoption("assertmode") != "rewrite":
        return
    wanted = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    files = [path for path in folder.rglob("test_*.py") if any(path.is_relative_to(part) for part in wanted)]
    files.sort(key=lambda path: (-path.stat().st_size, path))
    for path in files[int(worker.removeprefix("gw")) :: int(count)]:
        _store(config, path)


def _store(config, path: Path):
    """What `AssertionRewritingHook.exec_module` does, also if PYTHONDONTWRITEBYTECODE is set: the other processes need the file."""
    stored = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
    if rewrite._read_pyc(path, stored) is None and rewrite.try_makedirs(stored.parent):
        stat, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, stat, stored)

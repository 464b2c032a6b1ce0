"""`robandit precompile`: a folder that an image uses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# They share one folder.
pytestmark = pytest.mark.xdist_group("precompile")

PLAY = """
import robandit as rb

bandit = rb.Bandit(["a", "b"], rb.Oracle(arm=1), seed=0, compile="now")
bandit.reward(bandit.decide(), 1.0)
bandit.update(bandit.select(), 2.0)
rb.simulate(rb.Oracle(arm=1), rb.problems.bernoulli(means=[0.2, 0.8]), horizon=10, replications=2, seed=0)
print(bandit.counters()["rewards"])
"""


def robandit(*words: str, cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ROBANDIT_CACHE_DIR": str(cache)} | more
    command = [sys.executable, *(["-m", "robandit", *words] if words else ["-c", PLAY])]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one policy, compiled under a mask that hides files from others."""
    folder = tmp_path_factory.mktemp("image") / "robandit"
    mask = os.umask(0o077)
    try:
        done = robandit("precompile", "Oracle", "--into", str(folder), cache=folder.parent / "unused")
    finally:
        os.umask(mask)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"compiled code is in {folder}\n"
    return folder


def test_the_folder_is_filled_and_others_can_read_it(image):
    assert image.stat().st_mode & 0o777 == 0o755
    assert {path.suffix for path in image.iterdir()} == {".kernel"}
    assert {path.stat().st_mode & 0o777 for path in image.iterdir()} == {0o644}
    assert not (image.parent / "unused").exists()  # the user's own folder is not touched


def test_a_process_that_uses_the_folder_compiles_nothing(image):
    before = {path.name: path.stat().st_mtime_ns for path in image.iterdir()}
    done = robandit(cache=image)
    assert (done.stdout, done.stderr) == ("2\n", "")
    assert {path.name: path.stat().st_mtime_ns for path in image.iterdir()} == before


def test_another_processor_compiles_again(image):
    """The negative control: code for one processor is not used for another."""
    done = robandit(cache=image, NUMBA_CPU_NAME="generic")
    assert done.stdout == "2\n"
    assert "compiling Oracle" in done.stderr


def test_a_policy_that_does_not_exist(tmp_path):
    done = robandit("precompile", "AdaKL", "--into", str(tmp_path / "x"), cache=tmp_path / "cache")
    assert done.returncode == 1
    assert "AdaKLUCB" in done.stderr  # the way out
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    done = robandit("precompile", "Oracle", "--into", str(tmp_path / "file"), cache=tmp_path / "cache")
    assert done.returncode == 1
    assert f"compiled code cannot be stored in {tmp_path / 'file'}" in done.stderr
    assert "name a folder of yours" in done.stderr


def test_the_mode_of_a_folder_that_exists_is_kept(image, tmp_path):
    for mode, code in ((0o700, 0), (0o1777, 1)):
        folder = shutil.copytree(image, tmp_path / f"{mode:o}")  # so that nothing is compiled
        folder.chmod(mode)
        assert robandit("precompile", "Oracle", "--into", str(folder), cache=tmp_path / "cache").returncode == code
        assert folder.stat().st_mode & 0o7777 == mode

"""`robandit precompile`: a folder that an image uses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import robandit as rb
from helpers.typed import typed

# They share one folder.
pytestmark = pytest.mark.xdist_group("precompile")

DECIDE = """
import robandit as rb

bandit = rb.Bandit(["a", "b", "c"], rb.Oracle(arm=1), seed=0, compile="now")
bandit.update(bandit.select(), 2.0)
decision, late = bandit.decide(), bandit.decide()
bandit.reward(decision, 1)
bandit.expire(late)
print(bandit.counters()["rewards"], len(bandit.estimates()))
"""
PLAY = """
for problem in (
    rb.problems.negated_pareto(means=[-1.0, -2.0, -3.0], tail=2.0),
    rb.problems.bernoulli(means=[0.2, 0.8]),
):
    rb.simulate(rb.Oracle(arm=1), problem, horizon=50, replications=3, seed=0, threads=2)
rewards = [i * 0.37 % 1.0 for i in range(200)]
rb.estimators.adaptive_trimmed_mean(rewards, delta=0.05, bonus="likelihood", center="median")  # as studies of the service do
"""


AGAIN = DECIDE + PLAY + "rb.precompile([rb.Oracle()])"


def robandit(*words: str, cache: Path, code: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ROBANDIT_CACHE_DIR": str(cache)} | more
    command = [sys.executable, *(["-m", "robandit", *words] if words else ["-c", code])]
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
    done = robandit(cache=image, code=AGAIN)
    assert (done.stdout, done.stderr) == ("2 3\n", "")
    assert {path.name: path.stat().st_mtime_ns for path in image.iterdir()} == before


def test_another_processor_compiles_again(image):
    """The negative control: code for one processor is not used for another. Kernels are named alike, so a few suffice."""
    done = robandit(cache=image, code=DECIDE, NUMBA_CPU_NAME="generic")
    assert done.stdout == "2 3\n"
    assert "compiling Oracle" in done.stderr


def test_only_what_is_not_compiled_yet_is_announced(image, tmp_path, monkeypatch, capsys):
    """From Python, without a function to call."""
    assert callable(rb.precompile)  # imports its module
    asked = []

    def compile_all(groups, done, *, processes):
        asked.append((list(groups), processes))
        for kernels in groups.values():
            assert kernels()
        for path in image.iterdir():  # as if a process had compiled it
            shutil.copy(path, tmp_path)

    monkeypatch.setattr(sys.modules["robandit.precompile"], "compile_all", compile_all)
    for said in ("robandit: compiling Oracle, first run only\n", ""):
        assert rb.precompile([rb.Oracle()], into=tmp_path, processes=2) == tmp_path
        announced = capsys.readouterr().err
        assert announced.startswith(said)
        assert ("Oracle" in announced) == bool(said)
    assert asked == [(["Oracle", "drift detector", "trimmed mean"], 2)] * 2


def test_a_policy_that_does_not_exist(tmp_path):
    _, said = typed("precompile", "AdaKL", "--into", "x", cwd=tmp_path, code=1)
    assert "AdaKLUCB" in said  # the way out
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    _, said = typed("precompile", "Oracle", "--into", str(tmp_path / "file"), cwd=tmp_path, code=1)
    assert f"compiled code cannot be stored in {tmp_path / 'file'}" in " ".join(said.split())
    assert "name a folder of yours" in said


def test_the_mode_of_a_folder_that_exists_is_kept(image, tmp_path):
    for mode, code in ((0o700, 0), (0o1777, 1)):
        folder = shutil.copytree(image, tmp_path / f"{mode:o}")  # so that nothing is compiled
        folder.chmod(mode)
        typed("precompile", "Oracle", "--into", str(folder), cwd=tmp_path, code=code)
        assert folder.stat().st_mode & 0o7777 == mode

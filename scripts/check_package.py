"""Build what is uploaded, install it where nothing else is, and use it there; `make package` does so.

::

    python scripts/check_package.py  # into dist/

The wheel is built from the source distribution, as installers do. It goes into an empty environment, away from this folder, with
what it depends on and nothing else. There the commands and the library run, a type checker reads users' code, and pipx runs the
command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MOST_BYTES = 3_000_000  # of either file: more means that something was swept in

USE = """
import robandit as rb
from importlib.metadata import metadata, version
problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
result = rb.simulate(rb.UCB1(), problem, 1000, 4, seed=1)
assert result.pulls.sum() == 4000
assert rb.recorded.example("flights").summary().rows > 1000
assert version("robandit") == rb.__version__
assert metadata("robandit")["Description-Content-Type"] == "text/markdown"
print(rb.__file__)
"""


def run(*words: str | Path, cwd: Path, says: str = "") -> str:
    """Run a command; its output, which must contain some words."""
    print("$", *words if len(str(words[-1])) < 200 else (*words[:-1], "..."), flush=True)
    # A checkout on the path would be found before the installed package.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or says not in done.stdout:
        sys.exit(f"{done.stdout}{done.stderr}\nended with {done.returncode}; expected 0, and to read {says!r}")
    return done.stdout


def build(tools: Path, folder: Path) -> Path:
    """Both files, in dist/: the wheel, which is built from the source distribution and has what one built from here has."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(tools / "python", "-m", "build", "--quiet", "--outdir", DIST, ROOT, cwd=folder)
    run(tools / "python", "-m", "build", "--quiet", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (sdist,), (wheel,), (direct,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl"), folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(direct) as other:
        assert {i.filename: i.CRC for i in one.infolist()} == {i.filename: i.CRC for i in other.infolist()}
    run(tools / "twine", "check", "--strict", sdist, wheel, cwd=folder)
    with tarfile.open(sdist) as files:
        print(f"{sdist.name}: {sdist.stat().st_size:,} bytes, {len(files.getnames())} files")
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    assert max(sdist.stat().st_size, wheel.stat().st_size) < MOST_BYTES
    return wheel


def use(wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment, and do there what a user does first."""
    home = folder / "installed"
    venv.create(home, with_pip=True)
    python, robandit = home / "bin" / "python", home / "bin" / "robandit"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    run(python, "-m", "pip", "check", cwd=folder)
    version = run(robandit, "--version", cwd=folder).strip()
    assert version in wheel.name
    run(python, "-m", "robandit", "--version", cwd=folder, says=version)
    run(python, "-m", "robandit", "--help", cwd=folder, says="compare")
    run(robandit, "completion", "bash", cwd=folder, says="complete -F _robandit robandit")
    assert str(home) in run(python, "-W", "error", "-c", USE, cwd=folder)
    words = ("--policy", "UCB1", "--policy", "EpsilonGreedy", "--horizon", "500", "--replications", "3")
    run(robandit, "compare", *words, cwd=folder, says="robandit-report.html")
    assert "</html>" in (folder / "robandit-report.html").read_text(encoding="utf-8")
    users = [str(path) for path in sorted((ROOT / "tests" / "user_types").glob("*.py"))]
    options = ("--strict", "--config-file=", f"--cache-dir={folder / 'types'}", f"--python-executable={python}")
    run(sys.executable, "-m", "mypy", *options, *users, cwd=folder, says="no issues found")


def main() -> int:
    """See the top of this file."""
    with tempfile.TemporaryDirectory(prefix="robandit-package-") as name:
        folder = Path(name)
        venv.create(folder / "tools", with_pip=True)
        tools = folder / "tools" / "bin"
        more = ("build", "twine", "pipx")
        run(tools / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *more, cwd=folder)
        wheel = build(tools, folder)
        use(wheel, folder)
        os.environ["PIPX_HOME"] = str(folder / "pipx")
        run(tools / "pipx", "run", "--spec", wheel, "robandit", "--version", cwd=folder, says=wheel.name.split("-")[1])
    print("both files build, install into an empty environment, and work there")
    return 0


if __name__ == "__main__":
    sys.exit(main())

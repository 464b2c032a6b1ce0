"""Build the distribution, install it into an empty environment and use it there (``make package``).

::

    python scripts/check_package.py  # writes to dist/

The wheel is built from the source distribution, as installers do. It is installed with only its dependencies, outside this folder.
The script then runs the commands and the library, type-checks example code of users, and runs the command with pipx.
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
MOST_BYTES = 3_000_000  # per file: a larger one contains something by mistake

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


def run(*words: str | Path, cwd: Path, expected: str = "") -> str:
    """Run a command and return its output; exit if it fails or does not print the expected text."""
    print("$", *words if len(str(words[-1])) < 200 else (*words[:-1], "..."), flush=True)
    # A checkout on the path would shadow the installed package.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or expected not in done.stdout:
        sys.exit(f"{done.stdout}{done.stderr}\nexit code {done.returncode}; expected 0 and the output {expected!r}")
    return done.stdout


def build(tools: Path, folder: Path) -> Path:
    """Build the source distribution and the wheel into dist/; check that a wheel built directly has the same files."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(tools / "python", "-m", "build", "--quiet", "--outdir", DIST, ROOT, cwd=folder)
    run(tools / "python", "-m", "build", "--quiet", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (sdist,), (wheel,), (direct,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl"), folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(direct) as other:
        assert {i.filename: i.CRC for i in archive.infolist()} == {i.filename: i.CRC for i in other.infolist()}
    run(tools / "twine", "check", "--strict", sdist, wheel, cwd=folder)
    with tarfile.open(sdist) as files:
        print(f"{sdist.name}: {sdist.stat().st_size:,} bytes, {len(files.getnames())} files")
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    assert max(sdist.stat().st_size, wheel.stat().st_size) < MOST_BYTES
    return wheel


def use(wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment and try commands, library and types as a new user would."""
    home = folder / "installed"
    venv.create(home, with_pip=True)
    python, robandit = home / "bin" / "python", home / "bin" / "robandit"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    run(python, "-m", "pip", "check", cwd=folder)
    version = run(robandit, "--version", cwd=folder).strip()
    assert version in wheel.name
    run(python, "-m", "robandit", "--version", cwd=folder, expected=version)
    run(python, "-m", "robandit", "--help", cwd=folder, expected="compare")
    run(robandit, "completion", "bash", cwd=folder, expected="complete -F _robandit robandit")
    assert str(home) in run(python, "-W", "error", "-c", USE, cwd=folder)
    words = ("--policy", "UCB1", "--policy", "EpsilonGreedy", "--horizon", "500", "--replications", "3")
    run(robandit, "compare", *words, cwd=folder, expected="robandit-report.html")
    assert "</html>" in (folder / "robandit-report.html").read_text(encoding="utf-8")
    users = [str(path) for path in sorted((ROOT / "tests" / "user_types").glob("*.py"))]
    options = ("--strict", "--config-file=", f"--cache-dir={folder / 'types'}", f"--python-executable={python}")
    run(sys.executable, "-m", "mypy", *options, *users, cwd=folder, expected="no issues found")


def main() -> int:
    """Build and check the distribution; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="robandit-package-") as name:
        folder = Path(name)
        venv.create(folder / "tools", with_pip=True)
        tools = folder / "tools" / "bin"
        packages = ("build", "twine", "pipx")
        run(tools / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, cwd=folder)
        wheel = build(tools, folder)
        use(wheel, folder)
        os.environ["PIPX_HOME"] = str(folder / "pipx")
        run(
            tools / "pipx",
            "run",
            "--spec",
            wheel,
            "robandit",
            "--version",
            cwd=folder,
            expected=wheel.name.split("-")[1],
        )
    print("ok: both files build, install into an empty environment and work")
    return 0


if __name__ == "__main__":
    sys.exit(main())

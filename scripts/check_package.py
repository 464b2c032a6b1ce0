"""Build both distributions, install them into empty environments and use them there (``make package``).

::

    python scripts/check_package.py  # writes to dist/

The wheels are built from the source distributions, as installers do. robandit is installed outside this folder, first with only its
dependencies, then with each extra that users need. The script runs the commands and the library there, type-checks example code of
users, runs the command with pipx, collects the tests in the unpacked source distribution, and prints sizes. robandit-client is
installed alone, with the oldest Python on this machine that it supports, and calls a served robandit.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from install_weight import MEGABYTE, summed, weights

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MOST_BYTES = {"robandit": 3_000_000, "robandit_client": 200_000}  # per file: a larger one contains something by mistake
PYTHONS = ("python3.9", "python3.10", sys.executable)  # for the client: the first one that runs
COMPARE = ("compare", "--policy", "UCB1", "--policy", "EpsilonGreedy", "--horizon", "500", "--replications", "3")

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
try:
    result.plot()
except rb.errors.InvalidInput as error:
    print(error)
"""

PLOT = """
import robandit as rb
problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
print(rb.simulate(rb.UCB1(), problem, 100, 4, seed=1).plot().axes[0].get_xlabel())
"""

CLIENT = """
import asyncio, sys, time
from urllib.request import urlopen
from MODULE import AsyncClient, Client
url, key = sys.argv[1:]
with Client(url, key) as client:
    provider = client.create("MODULE", ["a", "b"], minimize=True)
    decision = provider.decide()
    assert provider.reward(decision, 0.83).outcome == "applied"
    with provider.timed():
        time.sleep(0.001)
    print("rewards of", decision.arm, [arm["pulls"] for arm in provider.show()["arms"]])

async def main():
    async with AsyncClient(url, key) as client:
        provider = client.experiment("MODULE")
        decisions = await provider.decide_many(3)
        await provider.reward_many([(decision, 0.5) for decision in decisions])
        pulls = [arm["pulls"] for arm in (await provider.show())["arms"]]
        assert sum(pulls) == 5, pulls

asyncio.run(main())
away = Client("http://127.0.0.1:1", fallback="a", timeout=0.1)
assert away.experiment("MODULE").decide().fallback
for page in ("/login", "/docs", "/openapi.json", "/readyz"):
    assert urlopen(url + page).status == 200
"""

SPEC = """
name = "packaged"
replications = 4
horizons = [500]
problems = ["negated_pareto(means=[-1.0, -1.5], tail=1.8)"]
policies = ["UCB1", "EpsilonGreedy"]
"""


def environment() -> dict[str, str]:
    """Return the environment variables without a checkout on the path, which would shadow the installed package."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}


def run(*words: str | Path, cwd: Path, expected: str = "", code: int = 0) -> str:
    """Run a command and return its output; exit unless it ends with this exit code and prints the expected text."""
    print("$", *(word if len(str(word)) < 200 else "..." for word in words), flush=True)
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != code or expected not in done.stdout + done.stderr:
        sys.exit(
            f"{done.stdout}{done.stderr}\nexit code {done.returncode}; expected {code} and the output {expected!r}"
        )
    return done.stdout


def build(tools: Path, folder: Path, project: Path, name: str) -> tuple[Path, Path]:
    """Build the source distribution and the wheel into dist/; check that a wheel built directly has the same files."""
    run(tools / "python", "-m", "build", "--quiet", "--outdir", DIST, project, cwd=folder)
    run(tools / "python", "-m", "build", "--quiet", "--wheel", "--outdir", folder, project, cwd=folder)
    (sdist,), (wheel,), (direct,) = (
        DIST.glob(f"{name}-*.tar.gz"),
        DIST.glob(f"{name}-*.whl"),
        folder.glob(f"{name}-*.whl"),
    )
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(direct) as other:
        assert {i.filename: i.CRC for i in archive.infolist()} == {i.filename: i.CRC for i in other.infolist()}
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(archive.namelist())} files")
    run(tools / "twine", "check", "--strict", sdist, wheel, cwd=folder)
    with tarfile.open(sdist) as files:
        print(f"{sdist.name}: {sdist.stat().st_size:,} bytes, {len(files.getnames())} files")
    assert max(sdist.stat().st_size, wheel.stat().st_size) < MOST_BYTES[name]
    return sdist, wheel


@contextmanager
def installed(wheel: Path, client: Path, folder: Path, extra: str = "") -> Iterator[Path]:
    """Install both wheels into an empty environment, print its size and yield its folder of commands. It is removed at the end."""
    home = folder / f"with-{extra or 'nothing'}"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    target = f"{wheel}[{extra}]" if extra else wheel
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", client, target, cwd=folder)
    run(python, "-m", "pip", "check", cwd=folder)
    (site_packages,) = (home / "lib").glob("python*/site-packages")
    whole = summed("whole", weights(site_packages))
    name = f"robandit[{extra}]" if extra else "robandit"
    print(f"{name}: {whole.total / MEGABYTE:.0f} MB installed, {whole.plain / MEGABYTE:.0f} MB without byte code")
    yield home / "bin"
    shutil.rmtree(home)


def check_plain(programs: Path, wheel: Path, folder: Path) -> None:
    """Try commands, library and types as a new user would, and what needs an extra: its message names the extra."""
    python, robandit = programs / "python", programs / "robandit"
    version = run(robandit, "--version", cwd=folder).strip()
    assert version == wheel.name.split("-")[1]
    run(python, "-m", "robandit", "--version", cwd=folder, expected=version)
    run(python, "-m", "robandit", "--help", cwd=folder, expected="compare")
    run(robandit, "completion", "bash", cwd=folder, expected="complete -F _robandit robandit")
    used = run(python, "-W", "error", "-c", USE, cwd=folder, expected='pip install "robandit[plot]"')
    assert str(programs.parent) in used
    check_report(robandit, folder=folder)
    users = [str(path) for path in sorted((ROOT / "tests" / "user_types").glob("*.py"))]
    options = ("--strict", "--config-file=", f"--cache-dir={folder / 'types'}", f"--python-executable={python}")
    run(sys.executable, "-m", "mypy", *options, *users, cwd=folder, expected="no issues found")
    (folder / "spec.toml").write_text(SPEC)
    dask = ("run", "spec.toml", "--engine", "dask", "--workers", "1")
    run(robandit, "serve", cwd=folder, expected="pip install 'robandit[serve]'", code=1)
    run(robandit, *dask, cwd=folder, expected='pip install "robandit[cluster]"', code=1)


def check_report(*command: str | Path, folder: Path) -> None:
    """Compare two policies, and look at the report."""
    report = folder / "robandit-report.html"
    report.unlink(missing_ok=True)
    run(*command, *COMPARE, cwd=folder, expected=report.name)
    assert "</html>" in report.read_text(encoding="utf-8")


def check_plot(programs: Path, folder: Path) -> None:
    """Draw a figure, and write those of a comparison."""
    run(programs / "python", "-W", "error", "-c", PLOT, cwd=folder, expected="pulls")
    run(programs / "robandit", *COMPARE, "--figures", "figures", cwd=folder, expected="figures: 4 files")


def check_serve(programs: Path, folder: Path) -> None:
    """Start the decision service, use it with both names of the client, once with the client alone, and stop it."""
    words = [str(programs / "robandit"), "serve", "--port", "0", "--store", f"sqlite:{folder / 'robandit.db'}"]
    print("$", *words, flush=True)
    server = subprocess.Popen(words, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        key = server.stdout.readline().split()[-1]
        url = server.stdout.readline().split()[1]
        for python, module in (
            (programs / "python", "robandit.client"),
            (folder / "client/bin/python", "robandit_client"),
        ):
            code = CLIENT.replace("MODULE", module)
            run(python, "-W", "error", "-c", code, url, key, cwd=folder, expected="rewards of")
    finally:
        server.terminate()
    rest, _ = server.communicate(timeout=60)
    assert server.returncode == 0, rest
    assert "everything is stored" in rest


def install_client(client: Path, folder: Path) -> None:
    """Install only the client, with the oldest Python that runs, and check that nothing else is there."""
    home = folder / "client"
    for name in PYTHONS:
        program = shutil.which(name)
        if program and subprocess.run([program, "-m", "venv", home], capture_output=True, check=False).returncode == 0:
            break
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", client, cwd=folder)
    (site_packages,) = (home / "lib").glob("python*/site-packages")
    (weight,) = weights(site_packages)
    print(f"{weight.package}: {weight.total / 1e3:.0f} kB installed", run(python, "--version", cwd=folder).strip())
    run(python, "-c", "import robandit", cwd=folder, expected="No module named 'robandit'", code=1)


def check_cluster(programs: Path, folder: Path) -> None:
    """Run a spec on a cluster of two processes on this machine."""
    (folder / "spec.toml").write_text(SPEC)
    dask = ("run", "spec.toml", "--engine", "dask", "--workers", "2", "--out", "run")
    run(programs / "robandit", *dask, cwd=folder)
    run(programs / "robandit", "results", "show", "run", cwd=folder, expected="UCB1")


def check_sdist(sdist: Path, folder: Path) -> None:
    """Collect the tests in the unpacked source distribution. This uses the packages of the running environment."""
    shutil.unpack_archive(sdist, folder / "source")
    (source,) = (folder / "source").iterdir()
    words = ("-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "-o", "pythonpath=src client/src tests")
    print(run(sys.executable, *words, cwd=source, expected="collected").splitlines()[-1])


def main() -> int:
    """Build and check the distributions; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="robandit-package-") as name:
        folder = Path(name)
        os.environ |= {"ROBANDIT_CACHE_DIR": str(folder / "kernels"), "PIPX_HOME": str(folder / "pipx")}
        venv.create(folder / "tools", with_pip=True)
        tools = folder / "tools" / "bin"
        packages = ("build", "twine", "pipx")
        run(tools / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, cwd=folder)
        shutil.rmtree(DIST, ignore_errors=True)
        _, client = build(tools, folder, ROOT / "client", "robandit_client")
        sdist, wheel = build(tools, folder, ROOT, "robandit")
        check_sdist(sdist, folder)
        with installed(wheel, client, folder) as programs:
            check_plain(programs, wheel, folder)
        install_client(client, folder)
        extras = (("plot", check_plot), ("serve", check_serve), ("cluster", check_cluster))
        for extra, check in extras:
            with installed(wheel, client, folder, extra) as programs:
                check(programs, folder)
        beside = ("--pip-args", f"--find-links {DIST.as_uri()}")  # there is the client
        check_report(tools / "pipx", "run", *beside, "--spec", wheel, "robandit", folder=folder)
    print("ok: both packages build, install into empty environments and work")
    return 0


if __name__ == "__main__":
    sys.exit(main())

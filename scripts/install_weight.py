"""Install Robandit into an empty environment and print how much disk space each package takes.

::

    python scripts/install_weight.py                         # the library and the command
    python scripts/install_weight.py --extras plot,cluster   # with extras
    python scripts/install_weight.py --constraints constraints.txt

The environment is made in a temporary folder and removed afterwards. Sizes are what ``du`` counts: whole blocks of the file system.
Byte code is listed separately, because ``pip install --no-compile`` leaves it out. pip itself is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OF_THE_ENVIRONMENT = ("pip", "setuptools")  # made by venv, not by the installation
MEGABYTE = 2**20

# The methods that a live bandit needs. Prints the packages that are then imported, as names of top-level modules.
LIVE = """
import sys, tempfile
import robandit as rb
bandit = rb.Bandit(["a", "b"], rb.UCB1())
bandit.update(bandit.select(), 1.0)
bandit.reward(bandit.decide(), 1.0)
with tempfile.NamedTemporaryFile() as file:
    bandit.save(file.name)
    rb.Bandit.load(file.name)
print(*{name.partition(".")[0] for name in sys.modules})
"""


class Weight(NamedTuple):
    """The size of a package in bytes."""

    package: str
    plain: int
    byte_code: int
    modules: frozenset[str]
    """The names under which it is imported."""

    @property
    def total(self) -> int:
        """Byte code included."""
        return self.plain + self.byte_code


def weights(site_packages: Path) -> list[Weight]:
    """Return the size of each package in this folder, largest first."""
    rows = []
    for package in distributions(path=[str(site_packages)]):
        name = package.metadata["Name"]
        if name in OF_THE_ENVIRONMENT:
            continue
        sizes = {False: 0, True: 0}
        for file in package.files or []:
            path = Path(str(file.locate()))
            if path.exists():
                sizes[path.suffix == ".pyc"] += size(path)
        modules = frozenset(file.parts[0].removesuffix(".py") for file in package.files or [])
        rows.append(Weight(f"{name} {package.version}", sizes[False], sizes[True], modules))
    return sorted(rows, key=lambda row: -row.total)


def size(path: Path) -> int:
    """Return the disk space of a file in bytes."""
    stat = path.stat()
    return 512 * stat.st_blocks if hasattr(stat, "st_blocks") else stat.st_size  # Windows has no blocks


def table(rows: Iterable[Weight]) -> str:
    """Format sizes in MB."""
    lines = [f"{'package':<28} {'MB':>6} {'of it byte code':>16}"]
    lines += [f"{row.package:<28} {row.total / MEGABYTE:>6.1f} {row.byte_code / MEGABYTE:>16.1f}" for row in rows]
    return "\n".join(lines)


def summed(name: str, rows: Iterable[Weight]) -> Weight:
    """Return one row for several packages."""
    rows = list(rows)
    return Weight(name, sum(row.plain for row in rows), sum(row.byte_code for row in rows), frozenset())


def main() -> None:
    """Make the environment, install into it and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--extras", default="", help="extras to install, such as plot,cluster")
    parser.add_argument("--constraints", type=Path, help="a file of versions, such as constraints.txt")
    given = parser.parse_args()
    target = f"{ROOT}[{given.extras}]" if given.extras else str(ROOT)
    client = str(ROOT / "client")
    versions = ["--constraint", str(given.constraints.resolve())] if given.constraints else []
    # A checkout on the path would shadow the installed package.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    with tempfile.TemporaryDirectory(prefix="robandit-weight-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *versions,
            client,
            target,
        ]
        subprocess.run(install, check=True, cwd=folder, env=environment)
        where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"]
        site_packages = subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip()
        rows = weights(Path(site_packages))
        live = [str(python), "-c", LIVE]
        done = subprocess.run(live, check=True, capture_output=True, text=True, cwd=folder, env=environment)
        imported = set(done.stdout.split())
    print(table(rows))
    used = [row for row in rows if row.modules & imported]
    print(table([summed("all packages", rows), summed("imported by a live bandit", used)]))
    print("A live bandit imports", ", ".join(sorted(row.package.partition(" ")[0] for row in used)) + ".")


if __name__ == "__main__":
    main()

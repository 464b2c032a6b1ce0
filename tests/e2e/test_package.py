"""What is uploaded holds what users need and nothing else. `make package` also installs it."""

import ast
import os
import re
import runpy
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.version import Version

import robandit
import robandit_client
from robandit.cli import application

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

FOLDERS = ("src", "client", "tests", "docs", "examples", "benchmarks", "scripts", "deploy")
OTHERS = (
    ".dockerignore",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "README.md",
    "constraints-lowest.txt",
    "constraints.txt",
)

# Left behind by tests, tools and users' runs.
JUNK = (
    ".venv/bin/python",
    ".mypy_cache/3.11/cache.db",
    ".hypothesis/examples/a",
    "build/test-lowest/bin/python",
    "dist/robandit-0.0.1.tar.gz",
    "src/robandit/__pycache__/bandit.cpython-311.pyc",
    "tests/.pytest_cache/README.md",
    "tests/__pycache__/typed.pyc",
    "benchmarks/results.json",
    "deploy/secrets/robandit-password",
    "docs/_build/html/index.html",
    "robandit-report.html",
    "my-run/results/regret.parquet",
    "secret.csv",
)


def tracked(folder):
    """Files of a folder that are neither hidden nor caches."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not {p for p in path.relative_to(ROOT).parts if p.startswith(".") or p == "__pycache__"}:
            yield path.relative_to(ROOT)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Both files, built from a copy of this folder with junk in it, and the wheel that is built from the unpacked source."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "copy"
    hidden = (".gitignore", ".dockerignore")
    names = [name for name in os.listdir(ROOT) if not name.startswith(".") or name in hidden]
    paths = [Path(name) for name in names if (ROOT / name).is_file()]
    for name in FOLDERS:
        paths += tracked(ROOT / name)
    for path in paths:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, copy / path)
    for name in JUNK:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("junk")
    (sdist,) = SdistBuilder(str(copy)).build(directory=str(folder / "dist"), versions=["standard"])
    with tarfile.open(sdist) as files:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 and newer
        files.extractall(folder / "unpacked", **safely)
    (unpacked,) = (folder / "unpacked").iterdir()
    (wheel,) = WheelBuilder(str(unpacked)).build(directory=str(folder / "dist"), versions=["standard"])
    return unpacked, zipfile.ZipFile(wheel)


def test_the_wheel_is_the_library_whole_and_nothing_else(built):
    _, wheel = built
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == {path.relative_to("src").as_posix() for path in tracked(ROOT / "src" / "robandit")}
    assert {"robandit/py.typed", "robandit/recorded/flights.parquet"} <= names
    for folder in ("report/assets", "service/dashboard/assets"):
        assert any(name.startswith(f"robandit/{folder}/") for name in names)


def test_the_wheel_says_what_it_is(built):
    _, wheel = built
    about = f"robandit-{robandit.__version__}.dist-info"
    said = wheel.read(f"{about}/METADATA").decode()
    assert "License-Expression: MIT" in said
    assert "Requires-Python: >=3.11" in said
    assert "Description-Content-Type: text/markdown" in said
    assert f"{about}/licenses/LICENSE" in wheel.namelist()
    assert "robandit = robandit.cli:main" in wheel.read(f"{about}/entry_points.txt").decode()


def test_the_source_distribution_has_no_junk_and_all_that_its_tests_need(built):
    unpacked, _ = built
    assert [name for name in JUNK if (unpacked / name).exists()] == []
    for name in FOLDERS:
        missing = [str(path) for path in tracked(ROOT / name) if not (unpacked / path).exists()]
        assert [
            path
            for path in missing
            if not re.match(r"docs/_build|docs/reference/api/gen|benchmarks/res|deploy/secrets", path)
        ] == []
    for name in OTHERS:
        assert (unpacked / name).exists()


def test_the_client_is_a_small_package_of_its_own(tmp_path):
    (name,) = WheelBuilder(str(ROOT / "client")).build(directory=str(tmp_path), versions=["standard"])
    assert Path(name).stat().st_size < 200_000
    wheel = zipfile.ZipFile(name)
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    folder = ROOT / "client" / "src"
    assert names == {path.relative_to("client/src").as_posix() for path in tracked(folder / "robandit_client")}
    about = f"robandit_client-{robandit.__version__}.dist-info"
    said = wheel.read(f"{about}/METADATA").decode()
    assert "Requires-Python: >=3.9" in said
    assert "Requires-Dist" not in said
    assert wheel.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


def test_the_client_has_the_syntax_of_its_oldest_python():
    """`make package` runs it there, if the machine has that Python."""
    for path in (ROOT / "client" / "src").rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    with pytest.raises(SyntaxError):
        ast.parse("match 1:\n    case 1:\n        pass", feature_version=(3, 9))


def test_the_version_is_the_same_everywhere():
    assert robandit_client.__version__ == robandit.__version__
    assert f"robandit-client=={robandit.__version__}" in PROJECT["dependencies"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited[1] == robandit.__version__
    changes = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    released = [each for each in changes if each != "Unreleased"]
    assert released[0].rstrip(",") == robandit.__version__


def test_the_lowest_versions_that_are_tested_are_those_that_are_declared():
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    declared = {}
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *extras["serve"], *extras["plot"]]:
        requirement = Requirement(text)
        if requirement.name == "robandit-client":
            continue
        (declared[requirement.name],) = [s.version for s in requirement.specifier if s.operator == ">="]
    assert declared
    assert {name: Version(tested[name]) for name in declared} == {n: Version(v) for n, v in declared.items()}


def test_the_documentation_has_the_help_of_every_command():
    def walk(app, *words):
        for name in app:
            if not name.startswith("-"):
                yield " ".join((*words, name))
                yield from walk(app[name], *words, name)

    page = runpy.run_path(str(ROOT / "docs" / "conf.py"))["command_line"]()
    headings = re.findall(r"^#+ (robandit .*)$", page, re.MULTILINE)
    assert sorted(headings) == sorted(walk(application(), "robandit"))
    usages = re.findall(r"^Usage: (robandit [a-z-]+(?: [a-z-]+)?)", page, re.MULTILINE)
    assert set(headings) <= set(usages)

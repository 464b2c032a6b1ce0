"""Adding a policy is one file and one line: done here in a copy of the package, with the index policy of the how-to page."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "add-a-policy.md"
LINE = "from robandit.policies.classic.square_root_ucb import SquareRootUCB as SquareRootUCB\n"
SHARED = [
    "tests/checks/test_checks.py",
    "tests/policies/test_table.py",
    "tests/experiments/test_notation.py",
]
OWN = ["tests/policies/test_admission.py", "tests/policies/classic/test_square_root_ucb.py"]
OWN_TEST = """
import pytest

import robandit as rb


@pytest.mark.independent("SquareRootUCB")
def test_indices():
    bandit = rb.Bandit(["a", "b"], rb.SquareRootUCB(width=2.0))
    bandit.update_many(["a", "b", "a"], [1.0, 2.0, 4.0])
    assert [row["index"] for row in bandit.estimates()] == [2.5 + 2.0 / 2.0**0.5, 4.0]
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository's source, tests and table, with the new policy."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("src", "tests", "docs/policies"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "golden"))
    shutil.copy(ROOT / "pyproject.toml", root)
    code = re.search(r"```python\n(.*?class SquareRootUCB.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    facts = 'row_length = 2\n    about = Facts(citation="Somebody 2026")'
    code = "from robandit.policies.facts import Facts\n" + code.replace("row_length = 2", facts, 1)
    (root / "src/robandit/policies/classic/square_root_ucb.py").write_text(code, encoding="utf-8")
    package = root / "src/robandit/policies/__init__.py"
    package.write_text(package.read_text(encoding="utf-8").replace("from robandit", LINE + "from robandit", 1))
    (root / "tests/policies/classic/test_square_root_ucb.py").write_text(OWN_TEST, encoding="utf-8")
    python(root, "docs/policies/table.py")
    return root


def python(root, *words):
    """Run Python in the copy and return what it prints."""
    # The next process loads the byte code that this one stores.
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": ""}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the plugins take a second to import
    done = subprocess.run(
        [sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_names_and_tables_know_it(copy):
    code = """
import robandit as rb
from robandit.experiments.notation import policies_from
policy = rb.SquareRootUCB(width=2.0)
assert rb.SquareRootUCB() in rb.policies.all_policies()
assert "SquareRootUCB" in rb.__all__
assert rb.Policy.from_dict({"policy": "SquareRootUCB", "width": 2.0}) == policy
assert policies_from("SquareRootUCB(width=2.0)") == [policy]
print(rb.__file__, policy.name)
"""
    assert python(copy, "-c", code).split() == [str(copy / "src/robandit/__init__.py"), "SquareRootUCB(width=2.0)"]
    assert "| `SquareRootUCB(width=1.0)` |" in (copy / "docs/policies/table.md").read_text(encoding="utf-8")


def test_the_shared_tests_and_its_own_pass(copy):
    names = "SquareRoot or page or printed or test_admission or test_square_root or reads_back_from_its_repr"
    passed = python(copy, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "-rA", "-k", names, *SHARED, *OWN)
    assert all(f"PASSED {path}" in passed for path in [*SHARED, *OWN])

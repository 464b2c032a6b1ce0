"""The documentation's Python runs and prints what the pages show, and the checker detects errors. `make docs` runs the commands."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CHECK = runpy.run_path(str(DOCS / "check.py"), run_name="check")


def test_pages_run():
    """Runs in a separate process, because a page registers laws."""
    done = subprocess.run([sys.executable, DOCS / "check.py", "python"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {line.split(":")[0] for line in done.stdout.splitlines()}
    assert names >= {"tutorial.md", "index.md", "how-to/add-a-law.md", "explanation/guarantees.md"}


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```python\nx = 1\n```\n\n```pycon\n>>> x\n2\n```\n", "Got"),
        ("```{note}\n```\n\n```pycon\n>>> 1\n2\n```\n", "Got"),
    ],
)
def test_a_wrong_session_is_detected(tmp_path, body, what):
    page = tmp_path / "page.md"
    page.write_text(body)
    with pytest.raises(AssertionError, match=what):
        CHECK["run_python"](page)


@pytest.mark.skipif(os.name == "nt", reason="the commands are a shell's")
def test_a_wrong_command_is_detected(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one two\none ...\n$ echo two\ntwo\n```\n")
    assert CHECK["run_console"](page) == 2
    page.write_text("```console\n$ echo one\ntwo\n```\n")
    with pytest.raises(AssertionError, match="printed"):
        CHECK["run_console"](page)
    page.write_text("```console\n$ exit 3\n```\n")
    with pytest.raises(AssertionError, match="exit code 3"):
        CHECK["run_console"](page)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_wrong_javascript_is_detected(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```js\nconst x = 1;\n```\n\n```json\n{}\n```\n\n```js\nif (x !== 1) throw new Error();\n```\n")
    assert CHECK["run_js"](page) == 2
    page.write_text("Text\n\n```js\nconst x = 1;\n\nthrow new Error('no ' + x);\n```\n")
    with pytest.raises(AssertionError, match=r"(?s)exit code 1: .*page\.mjs:6.*Error: no 1"):
        CHECK["run_js"](page)
    page.write_text("```python\n1\n```\n")
    assert CHECK["run_js"](page) == 0


def test_a_broken_link_is_detected(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="b.html#there"></a><a href="#here"></a><a href="https://x"></a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="there"></h1><a href="a.html#gone"></a><img src="none.svg">')
    broken, followed = CHECK["broken_links"](tmp_path)
    assert followed == 4
    assert broken == ["b.html links to a.html#gone", "b.html links to none.svg"]

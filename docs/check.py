"""Run the code and commands on the pages, and follow the links; `make docs` does both after each build.

::

    python docs/check.py                   # Python, JavaScript and commands of all pages
    python docs/check.py docs/tutorial.md  # Python, JavaScript and commands of one page
    python docs/check.py python            # only Python, of all pages
    python docs/check.py links             # links inside docs/_build/html, and external links if there is a network

The Python blocks (``python``) and sessions (``pycon``) of a page run in order, in one namespace and an empty folder; pages that
read an experiment get a small one. In a ``console`` block, a line with ``$`` is a command and the lines after it are its output;
``...`` matches any text. A block with a name after its language, such as ``toml caps.toml``, is a file for the commands after it.
The JavaScript blocks (``js``) of a page are one ES module, which Node runs. Without Node, they are skipped.
"""

from __future__ import annotations

import doctest
import linecache
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

DOCS = Path(__file__).parent
SITE = DOCS / "_build" / "html"
# Pages whose snippets need several machines or a server, or have their own test.
TESTED_ELSEWHERE = {
    "how-to/client.md": "tests/e2e/test_client_page.py",
    "how-to/cluster.md": "tests/e2e/test_cluster_page.py",
    "how-to/migrate-from-0.1.md": "tests/e2e/test_migration_page.py",
    "how-to/recorded-rewards.md": "tests/e2e/test_documents.py",
    "how-to/move-and-archive.md": "tests/service/test_archive_command.py",
    "how-to/serve.md": "tests/e2e/test_serve_page.py",
    "service-in-five-minutes.md": "tests/e2e/test_service_tutorial.py",
}
# Pages that read an experiment and its run folder.
EXPERIMENT = ("reference/spec.md", "reference/run-folder.md", "reference/results.md")
SPEC = """
name = "small"
replications = 4
horizons = [200]
problems = ["negated_pareto(means=[-1.0, -1.5], tail=1.8)"]
policies = ["UCB1", "EpsilonGreedy"]
"""
RUN = ("python", "pycon", "js", "console")
SECONDS = 120  # for the JavaScript of a page
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pages() -> list[Path]:
    """Return the pages with something to run."""
    paths = [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]
    untested = [path for path in paths if path.relative_to(DOCS).as_posix() not in TESTED_ELSEWHERE]
    return [path for path in untested if any(kind in RUN for kind, _, _ in blocks(path))]


def blocks(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield the fenced blocks of a page: language, text, and the line where the text begins."""
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(r"^```([^`\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield match[1], match[2], text.count("\n", 0, match.start(2)) + 1


def prepare() -> None:
    """Write a small experiment into the current folder and run it."""
    from robandit.experiments import parse_spec, run

    Path("experiment.toml").write_text(SPEC, encoding="utf-8")
    for folder in ("experiment", "my-run"):
        run(parse_spec(SPEC).plan(), folder).store.write_results()


def run_python(path: Path) -> int:
    """Run a page's Python; returns the number of blocks. Raises AssertionError with the difference."""
    names: dict[str, Any] = {"__name__": "__page__"}
    done = 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        if path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix() in EXPERIMENT:
            prepare()
        for kind, text, line in blocks(path):
            if kind == "python":
                source, name = "\n" * (line - 1) + text, f"{path}:{line}"
                linecache.cache[name] = (0, None, source.splitlines(keepends=True), name)  # hooks are compiled from it
                with redirect_stdout(StringIO()):
                    exec(compile(source, name, "exec", dont_inherit=True), names)
            elif kind == "pycon":
                test = doctest.DocTestParser().get_doctest(text, names, path.name, str(path), line - 1)
                output = StringIO()
                runner = doctest.DocTestRunner(optionflags=FLAGS)
                runner.run(test, out=output.write, clear_globs=False)
                assert runner.failures == 0, output.getvalue()
                names.update(test.globs)
            else:
                continue
            done += 1
    return done


def javascript(path: Path) -> str:
    """Return a page's JavaScript as one module, with the line numbers of the page."""
    text = ""
    for kind, block, line in blocks(path):
        if kind == "js":
            text += "\n" * (line - 1 - text.count("\n")) + block
    return text


def run_js(path: Path) -> int:
    """Run a page's JavaScript; returns the number of blocks. Raises AssertionError if it fails or takes too long."""
    text = javascript(path)
    if not text:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, f"{path.stem}.mjs")
        program.write_text(text, encoding="utf-8")
        try:
            ran = subprocess.run(
                ["node", program], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{path}: the JavaScript did not end within {SECONDS} s") from None
        assert ran.returncode == 0, f"{path}: the JavaScript failed with exit code {ran.returncode}: {ran.stderr}"
    return sum(kind == "js" for kind, _, _ in blocks(path))


def run_console(path: Path) -> int:
    """Run a page's commands; returns their number. Raises AssertionError if the output differs from the page."""
    done = 0
    checker = doctest.OutputChecker()
    environment = os.environ | {
        "COLUMNS": "80",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with tempfile.TemporaryDirectory() as folder:
        for kind, text, line in blocks(path):
            if " " in kind:
                Path(folder, kind.split()[1]).write_text(text, encoding="utf-8")
            if kind != "console":
                continue
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                ran = subprocess.run(
                    command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
                )
                assert ran.returncode == 0, (
                    f"{path}:{line}: {command} failed with exit code {ran.returncode}: {ran.stderr}"
                )
                same = checker.check_output(expected, ran.stdout, FLAGS)
                assert same, f"{path}:{line}: {command} printed\n{ran.stdout}\ninstead of\n{expected}"
                done += 1
    return done


class Anchors(HTMLParser):
    """The ids and the links of an HTML page."""

    def __init__(self, text: str) -> None:
        """Read the page."""
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect ids and links; the parser calls this method."""
        for name, value in attrs:
            if value and name == "id":
                self.ids.add(value)
            elif value and ((tag, name) in (("a", "href"), ("img", "src"))):
                self.links.add(value)


def broken_links(site: Path) -> tuple[list[str], int]:
    """Return the broken links inside the site, and the number of links followed."""
    pages = {path.resolve(): Anchors(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken, followed = [], 0
    for path, page in pages.items():
        for link in sorted(page.links):
            if re.match(r"[a-z]+:|//", link):
                continue
            followed += 1
            file, _, anchor = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            ids = pages[target].ids if target in pages else None
            if not target.exists() or (anchor and ids is not None and unquote(anchor) not in ids):
                broken.append(f"{path.relative_to(site.resolve())} links to {link}")
    return broken, followed


def check_links() -> int:
    """Check all links; returns the exit code."""
    broken, followed = broken_links(SITE)
    for line in broken:
        print(line)
    print(f"internal links: {followed:,} followed, {len(broken)} broken")
    if broken:
        return 1
    try:
        socket.create_connection(("example.org", 443), timeout=5).close()
    except OSError as error:
        print(f"external links: NOT checked, no network ({error})")
        return 0
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "linkcheck", str(DOCS), str(DOCS / "_build" / "linkcheck")]
    done = subprocess.run(command, check=False).returncode
    print(f"external links: {'ok' if done == 0 else 'some are broken, see above'}")
    return done


def main(words: list[str]) -> int:
    """Check pages or links, as the module's docstring describes; returns the exit code."""
    if words == ["links"]:
        return check_links()
    python_only = words == ["python"]
    for path in pages() if python_only or not words else [Path(word).resolve() for word in words]:
        try:
            commands = 0 if python_only else run_console(path)
            scripts = run_js(path) if shutil.which("node") and not python_only else 0
            done = f"{run_python(path)} blocks of Python, {scripts} of JavaScript, {commands} commands"
            print(f"{path.relative_to(DOCS)}: {done}", flush=True)
        except AssertionError as error:
            print(error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

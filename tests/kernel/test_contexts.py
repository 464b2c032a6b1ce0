"""Functions are compiled wherever people define them: scripts, notebooks, doctests, other functions."""

from __future__ import annotations

import doctest
import os
import sys
from pathlib import Path

import pytest

from helpers.running import SOURCE, imported, run
from robandit.errors import KernelError
from robandit.kernel import compiled

SCRIPT = """
from robandit.kernel import compiled

K = 2.0

def hook(x):
    return K * x

def make(k):
    def inner(x):
        return hook(x) + k
    return inner

if __name__ == "__main__":
    print(compiled(hook, label="hook", args=(1.0,))(3.0), compiled(make(0.5), label="inner", args=(1.0,))(3.0))
"""


def test_the_main_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert run(script, cache=tmp_path / "cache")[0] == "6.0 6.5"
    # As a module it is the same text, hence the same compiled code.
    assert run("-m", "script", cache=tmp_path / "cache", folder=tmp_path) == ("6.0 6.5", "")


def test_a_command_line_string(tmp_path):
    code = (
        "from robandit.kernel import compiled\n"
        "from robandit.errors import KernelError\n"
        "def hook(x):\n    return 2.0 * x\n"
        "try:\n    print(compiled(hook, label='hook', args=(1.0,))(3.0))\n"
        "except KernelError as error:\n    print(error)\n"
    )
    out, _ = run("-c", code, cache=tmp_path / "cache")
    # From Python 3.13 on the string can be read, and it works.
    assert out == "6.0" or "define it in a file or a notebook cell" in out


def test_source_that_was_executed_from_a_string_is_rejected():
    space: dict[str, object] = {}
    exec("def hook(x):\n    return x\n", space)
    with pytest.raises(KernelError, match=r"source of hook cannot be read .* define it in a file or a notebook cell"):
        compiled(space["hook"], label="hook", args=(1.0,))


DOCTEST = """
>>> from robandit.kernel import compiled
>>> K = 5.0
>>> def hook(x):
...     return K * x
>>> compiled(hook, label="doctest", args=(1.0,))(2.0)
10.0
>>> K = 6.0
>>> compiled(hook, label="doctest", args=(1.0,))(2.0)
12.0
>>> def hook(x):
...     return K + x
>>> compiled(hook, label="doctest", args=(1.0,))(2.0)
8.0
"""


def test_a_doctest():
    test = doctest.DocTestParser().get_doctest(DOCTEST, {}, "example", "example.py", 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_functions_inside_functions():
    def make(k):
        def helper(x):
            return k + x

        def hook(x):
            return 2.0 * helper(x)

        return hook

    hooks = [make(1.0), make(10.0)]
    results = [compiled(hook, label="closure", args=(1.0,))(1.0) for hook in hooks]
    assert results == [4.0, 22.0]


def test_a_package_in_a_zip_file(tmp_path, monkeypatch):
    import zipfile

    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("kernel_test_zipped.py", "K = 3.0\ndef hook(x):\n    return K * x\n")
    monkeypatch.syspath_prepend(tmp_path / "packed.zip")
    import kernel_test_zipped

    assert compiled(kernel_test_zipped.hook, label="zipped", args=(1.0,))(2.0) == 6.0


def test_a_file_with_names_that_are_not_ascii(tmp_path):
    module = imported(tmp_path, "λ = 3.0\ndef größe(ε):\n    return λ * ε\n")
    assert compiled(module.größe, label="Größe", args=(1.0,))(2.0) == 6.0


def test_a_hook_that_the_test_runner_rewrote_is_rejected_with_the_reason():
    def hook(x):
        assert x > 0.0
        return x

    with pytest.raises(KernelError, match="pytest rewrites assert"):
        compiled(hook, label="asserting", args=(1.0,))


CELLS = [
    "import sys, io\nfrom robandit.kernel import compiled\nK = 2.0",
    "def hook(x):\n    return K * x",
    "compiled(hook, label='cell', args=(1.0,))(3.0)",
    "K = 5.0",
    "compiled(hook, label='cell', args=(1.0,))(3.0)",
    "def hook(x):\n    return K + x",
    "compiled(hook, label='cell', args=(1.0,))(3.0)",
]


# The client is not what is tested, and its dependencies warn about one another.
@pytest.mark.filterwarnings("ignore")
def test_a_notebook(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbformat

    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PATH", str(Path(sys.prefix) / "share" / "jupyter"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))

    def play(cells: list[str]) -> list[str]:
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
        outputs = [output for cell in book.cells for output in cell.outputs]
        assert all(output.output_type != "error" for output in outputs)
        return [output["data"]["text/plain"] for output in outputs if output.output_type == "execute_result"]

    assert play(CELLS) == ["6.0", "15.0", "8.0"]
    kept = sorted(path.name for path in (tmp_path / "cache").glob("*.kernel"))
    assert len(kept) == 3
    assert play([CELLS[0].replace("2.0", "5.0"), *CELLS[1:3]]) == ["15.0"]  # a new process, the second text
    assert sorted(path.name for path in (tmp_path / "cache").glob("*.kernel")) == kept

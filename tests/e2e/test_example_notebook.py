"""The example notebook runs, and each of its cells displays a table or a figure instead of a wall of fields."""

import os
import sys
from pathlib import Path

import pytest

from helpers.amount import amount

ROOT = Path(__file__).parents[2]


# The client is not what is tested, and its dependencies warn about one another.
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_displays_tables_and_figures(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PATH", str(Path(sys.prefix) / "share" / "jupyter"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    book = nbformat.read(ROOT / "examples" / "heavy_tails.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "outputs are not stored: they would become stale"
    for cell in book.cells:
        cell.source = amount(cell.source.replace("replications=50", "replications=10"), cell.source)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    plotted = displayed = 0
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type in ("execute_result", "stream"), output
            if output.output_type == "stream":
                assert output.name == "stderr", output.text  # "compiling ..."
                continue
            assert len(output.data["text/plain"]) < 500
            plotted += "image/png" in output.data
            displayed += "text/html" in output.data
            assert "image/png" in output.data or not cell.source.endswith(".plot()")
    assert plotted == 4
    assert displayed >= 5

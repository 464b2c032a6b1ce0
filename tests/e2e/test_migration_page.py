"""docs/how-to/migrate-from-0.1.md: its code runs against a real server, and its statements hold for a bandit of 0.1."""

import runpy
import shutil
from pathlib import Path

import polars as pl

from helpers.serving import Server

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "migrate-from-0.1.md"
CHECK = runpy.run_path(str(ROOT / "docs" / "check.py"), run_name="check")


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    with Server(tmp_path / "robandit.db", authenticate=True) as server:
        monkeypatch.setenv("URL", server.url)
        monkeypatch.setenv("KEY", server.key)
        assert CHECK["run_python"](PAGE) == 4
        experiment = server.call("GET", "/v1/experiments/region").json
    # Three rewards of the live bandits, and one of the experiment itself.
    assert experiment["counts"] == {"decisions": 4, "rewards": 4, "late": 0, "expired": 0, "open": 0}
    assert sum(arm["pulls"] for arm in experiment["arms"]) == 4


def test_the_page_continues_a_run_folder_of_0_1(tmp_path, monkeypatch):
    folder = shutil.copytree(ROOT / "tests" / "golden" / "run.format1", tmp_path / "my-run")
    part = min((folder / "parts").iterdir())
    before = pl.read_parquet(part)
    part.unlink()
    monkeypatch.chdir(tmp_path)
    (snippet,) = (text for kind, text, _ in CHECK["blocks"](PAGE) if kind == "py" and "Store.open" in text)
    exec(snippet, {})
    assert pl.read_parquet(part).equals(before)

"""The map of the architecture is that of the source."""

import ast
import re
import runpy
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "robandit"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
MAP = runpy.run_path(str(ROOT / "docs" / "figures" / "architecture.py"), run_name="map")

pytestmark = pytest.mark.xdist_group("architecture")  # one process reads the imports


@cache
def imports():
    return MAP["imports"](MAP["components"]())


def test_the_list_of_components_is_up_to_date():
    """`python docs/figures/architecture.py` writes the list and the picture."""
    graph, layers = imports(), MAP["layers"]()
    assert set(graph) == {component for layer in layers for component in layer}
    text = MAP["as_text"](graph, layers)
    assert (ROOT / "docs" / "figures" / "architecture.txt").read_text(encoding="utf-8") == text


def test_the_picture_has_every_direct_import():
    """The names of the arrows are in the picture's metadata."""
    arrows = MAP["direct"](imports())
    listed = "; ".join(f"{component} -> {', '.join(sorted(to))}" for component, to in sorted(arrows.items()) if to)
    assert listed.replace(">", "&gt;") in (ROOT / "docs" / "figures" / "architecture.svg").read_text(encoding="utf-8")


def test_every_stop_of_the_walks_exists():
    stops = re.findall(r"`([\w/]+\.py)`, `(\w+)`", PAGE)
    assert len(stops) > 30
    for file, name in stops:
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        defined = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
        assert name in defined, f"{file} has no {name}"
    for file in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert (PACKAGE / file).exists() or (ROOT / file).exists(), file


def test_a_new_import_is_noticed(tmp_path):
    """The negative control: one more import changes the map."""
    components = MAP["components"]()
    file = tmp_path / "extra.py"
    file.write_text("def late():\n    from robandit.cli import main\n")
    components["errors"] = [*components["errors"], file]
    assert MAP["imports"](components)["errors"] - imports()["errors"] == {"cli"}

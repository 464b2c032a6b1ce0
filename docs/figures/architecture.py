"""The components of the package and the direction of their imports, read from the source.

Writes architecture.svg (the picture) and architecture.txt (each component with its purpose and its imports).
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "robandit"
SIDE = {
    "service": 0.85,
    "decisions": 1.04,
    "storage": 1.04,
    "client": 1.04,
    "validation": 0.5,
    "report": 0.62,
    "checks": 0.1,
    "verify": 0.4,
    "diagnostics": 0.6,
}  # where a component stands, if not where its layer would put it


def components() -> dict[str, list[Path]]:
    """Return the files of each component: a folder or a file directly below the package."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.iterdir()):
        if path.is_dir() and (path / "__init__.py").exists():
            found[path.name] = sorted(path.rglob("*.py"))
        elif path.suffix == ".py" and not path.stem.startswith("__"):
            found[path.stem] = [path]
    return found


def imports(known: dict[str, list[Path]]) -> dict[str, set[str]]:
    """Return the components that each component imports, inside functions too; imports for type checkers do not count."""
    return {
        component: set().union(*(_imported(path, known) for path in files)) - {component}
        for component, files in known.items()
    }


def _imported(path: Path, known: dict[str, list[Path]]) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("robandit.") and name.split(".")[1] in known}


def layers() -> list[list[str]]:
    """Return the components from the top layer to the bottom one, from import-linter's contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return [re.findall(r"robandit\.(\w+)", layer) for layer in contracts[0]["layers"]]


def purpose(component: str) -> str:
    """Return the first sentence of a component's docstring."""
    path = PACKAGE / component / "__init__.py"
    text = ast.get_docstring(
        ast.parse((path if path.exists() else PACKAGE / f"{component}.py").read_text(encoding="utf-8"))
    )
    return re.split(r"(?<=[.!?])\s", (text or "").replace("\n", " "), maxsplit=1)[0].rstrip(".")


def direct(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports that no longer path implies: the arrows worth drawing."""
    reach: dict[str, set[str]] = {}

    def reached(component: str) -> set[str]:
        if component not in reach:
            reach[component] = graph[component].union(*(reached(other) for other in graph[component]))
        return reach[component]

    return {
        component: {other for other in found if not any(other in reached(third) for third in found - {other})}
        for component, found in graph.items()
    }


def as_text(graph: dict[str, set[str]], order: list[list[str]]) -> str:
    """Return the map as text: a paragraph per layer."""
    paragraphs = []
    for layer in order:
        lines = []
        for component in layer:
            below = [other for row in order for other in row if other in graph[component]]
            for text in (purpose(component), f"imports {', '.join(below) or 'nothing'}"):
                indent = f"{component:<12} " if text == purpose(component) else " " * 13
                lines += textwrap.wrap(text, 84, initial_indent=indent, subsequent_indent=" " * 15)
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs) + "\n"


def draw(graph: dict[str, set[str]], order: list[list[str]]) -> None:
    """Draw a box per component, a row per layer, and the direct imports as arrows."""
    import matplotlib.pyplot as plt
    from drawing import BLUE, GREY, save
    from matplotlib.patches import FancyBboxPatch

    figure, axes = plt.subplots(figsize=(9.2, 0.78 * len(order)))
    place = {
        component: ((j + 0.5) / len(layer), len(order) - i)
        for i, layer in enumerate(order)
        for j, component in enumerate(layer)
    }
    place |= {component: (x, place[component][1]) for component, x in SIDE.items()}
    width, height = 0.14, 0.46
    for component, (x, y) in place.items():
        box = FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0.004",
            facecolor="white",
            edgecolor=BLUE,
            zorder=2,
        )
        axes.add_patch(box)
        axes.text(x, y, component, ha="center", va="center", fontsize=9, family="monospace", zorder=3)
    for component, targets in direct(graph).items():
        for other in sorted(targets):
            (x, y), (x2, y2) = place[component], place[other]
            axes.annotate(
                "",
                (x2, y2 + height / 2),
                (x, y - height / 2),
                arrowprops={"arrowstyle": "->", "color": GREY, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 1},
                zorder=1,
            )
    axes.set_xlim(0, 1.12)
    axes.set_ylim(0.5, len(order) + 0.5)
    axes.axis("off")
    arrows = "; ".join(
        f"{component} -> {', '.join(sorted(to))}" for component, to in sorted(direct(graph).items()) if to
    )
    save(figure, __file__, Description=arrows)
    plt.close(figure)


def main() -> None:
    """Write the text and the picture."""
    graph, order = imports(components()), layers()
    missing = set(graph) - {component for layer in order for component in layer}
    assert not missing, f"components without a layer in pyproject.toml: {', '.join(sorted(missing))}"
    Path(__file__).with_suffix(".txt").write_text(as_text(graph, order), encoding="utf-8")
    draw(graph, order)


if __name__ == "__main__":
    main()

"""What the figures have in common: colours, fonts, and files that are the same bytes at every build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "robandit",  # names inside the file come from it, not from chance
        "svg.fonttype": "path",  # looks the same wherever it is read
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "savefig.bbox": "tight",
    }
)

# Told apart by most colour-blind people (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#777777"


def say(lines: list[str], script: str) -> None:
    """Print what the figure measured, and write it beside its script, for the pages to include."""
    print("\n".join(lines))
    Path(script).with_suffix(".txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def save(figure: Any, script: str) -> None:
    """Write the figure beside its script, without a date."""
    path = Path(script).with_suffix(".svg")
    figure.savefig(path, metadata={"Date": None})  # on white: readable on a dark page too
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
    print(f"drawn: {path.name}, {path.stat().st_size // 1024} KiB")

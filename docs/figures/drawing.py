"""Shared settings of the figures: colours, fonts, and reproducible files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "robandit",  # reproducible ids inside the file
        "svg.fonttype": "path",  # no fonts needed by the reader
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

# Safe for most colour-blind readers (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#777777"


def write_values(lines: list[str], script: str) -> None:
    """Print the measured values, and write them beside the script, where pages quote them."""
    print("\n".join(lines))
    Path(script).with_suffix(".txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def save(figure: Any, script: str, **metadata: str) -> None:
    """Write the figure beside its script, without a date, so that the bytes are reproducible."""
    path = Path(script).with_suffix(".svg")
    figure.savefig(path, metadata={"Date": None, **metadata})  # the white background keeps it readable on dark pages
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
    print(f"drawn: {path.name}, {path.stat().st_size // 1024} KiB")

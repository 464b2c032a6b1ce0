"""Settings and output of static figures. The bytes do not depend on the user's settings."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, which remain distinct with colour blindness. Grey replaces yellow, too faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#777777")
DASHES: tuple[Any, ...] = (
    *("-", "--", "-.", ":"),
    *((0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1, 1, 1)), (0, (1, 2.5))),
)
SETTINGS: dict[Any, Any] = {
    "font.size": 7,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,  # embed fonts as TrueType; journals reject Type 3
    "svg.fonttype": "none",  # keep text as text
    "svg.hashsalt": "robandit",  # without it, identifiers in the file are random
}


@contextmanager
def settings(others: dict[Any, Any] | None = None) -> Iterator[None]:
    """Use Matplotlib's defaults, `SETTINGS` and ``others``; restore the user's settings afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS | (others or {}))
        yield


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure with one panel; sizes are in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def rendered(figure: Figure, kind: Literal["pdf", "svg"], **options: Any) -> bytes:
    """Return the content of the file of a figure, without a date; ``options`` are passed to savefig."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata={"CreationDate" if kind == "pdf" else "Date": None}, **options)
    return buffer.getvalue()


def plain_text(label: str) -> str:
    """Escape dollar signs, which would start a formula."""
    return label.replace("$", r"\$")

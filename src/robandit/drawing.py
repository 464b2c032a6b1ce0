"""Static figures: settings, curves of regret, and output. They do not depend on the user's settings of Matplotlib."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from robandit.errors import InvalidInput

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
NOTEBOOK: dict[Any, Any] = {
    "font.size": 9,
    "axes.labelsize": 9.5,
    "lines.linewidth": 1.5,
}  # figures that `plot` returns
LINES = 8  # lines per figure, because more are hard to distinguish


def check_can_draw() -> None:
    """Raise `InvalidInput` unless Matplotlib is installed."""
    if find_spec("matplotlib") is None:
        raise InvalidInput('figures need Matplotlib, which is not installed: pip install "robandit[plot]"')


@contextmanager
def settings(others: dict[Any, Any] | None = None) -> Iterator[None]:
    """Use Matplotlib's defaults, `SETTINGS` and ``others``; restore the user's settings afterwards."""
    check_can_draw()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS | (others or {}))
        yield


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure with one panel; sizes are in inches."""
    figure = empty_figure(width, height)
    return figure, figure.add_subplot()


def empty_figure(width: float, height: float) -> Figure:
    """Return a figure without panels. It belongs to its caller, not to pyplot, and a notebook displays it."""
    figure: Figure = _figure_type()(figsize=(width, height), layout="constrained")
    return figure


@cache
def _figure_type() -> Any:
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that a notebook displays even if nothing has imported pyplot."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=120)
            return buffer.getvalue()

    return NotebookFigure


def laid_out(figure: Figure) -> Figure:
    """Return the figure with all ticks and texts made, so that the settings in force now also hold when it is displayed."""
    figure.draw_without_rendering()
    return figure


def logarithmic(axes: Axes) -> None:
    """Make both axes logarithmic, with numbers only at powers of ten: others would overlap. Without data, say so."""
    from matplotlib.ticker import NullFormatter

    if not any(np.size(line.get_xdata()) for line in axes.get_lines()):
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())


class Curve(NamedTuple):
    """The regret of one policy over time: the median, and the 5 % and 95 % quantiles."""

    label: str
    t: Any
    median: Any
    low: Any
    high: Any


def draw_regret(figure: Figure, axes: Axes, curves: Sequence[Curve], title: str) -> None:
    """Draw at most `LINES` curves with their bands on logarithmic axes, with a legend below."""
    labels = [plain_text(curve.label) for curve in curves]
    columns = legend_columns(labels)
    positive: list[float] = []
    negative = any(bool((curve.low < 0.0).any()) for curve in curves)  # realised regret may be, and needs a linear axis
    for i, ((_, t, median, low, high), label) in enumerate(zip(curves, labels, strict=True)):
        ends = np.concatenate([median, low, high])
        positive += ends[ends > 0.0].tolist()
        name = f"{label} (median 0)" if median[-1] == 0.0 else label
        line = np.where((median > 0.0) | negative, median, np.nan)  # the line starts at its first positive value
        axes.plot(t, line, color=COLOURS[i], linestyle=DASHES[i], label=name)
        # A band that reaches zero is cut off at the lower edge.
        axes.fill_between(t, low, high, where=(high > 0.0) | negative, color=COLOURS[i], alpha=0.12, linewidth=0.0)
    if positive and not negative:
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(0.7 * min(positive), 1.4 * max(positive))
    axes.set_xscale("log")
    axes.set_xlim(1.0, max(2.0, float(curves[0].t[-1])))
    axes.set_xlabel("pulls")
    axes.set_ylabel("regret: median, 5 to 95 %")
    axes.set_title(title, fontsize="medium", loc="left")
    figure.legend(loc="outside lower left", ncols=columns, fontsize=_small(), handlelength=3.2)


def legend_columns(labels: Sequence[str]) -> int:
    """Return 2 for short labels, and 1 if one is long."""
    return 2 if max(map(len, labels)) <= 24 else 1


def _small() -> float:
    import matplotlib

    return float(matplotlib.rcParams["font.size"]) - 0.5


def folded(title: str, width: int) -> str:
    """Return a title in lines of at most ``width`` characters, without formulas."""
    return textwrap.fill(plain_text(title), width)


def rendered(figure: Figure, kind: Literal["pdf", "svg"]) -> bytes:
    """Return the content of the file of a figure, without a date."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata={"CreationDate" if kind == "pdf" else "Date": None})
    return buffer.getvalue()


def plain_text(label: str) -> str:
    """Escape dollar signs, which would start a formula."""
    return label.replace("$", r"\$")

"""The figure and the table of a problem."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from robandit.drawing import COLOURS, DASHES, LINES, NOTEBOOK, empty_figure, laid_out, logarithmic, plain_text, settings
from robandit.kernel.types import Floats
from robandit.laws import Law
from robandit.notebook import block, paragraph, table
from robandit.wording import compact, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from robandit.problems.problem import Problem

DRAWN = 4001  # values from which the range of an axis is found
POINTS = 300  # points per curve
RAREST = 1e-6  # the smallest probability that is drawn


def laws_figure(problem: Problem) -> Figure:
    """Return the figure of `Problem.plot`."""
    arms = list(range(min(problem.arms, LINES)))
    samples = [problem.laws[arm].sample(DRAWN, seed=arm) for arm in arms]
    low, high = np.quantile(np.concatenate(samples), [0.01, 0.97] if problem.minimize else [0.03, 0.99])
    x = np.linspace(low, high if high > low else low + 1.0, POINTS)
    what = "cost" if problem.minimize else "reward"
    with settings(NOTEBOOK):
        figure = empty_figure(7.5, 3.3 + 0.2 * len(arms) / 3)
        left, right = figure.subplots(1, 2)
        for arm, sample in zip(arms, samples, strict=True):
            law, mean = problem.laws[arm], float(problem.means[arm])
            ink, dashes = COLOURS[arm], DASHES[arm]
            name = f"{plain_text(problem.names[arm])}: mean {compact(mean)}"
            left.plot(x, law.cdf(x), color=ink, linestyle=dashes, label=name)
            left.plot([mean], [law.cdf(np.array([mean]))[0]], "o", color=ink, markersize=4)
            distances, chances = _tail(law, sample)
            right.plot(distances, chances, color=ink, linestyle=dashes)
        left.set_xlabel(f"{what} x")
        left.set_ylabel(f"P({what} <= x); dots: means")
        left.set_ylim(0.0, 1.02)
        logarithmic(right)
        right.set_xlabel("distance x from the median")
        right.set_ylabel("probability of a greater distance")
        right.set_title("a straight line is a heavy tail", fontsize="medium", loc="left")
        few = f"the first {len(arms)} of {counted(problem.arms, 'arm')}" if problem.arms > len(arms) else None
        figure.legend(loc="outside lower left", ncols=3, handlelength=3.2, title=few, alignment="left")
        return laid_out(figure)


def _tail(law: Law, sample: Floats) -> tuple[Floats, Floats]:
    """Return distances from the median and the probabilities of greater ones, as far as these are at least `RAREST`."""
    centre = float(np.median(sample))
    far = np.abs(sample - centre)
    near, last = float(np.median(far)), float(far.max())
    if not last > 0.0:
        return np.empty(0), np.empty(0)
    distances = np.geomspace(near if near > 0.0 else last / 100.0, last * 300.0, POINTS)
    chances = 1.0 - law.cdf(centre + distances) + law.cdf(centre - distances)
    seen = chances >= RAREST
    return distances[seen], chances[seen]


def problem_html(problem: Problem) -> str:
    """Return the table of a `Problem` in a notebook: the laws, means and gaps of its arms."""
    rows = [
        (name, law, compact(mean), compact(gap), "–" if math.isinf(law.tail_index) else f"{law.tail_index:.3g}")
        for name, law, mean, gap in zip(
            problem.names, problem.laws, problem.means.tolist(), problem.gaps.tolist(), strict=True
        )
    ]
    kind = "costs, which are minimised" if problem.minimize else "rewards, which are maximised"
    head = ("arm", "law", "mean", "gap", "tail index")
    return block(
        paragraph(f"{counted(problem.arms, 'arm')} with {kind}.", strong=type(problem).__name__),
        table(head, rows, text=2),
    )

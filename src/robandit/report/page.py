"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
import math
import os
from importlib.metadata import version
from typing import Any

from robandit import __version__
from robandit.files import write_atomically
from robandit.laws.median import law_median
from robandit.report.table import uniform_regret
from robandit.simulate import Result

__all__ = ["write_page"]

STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.words { text-align: left; white-space: normal; min-width: 12rem; }
figure { margin: 1.5rem 0; background: #fff; border-radius: 6px; padding: .5rem; overflow-x: auto; }
figcaption { color: #222; font-size: .9rem; padding: 0 .5rem; }
svg { max-width: 100%; height: auto; }
code { overflow-wrap: anywhere; }
"""


LINES = 8  # in the figure: more cannot be told apart


def write_page(result: Result, path: str | os.PathLike[str], *, command: str) -> None:
    """Write the report of a simulation; ``command`` is what a reader types to get it again."""
    page = _page(result, command).encode()
    write_atomically(path, lambda file: file.write(page))


def _page(result: Result, command: str) -> str:
    rows = result.summary().sort("mean").to_dicts()
    columns = ["policy", "mean", "mean_low", "mean_high", "median", "q05", "q95", "worst"]
    head = "".join(f"<th scope=col>{c.replace('_', ' ')}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(row[c])}</td>" for c in columns) + "</tr>\n" for row in rows)
    arms = "".join(
        f"<tr><td>{html.escape(repr(law))}</td><td>{mean:.4g}</td><td>{gap:.4g}</td></tr>\n"
        for law, mean, gap in zip(result.problem.laws, result.problem.means, result.problem.gaps, strict=True)
    )
    verdict = result.problem.assumption()
    holds = "holds" if verdict.holds else "FAILS"
    best = result.problem.laws[result.problem.best_arm]
    centred = "holds" if best.truncated_nonpositivity(law_median(best)).holds else "FAILS"
    told = "".join(
        f"<tr><td class=words><code>{html.escape(repr(p))}</code></td>"
        f"<td class=words>{html.escape(p.facts.assumption or 'nothing')}</td>"
        f"<td class=words>{html.escape(p.facts.bound or 'none is proved')}</td></tr>\n"
        for p in result.policies
    )
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Robandit report</title>
<style>{STYLE}</style>
<h1>Lowest mean regret: {html.escape(rows[0]["policy"])}</h1>
<p>{_caution(rows)}</p>
<p>{result.regret.shape[1]} replications of {result.horizon:,} pulls. Choosing arms at random costs
{uniform_regret(result):,.0f}. Regret is pseudo-regret: the gaps of the arms pulled, added up.</p>
<h2>Final regret</h2>
<table><thead><tr>{head}</tr></thead><tbody>
{body}</tbody></table>
<h2>Regret over time</h2>
<figure role="img" aria-label="Median regret of each policy over time, with bands from the 5 to the 95 percent quantile">
{_curves(result, [row["policy"] for row in rows[:LINES]])}
<figcaption>Median over replications; bands from the 5 % to the 95 % quantile; both axes logarithmic.{_which(len(rows))}
</figcaption></figure>
<h2>The problem</h2>
<table><thead><tr><th scope=col>arm</th><th scope=col>mean</th><th scope=col>gap</th></tr></thead><tbody>
{arms}</tbody></table>
<p>Tail index {result.problem.tail_index:.4g}. Truncated non-positivity of the best arm {holds}: {html.escape(verdict.reason)}.
About its median it {centred}.</p>
<h2>The policies</h2>
<table><thead><tr><th scope=col>policy, and what it was told</th><th scope=col>assumes besides</th><th scope=col>regret bound</th>
</tr></thead><tbody>
{told}</tbody></table>
<h2>To get this again</h2>
<p><code>{html.escape(command)}</code>, with robandit {__version__}, numpy {version("numpy")}, numba {version("numba")}.</p>
</html>
"""


def _caution(rows: list[dict[str, Any]]) -> str:
    """Whose mean could be the lowest too, for all that these replications can tell."""
    if any(math.isnan(row["mean_low"]) for row in rows):
        return "One replication: how far it is from the mean cannot be said."
    rivals = [row["policy"] for row in rows[1:] if not row["mean_low"] > rows[0]["mean_high"]]
    if not rivals:
        return "The 95 % interval of its mean lies below all others."
    return f"Not settled: the 95 % interval of its mean overlaps that of {html.escape(', '.join(rivals))}."


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return html.escape(value)
    return "–" if math.isnan(value) else f"{value:,.0f}"


def _which(policies: int) -> str:
    return f" The {LINES} policies with the lowest means, of {policies}." if policies > LINES else ""


def _curves(result: Result, shown: list[str]) -> str:
    """Regret of some policies over time as SVG."""
    import vl_convert

    curves = result.curves()
    frame = curves.filter((curves["q05"] > 0.0) & curves["policy"].is_in(shown))  # zero has no logarithm
    scale = {"type": "log"}
    axis = {"values": [10.0**j for j in range(-6, 12)], "format": "~g"}
    x = {"field": "t", "type": "quantitative", "scale": scale, "axis": axis, "title": "pulls"}
    spec = {
        "data": {"values": frame.to_dicts()},
        "width": 720,
        "height": 380,
        "encoding": {"x": x, "color": {"field": "policy", "type": "nominal", "title": None}},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.2},
                "encoding": {
                    "y": {"field": "q05", "type": "quantitative", "scale": scale, "axis": axis, "title": "regret"},
                    "y2": {"field": "q95"},
                },
            },
            {
                "mark": {"type": "line"},
                "encoding": {"y": {"field": "median", "type": "quantitative", "scale": scale}},
            },
        ],
    }
    return vl_convert.vegalite_to_svg(json.dumps(spec))

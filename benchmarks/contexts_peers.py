"""Contextual policies of other libraries: ``python benchmarks/contexts_peers.py PYTHON [REPLICATIONS]``.

PYTHON is the interpreter of an environment with ``pip install vowpalwabbit mabwiser contextualbandits``; what is missing is left
out. Draws the rows of the first replications of benchmarks/contexts.py on six problems, lets ``benchmarks/peers/contextual.py``
play them, and writes build/contexts-peers.md. A replication takes about four minutes, because the libraries need 0.2 to 3 ms per
round.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from contexts import HORIZON, SEED
from recorded_sets import ROOT

import robandit as rb
from robandit.kernel.types import Floats

PROBLEMS = (
    *("light/gauss K3 d2", "light/gauss K10 d5", "light/gauss K10 d5, x 30 + 150"),
    *("heavy/-pareto1.5 K3 d5", "heavy/pareto1.5 costs K3 d2", "heavy/t1.5 K10 d5"),
)


def main() -> None:
    """Draw rows, let the libraries play them, and write the table."""
    python, replications = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
    suite = {task.name: task.problem for task in rb.suites.contextual().tasks}
    arrays: dict[str, Floats] = {}
    found: dict[str, dict[str, list[float]]] = {}
    for name in PROBLEMS:
        problem = suite[name]
        assert isinstance(problem, rb.problems.Contextual)
        result = rb.simulate(
            rb.AdaClipTS(), problem, HORIZON, replications, seed=SEED, checkpoints=[HORIZON], progress=False
        )
        for r in range(replications):
            rows = problem.rows_of(SEED, r, HORIZON)
            arrays |= {f"{name}|{r}|{part}": getattr(rows, part) for part in rows._fields}
            random = (rows.means.max(axis=1) - rows.means.mean(axis=1)).sum()
            found.setdefault("Robandit, AdaClip-TS", {}).setdefault(name, []).append(
                100.0 * float(result.regret[0, r, -1] / random)
            )
    with tempfile.TemporaryDirectory() as folder:
        given, results = Path(folder) / "rows.npz", Path(folder) / "results.jsonl"
        np.savez(given, **arrays)  # type: ignore[arg-type]
        worker = Path(__file__).parent / "peers" / "contextual.py"
        subprocess.run([python, str(worker), str(given), str(results)], check=True)
        for line in results.read_text().splitlines():
            row = json.loads(line)
            name = row["key"].rpartition("|")[0]
            found.setdefault(f"{row['library']} ({row['us']:.0f} us)", {}).setdefault(name, []).append(row["regret"])
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "contexts-peers.md").write_text(table(found))


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """Return the mean regret of each library in per cent of random choice."""
    merged: dict[str, dict[str, list[float]]] = {}
    for library, rows in found.items():
        for name, values in rows.items():
            merged.setdefault(library.partition(" (")[0], {}).setdefault(name, []).extend(values)
    lines = ["| library | " + " | ".join(PROBLEMS) + " |", "| --- |" + " ---: |" * len(PROBLEMS)]
    for library, rows in merged.items():
        cells = [f"{np.mean(rows[name]):.1f}" if name in rows else "-" for name in PROBLEMS]
        lines.append(f"| {library} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()

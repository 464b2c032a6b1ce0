"""Measure the speed and memory of summaries of recorded rewards; ``run.py`` starts it in a separate process.

``python benchmarks/recorded.py FILE`` prints the rows, the seconds of a summary and of a plain streaming group-by mean
(alternating, each the best of three), and the peak memory of the first summary, without imports, in MB.
``python benchmarks/recorded.py FILE log`` (or ``table``) prints the seconds and the peak memory per row of loading all rows in time
order: `BYTES` of recorded/source.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from robandit.recorded import open_records

ARMS = 20


def plain(path: str) -> pl.DataFrame:
    """Return the mean reward per arm: the baseline."""
    scan = pl.scan_parquet(path) if path.endswith(".parquet") else pl.scan_csv(path)
    return scan.group_by("arm").agg(pl.col("reward").mean()).collect(engine="streaming")


def make(path: Path, rows: int) -> None:
    """Write negated Pareto rewards of 20 arms."""
    rng = np.random.default_rng(0)
    arms = pl.Series([f"arm {i}" for i in range(ARMS)]).gather(rng.integers(0, ARMS, rows))
    frame = pl.DataFrame({"arm": arms, "reward": -rng.pareto(1.5, rows) - 1.0})
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path)


def peak() -> int:
    """Return the peak memory in kB. (getrusage would start from the size of the parent process.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def measure(path: str) -> dict[str, float]:
    before = peak()
    ours, theirs = [], []
    extra = 0.0
    rows = 0
    for attempt in range(3):
        start = time.perf_counter()
        rows = open_records(path).summary().rows
        ours.append(time.perf_counter() - start)
        if not attempt:
            extra = (peak() - before) / 1024
        start = time.perf_counter()
        plain(path)
        theirs.append(time.perf_counter() - start)
    return {"rows": rows, "seconds": min(ours), "plain": min(theirs), "memory": extra}


def measure_loading(path: str, method: str) -> dict[str, float]:
    records = open_records(path)
    before = peak()
    start = time.perf_counter()
    getattr(records, method)()
    seconds, extra = time.perf_counter() - start, (peak() - before) * 1024
    rows = sum(records.samples(1).counts.values())
    return {"rows": rows, "seconds": seconds, "bytes": extra / rows}


def figures(folder: Path, name: str, rows: int) -> dict[str, float]:
    """Write a file in one process and measure in another, so that the memory for writing does not count."""
    path = folder / name
    for task in ([str(path), str(rows)], [str(path)]):
        done = subprocess.run([sys.executable, __file__, *task], check=True, capture_output=True, text=True)
    path.unlink()
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    if sys.argv[2:] in (["log"], ["table"]):
        print(json.dumps(measure_loading(*sys.argv[1:])))
    elif len(sys.argv) > 2:
        make(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        print(json.dumps(measure(sys.argv[1])))

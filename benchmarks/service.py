"""Measure the decision service against its goals, in one run: ``make bench-service``. Writes docs/results/service.md.

Takes five minutes. The servers are processes of their own; the client (``load.py``) is this process. F is the median time of
flushing 4 KiB to the disk during the run. "off" is the same server without flushes. PostgreSQL is a real one, started from a wheel,
with its data beside the SQLite files. All take turns, and medians over the rounds are compared, because the machine is shared.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import apsw
from database import binaries
from load import PROBE_EVERY, quantile
from serving import (
    ALONE,
    BATCH,
    BATCH_CONNECTIONS,
    CONNECTIONS,
    EXPERIMENTS,
    FIRST_ROUNDS,
    LARGE_BATCH,
    LONG_LOG,
    MILLION,
    OFF,
    ONE,
    OPEN,
    READ,
    READ_ELSEWHERE,
    ROUNDS,
    SHORT_LOG,
    SORTED,
    SQLITE,
    TWO,
    Disk,
    Loads,
    Memory,
    Starts,
    Variant,
    loads,
    log,
    memory,
    starts,
)

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"  # not the folder for temporary files, which is often in memory
PAGE = ROOT / "docs" / "results" / "service.md"


class Row(NamedTuple):
    """A figure with its goal."""

    title: str
    goal: str
    measured: str
    met: bool | None
    """None: without a goal."""

    @property
    def cells(self) -> list[str]:
        """The cells of a table."""
        return [self.title, self.goal, self.measured, {True: "yes", False: "**no**", None: ""}[self.met]]


def ms(seconds: float) -> str:
    """Format a time in milliseconds."""
    return f"{seconds * 1e3:.3g} ms"


def rows(found: Loads, flush: float, start: Starts, used: Memory) -> list[Row]:
    """Compare all figures with their goals."""
    result = []
    many, several = found.singles, found.batches
    least = 0.6 * min(many[OFF].rate, 32.0 / flush)
    rate = many[SQLITE].rate
    title = f"singles at {CONNECTIONS} connections, requests/s"
    result.append(Row(title, f">= {least:,.0f} = 0.6 min(off, 32/F)", f"{rate:,.0f}", rate >= least))
    share = 0.25 if flush > 0.5e-3 else 0.5
    least, rate = share * several[OFF].rate * BATCH, several[SQLITE].rate * BATCH
    title = f"batches of {BATCH} at {BATCH_CONNECTIONS} connections, items/s"
    result.append(Row(title, f">= {least:,.0f} = {share:g} off", f"{rate:,.0f}", rate >= least))
    least, rate = 3.0 * 0.5 * rate, found.observed[SQLITE].rate * LARGE_BATCH
    title = f"observations of edges in batches of {LARGE_BATCH:,}, items/s"
    result.append(Row(title, f">= {least:,.0f} = 3 x rewards in batches of {BATCH}", f"{rate:,.0f}", rate >= least))
    for connections, variants in ((1, found.one), (CONNECTIONS, many)):
        most, p50 = 2.0 * variants[OFF].p50 + 2.0 * flush, variants[SQLITE].p50
        title = f"p50 at {connections} connection{'s' * (connections > 1)}"
        result.append(Row(title, f"<= {ms(most)} = 2 off + 2 F", ms(p50), p50 <= most))
    for title, variant in (
        ("singles", many[SQLITE]),
        (f"batches of {BATCH}", several[SQLITE]),
        ("observations", found.observed[SQLITE]),
    ):
        assert variant.probes is not None
        result.append(
            Row(
                f"/healthz during {title}, longest of a round", "<= 50 ms", ms(variant.longest), variant.longest <= 0.05
            )
        )
    per_event = start.per_event * 1e6
    result.append(
        Row("recovery without a snapshot, CPU per event", "<= 10 us", f"{per_event:.2g} us", per_event <= 10.0)
    )
    result.append(
        Row(f"start with {MILLION:,} events from a snapshot", "< 2 s", f"{start.million:.2f} s", start.million < 2.0)
    )
    result.append(Row(f"  the same after a crash, {start.tail:,} events later", "", f"{start.crashed:.2f} s", None))
    settled, last = used.full[FIRST_ROUNDS], used.full[-1]
    grown = (settled - used.empty) * 1e6 / OPEN
    result.append(Row(f"memory per open decision, {OPEN:,} open", "", f"{grown:,.0f} bytes", None))
    title = f"  growth while all are replaced {ROUNDS} more times"
    result.append(Row(title, "<= 5 %", f"{last / settled - 1.0:.1%}", last <= 1.05 * settled))
    return result


def shared_rows(found: Loads) -> list[Row]:
    """Compare PostgreSQL with SQLite, and two replicas with one."""
    at = f"at {CONNECTIONS} connections, requests/s"
    reading = found.reading
    return [
        _ratio(f"PostgreSQL {at}", 0.4, "SQLite", found.singles[ONE], found.singles[SQLITE]),
        _ratio(f"2 replicas, one experiment, {at}", 0.7, "1 replica", found.singles[TWO], found.singles[ONE]),
        _ratio(
            f"2 replicas, {EXPERIMENTS} experiments, {at}",
            1.2,
            "1 replica",
            found.experiments[TWO],
            found.experiments[ONE],
        ),
        _ratio("  each experiment on one of them", 1.2, "1 replica", found.experiments[SORTED], found.experiments[ONE]),
        _ratio("writes while another replica reads", 0.8, READ_ELSEWHERE, reading[READ], reading[READ_ELSEWHERE]),
        _ratio("  the same", None, ALONE, reading[READ], reading[ALONE]),
    ]


def _ratio(title: str, least: float | None, name: str, one: Variant, other: Variant) -> Row:
    """Compare the rate of a variant with that of another one."""
    ratio = one.rate / other.rate
    goal = f">= {least:g} x {name}" if least else f"compared with {name}"
    return Row(title, goal, f"{one.rate:,.0f} = {ratio:.2f} x", None if least is None else ratio >= least)


def details(found: Loads, chosen: Collection[str] = ()) -> list[list[str]]:
    """Return a row for each variant of the chosen loads, or of all."""
    titles = {
        "singles": f"singles, {CONNECTIONS} connections",
        "own_ids": "  with ids of the client",
        "one": "singles, 1 connection",
        "batches": f"batches of {BATCH}, {BATCH_CONNECTIONS} connections",
        "observed": f"observations, batches of {LARGE_BATCH:,}, {BATCH_CONNECTIONS} connections",
        "experiments": f"singles, {EXPERIMENTS} experiments",
        "reading": "singles on 1 of 2 replicas",
    }
    lines = []
    for name, title in titles.items():
        if chosen and name not in chosen:
            continue
        for server, each in getattr(found, name).items():
            if server == OFF:  # it only sets the goals
                continue
            processor = " + ".join(f"{part * 1e6:,.0f}" for part in (each.per_request, each.database, each.client))
            cells = [f"{each.rate:,.0f}", processor, f"{each.per_commit:.0f}", f"{each.p50 * 1e3:.3g}"]
            lines.append([title, server, *cells, f"{each.p99 * 1e3:.3g}"])
    return lines


def table(titles: list[str], lines: list[list[str]], left: int) -> str:
    """Return an aligned Markdown table, with this many columns to the left."""
    widths = [max(len(row[i]) for row in [titles, *lines]) for i in range(len(titles))]

    def line(row: list[str]) -> str:
        cells = (
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(titles), line(rule), *map(line, lines)])


def page(found: Loads, disk: Disk, start: Starts, used: Memory, seconds: float) -> str:
    """Return the page of results."""
    flush, ordered = disk.median, sorted(disk.seconds)
    titles = ["figure", "goal", "measured", "met"]
    goals = table(titles, [row.cells for row in rows(found, flush, start, used)], 2)
    shared = table(titles, [row.cells for row in shared_rows(found)], 2)
    loads = table(
        [
            "load",
            "server",
            "requests/s",
            "us/request: servers + PostgreSQL + client",
            "events/commit",
            "p50, ms",
            "p99, ms",
        ],
        details(found, ("singles", "one", "batches", "observed")),
        2,
    )
    versions = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {postgres_version()}"
    machine = f"{processor_name()}, {platform.system()}, {versions}"
    first, *later = (f"{value:.0f}" for value in used.full)
    memories = f"{used.empty:.0f} MB before, {first} MB with {OPEN:,} open decisions, then {', '.join(later)} MB"
    quantiles = f"{len(ordered):,} times during the run (p99: {ms(quantile(ordered, 0.99))})"
    parts = [
        "# The speed of the decision service",
        goals,
        f"F = {ms(flush)} is the median time of an fdatasync after appending 4 KiB to a file beside the databases, "
        f"{quantiles}. *off* is the same server without flushes to the disk.",
        "## Several servers that share PostgreSQL",
        shared,
        "Servers, PostgreSQL and client share two cores, so two replicas can be faster than one only if one leaves a core idle "
        "([how the service grows](../explanation/growth.md)).",
        "## Each load",
        loads,
        "*us/request*: processor time per request (user and system, all threads and processes). "
        f"A request of a batch has {BATCH} items, one with observations {LARGE_BATCH:,}. The command prints more loads.",
        "## How it was measured",
        "- Over the loopback interface, with a key, ten arms, the default policy, a Pareto tail of 1.5, PostgreSQL's default "
        "settings. Each connection makes a decision, then sends its reward, one request at a time. Figures are medians over the "
        "rounds.",
        f"- /healthz is called every {PROBE_EVERY * 1e3:.0f} ms on a separate connection.",
        f"- Recovery: processor time until ready with {LONG_LOG:,} events and no snapshot, minus that with {SHORT_LOG:,} "
        f"({start.short:.1f} s), per event.",
        f"- Memory: {memories} each time that all were replaced.",
        f"- Written by `make bench-service` in {seconds:.0f} seconds on {os.cpu_count()} shared cores ({machine}; load average at "
        f"the end {os.getloadavg()[0]:.1f}). A goal that is missed in one run and met in the next is noise.",
    ]
    text = "\n\n".join(part if part[0] in "#|" else filled(part) for part in parts) + "\n"
    return text.replace("\n\n- ", "\n- ").replace("measured\n- ", "measured\n\n- ")


def filled(paragraph: str) -> str:
    """Return a paragraph or an item of a list in lines."""
    indent = "  " if paragraph.startswith("- ") else ""
    return textwrap.fill(paragraph, 132, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def postgres_version() -> str:
    """Return the name and version of the PostgreSQL that is measured."""
    found = subprocess.run([binaries() / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return f"PostgreSQL {found.split()[2]}"


def processor_name() -> str:
    """Return the name of the processor."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else platform.machine()


def main() -> None:
    """Measure, print the goals, and write the page."""
    begin = time.perf_counter()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        disk = Disk(folder)
        disk.sample()
        found = loads(folder, disk)
        log(f"memory with {OPEN:,} open decisions")
        used = memory(folder)
        disk.sample()
        start = starts(folder)
        disk.sample()
    compared = rows(found, disk.median, start, used) + shared_rows(found)
    PAGE.write_text(page(found, disk, start, used, time.perf_counter() - begin))
    print(f"F = {ms(disk.median)}")
    print(table(["figure", "goal", "measured", "met"], [row.cells for row in compared], 2))
    print("\n".join(" | ".join(line) for line in details(found)))
    missed = [row.title for row in compared if row.met is False]
    print(f"\n{len(missed)} goals missed" + "".join(f"\n  {title}" for title in missed) + f"\nwritten: {PAGE}")


if __name__ == "__main__":
    main()

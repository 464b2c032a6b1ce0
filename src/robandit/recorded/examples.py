"""The recorded rewards that come with Robandit."""

from __future__ import annotations

from pathlib import Path

from robandit.recorded.records import Records
from robandit.recorded.source import open_records
from robandit.validation import choice

EXAMPLES = {"flights": "minus the minutes late at arrival, by carrier; flights from New York, 2013"}


def example(name: str) -> Records:
    """Return the records of an example set.

    Parameters
    ----------
    name
        "flights": the lateness of 327,317 flights from New York in 2013, in minutes, as costs; the arms are the carriers and
        the times are days. flights.md, beside the data, names the source.

    Examples
    --------
    >>> records = example("flights")
    >>> records.source, records.negated, records.time
    ('the example flights', True, 'day')
    """
    choice(name, "name", EXAMPLES)
    records = open_records(
        Path(__file__).with_name(f"{name}.parquet"), arm="carrier", reward="lateness", time="day", negate=True
    )
    records.source = f"the example {name}"
    return records

"""The recorded rewards that come with Robandit."""

from __future__ import annotations

from pathlib import Path

from robandit.errors import InvalidInput
from robandit.recorded.source import Records, open_records

__all__ = ["EXAMPLES", "example"]

EXAMPLES = {"flights": "minus the minutes late at arrival, by carrier; flights from New York, 2013"}


def example(name: str) -> Records:
    """The records of an example set.

    Parameters
    ----------
    name
        "flights": the lateness of 327,317 flights from New York in 2013, in minutes, as costs; the arms are the carriers and
        the times are days. Where it comes from is said in flights.md beside it.

    Examples
    --------
    >>> records = example("flights")
    >>> records.source, records.negated, records.time
    ('the example flights', True, 'day')
    """
    if not isinstance(name, str) or name not in EXAMPLES:
        raise InvalidInput(f"there is no example {name!r}: there is {', '.join(map(repr, EXAMPLES))}")
    records = open_records(
        Path(__file__).with_name(f"{name}.parquet"), arm="carrier", reward="lateness", time="day", negate=True
    )
    records.source = f"the example {name}"
    return records

"""Options for reading a table of recorded rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from robandit.cli.options import Flag

if TYPE_CHECKING:
    from robandit.recorded import Records


def _file_name(kind: Any, tokens: Sequence[Token]) -> str:
    """Return the name as typed. Reject a leading hyphen, except in "-" (standard input)."""
    value = tokens[0].value
    if value.startswith("-") and value != "-":
        raise ValueError(f"Unknown option: {value}. For a file of this name, write ./{value}")
    return value


# Path makes shells complete file names; the value stays text, because a Path would turn ./- into - and ./-x into -x.
File = Annotated[Path | str | None, Parameter(allow_leading_hyphen=True, converter=_file_name)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options that describe a table of recorded rewards."""

    arm: str | None = None
    """The column of the arms; by default "arm"."""
    reward: str | None = None
    """The column of the rewards or costs; by default "reward"."""
    time: str | None = None
    """The column of the times, by which rows are sorted; by default "time", if it exists."""
    minimize: Annotated[Flag, Parameter(name=("--minimize", "--negate"))] = False
    """The rewards are costs, such as latencies: the lowest mean is the best. All results keep the sign and unit of the costs."""
    skip_bad: Flag = False
    """Skip and count rows whose arm or reward is missing or not a finite number, or whose time cannot be read. By default they
    are an error."""
    where: str | None = None
    """Read only rows that fit this condition, such as "ok = true and model != 'old'". A comparison is a column, one of
    = != < <= > >=, and a number, 'text', true or false, or `is null`; join them with and, or, not and parentheses."""
    join_names: Flag = False
    """Read names of arms that differ only by case or space as one arm, such as "Mistral" and "mistral "."""
    delimiter: str | None = None
    """The character between the columns of a CSV file, such as ";" or tab. By default it is detected in the first line."""
    example: Literal["flights"] | None = None
    """Read an example data set of Robandit, not a file."""

    def records(self, file: Path | str | None, propensity: str | None = None) -> Records:
        """Open the table."""
        from robandit.errors import InvalidInput
        from robandit.recorded import example, open_records

        options = {**asdict(self), "propensity": propensity}
        name = options.pop("example")
        if file is None and name is None:
            raise InvalidInput("no file is given: name a file (- for standard input), or add --example flights")
        if name is None:
            return open_records(file, **options)
        if file is not None:
            raise InvalidInput(f"the file {file} and --example {name} cannot be used together: omit one")
        where = options.pop("where")
        for option, value in options.items():
            if value is not None and value is not False:
                text = f"--{option.replace('_', '-')} cannot be used with --example {name}, whose columns are known: omit it"
                raise InvalidInput(text, parameter=option, value=value)
        return example(name, where=where)

    @staticmethod
    def time_hint(records: Records, purpose: str) -> list[str]:
        """Return a note if a column looks like a time and none is named."""
        import shlex

        name = records.unused_time
        return (
            []
            if name is None
            else [f"The column {name!r} looks like a time. To {purpose}, add --time {shlex.quote(name)}."]
        )

    def name(self, file: Path | str | None) -> str:
        """Return a name for the table."""
        if self.example is not None or file is None:
            return self.example or "recorded"
        return "stdin" if str(file) == "-" else Path(file).name.split(".")[0] or "recorded"

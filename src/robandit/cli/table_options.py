"""Options that say how a table of recorded rewards is read, shared by the commands that read one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from robandit.cli.options import Flag

if TYPE_CHECKING:
    from robandit.recorded import Records

__all__ = ["File", "Reading"]


def _typed(kind: Any, tokens: Sequence[Token]) -> str:
    """The name as it was typed. What looks like an option is one, but for the hyphen that stands for standard input."""
    value = tokens[0].value
    if value.startswith("-") and value != "-":
        raise ValueError(f"Unknown option: {value}. A file of this name is ./{value}")
    return value


# Shells complete files for a Path; but it stays text, since a Path takes ./- for -, and ./-x for the option.
File = Annotated[Path | str | None, Parameter(allow_leading_hyphen=True, converter=_typed)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Where the rewards are."""

    arm: str | None = None
    """The column with the arms; by default "arm"."""

    reward: str | None = None
    """The column with the rewards; by default "reward"."""

    time: str | None = None
    """The column of times, to order rows by; by default "time", if there is one."""

    negate: Flag = False
    """Take minus the column: for costs and latencies, since rewards are maximised."""

    skip_bad: Flag = False
    """Leave out rows whose arm or reward is missing or not a finite number, and count them, instead of refusing the file."""

    delimiter: str | None = None
    """What separates the columns of a CSV file, such as ";" or tab; by default what its first line has."""

    example: Literal["flights"] | None = None
    """Read a set that comes with Robandit, in place of a file."""

    def records(self, file: Path | str | None, propensity: str | None = None) -> Records:
        """Open what the options name."""
        from robandit.errors import InvalidInput
        from robandit.recorded import example, open_records

        if (file is None) == (self.example is None):
            raise InvalidInput(
                "give a file (- for standard input), or --example flights"
                if file is None
                else f"{file} and --example {self.example} are given: leave one out"
            )
        if self.example is not None:
            known = {"arm": self.arm, "reward": self.reward, "time": self.time, "propensity": propensity}
            for name, value in {**known, "delimiter": self.delimiter}.items():
                if value is not None:
                    raise InvalidInput(
                        f"--{name} {value} is given, but the columns of --example {self.example} are known"
                    )
            for name in ("negate", "skip_bad"):
                if getattr(self, name):
                    raise InvalidInput(
                        f"--{name.replace('_', '-')} is given, but --example {self.example} is ready to use"
                    )
            return example(self.example)
        return open_records(
            file,
            arm=self.arm,
            reward=self.reward,
            time=self.time,
            propensity=propensity,
            negate=self.negate,
            skip_bad=self.skip_bad,
            delimiter=self.delimiter,
        )

    def name(self, file: Path | str | None) -> str:
        """What the record is called."""
        if self.example is not None or file is None:
            return self.example or "recorded"
        return "stdin" if str(file) == "-" else Path(file).name.split(".")[0] or "recorded"

    def words(self, file: Path | str | None) -> list[str]:
        """The options as they were typed."""
        words = [] if file is None else [str(file)]
        for field in fields(self):
            value = getattr(self, field.name)
            if value is True:
                words.append(f"--{field.name.replace('_', '-')}")
            elif value is not None and value is not False:
                words += [f"--{field.name.replace('_', '-')}", value]
        return words

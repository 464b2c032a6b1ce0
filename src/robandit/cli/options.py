"""Options that several commands share, and a function that formats a command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from robandit.errors import InvalidInput, formatted
from robandit.experiments.compare_plan import EVERY, FIRST_LOOK


def _integer(kind: Any, tokens: Sequence[Token]) -> int:
    """Parse an integer, such as 10000 or 1e4. Cyclopts would round 1.5."""
    text = tokens[0].value
    try:
        if not re.fullmatch(r"[-+]?[\d.]+e\+?\d\d?", text, re.IGNORECASE):
            return int(text)
        if (value := Fraction(text)).denominator == 1:
            return value.numerator
    except ValueError:
        pass
    raise ValueError(f"{formatted(text)} is not an integer, such as 10000 or 1e4")


Flag = Annotated[bool, Parameter(show_default=False)]
Integer = Annotated[int, Parameter(converter=_integer)]
OptionalInteger = Annotated[int | None, Parameter(converter=_integer)]

Seed = Annotated[Integer, Parameter(help="An integer >= 0. The same seed gives the same numbers.")]
Threads = Annotated[OptionalInteger, Parameter(help="Number of threads; by default one per core.")]
_SHORT = ", ".join(name.partition("(")[0] for name in FIRST_LOOK)
Policies = Annotated[
    list[str] | None,
    Parameter(
        help="A policy, such as AdaRUCB or 'AdaRUCB(bonus=\"tight\")'; repeat the option for more. `robandit policies` lists the "
        f"names; `all` means every policy that learns, except Floor, Probing and Restarting. By default {len(FIRST_LOOK)} "
        f"policies play: {_SHORT}."
    ),
]
All = Annotated[
    Flag, Parameter(name="--all", help=f"The same as --policy all, plus {EVERY[1]}. Cannot be used with --policy.")
]
Replications = Annotated[OptionalInteger, Parameter(help="Independent runs of each policy; by default 50.")]
Objective = Annotated[
    str,
    Parameter(
        help="What is optimised: mean, a quantile (p95), or within:2.0, the share of rewards beyond 2.0 (costs above it)."
    ),
]
Quick = Annotated[
    Flag, Parameter(help="Run a tenth of the pulls and 20 replications. --horizon and --replications take precedence.")
]
Figures = Annotated[
    Path | None,
    Parameter(help="A folder for figures, as PDF and SVG (needs robandit[plot]); by default none are written."),
]
RunFolder = Annotated[Path | None, Parameter(help="The run folder; by default the path of the spec without .toml.")]


Imports = Annotated[
    list[str] | None,
    Parameter(
        name="--import",
        help="A module with policies of your own, such as mine for mine.py in the current folder; repeat the option for more. Its "
        "code is run. Write its policies as 'mine:CapUCB(cap=3)'.",
    ),
]


def check_figures(folder: Path | None) -> None:
    """Raise an error now, not after the run, if figures cannot be drawn or written into this folder; None is accepted."""
    from robandit.drawing import check_can_draw
    from robandit.files import check_folder

    if folder is not None:
        check_can_draw()
        check_folder(folder)


def import_given(modules: list[str] | None) -> None:
    """Import the modules of the option --import, from the current folder."""
    from robandit.experiments.own_code import import_modules

    import_modules(modules or ())


def chosen_policies(policies: list[str] | None, everything: bool) -> Sequence[str]:
    """Return the policies of the options --policy and --all, which exclude each other. Empty means `FIRST_LOOK`."""
    if policies and everything:
        raise InvalidInput(f"--policy {policies[0]} and --all cannot be used together: omit one")
    return EVERY if everything else policies or ()


def command_line(command: str, *words: str | Path | None, **options: Any) -> str:
    """Return a command as a user types it. None and False are omitted, True is a flag, and a list repeats its option.

    >>> command_line("compare", policy=["UCB1", "AdaRUCB"], seed=1, quick=True, out=None)
    'robandit compare --policy UCB1 --policy AdaRUCB --seed 1 --quick'
    """
    typed = ["robandit", *command.split(), *(str(word) for word in words if word is not None)]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            typed.append(option)
        elif value is not None and value is not False:
            for each in value if isinstance(value, (list, tuple)) else (value,):
                typed += [option, str(each)]
    return shlex.join(typed)

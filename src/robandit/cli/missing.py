"""The message if an option has no value: what it needs, with an example."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

if TYPE_CHECKING:
    import cyclopts

# An option, or a command and its option, if the command needs another example -> the kind of value, and an example.
EXAMPLES = {
    "--arm": ("a column", "model"),
    "--column": ("a column", "latency_ms"),
    "--delimiter": ("a character", "';'"),
    "--days": ("a number", "30"),
    "--delta": ("a number", "0.05"),
    "--eps": ("a number", "0.5"),
    "--experiment": ("a name", "provider"),
    "--figures": ("a folder", "figures"),
    "--host": ("an address", "127.0.0.1"),
    "--horizon": ("an integer", "10000"),
    "--import": ("a module", "mine"),
    "--into": ("a folder", "compiled"),
    "--note": ("a text", "'checkout service'"),
    "--out": ("a folder", "results"),
    "compare --out": ("a file", "report.html"),
    "diagnose --out": ("a file", "diagnosis.html"),
    "results export --out": ("a file", "summary.csv"),
    "verify --out": ("a file", "verify.html"),
    "--policy": ("a policy", "UCB1"),
    "--port": ("an integer", "8000"),
    "--problem": ("a problem", "heavy/latency"),
    "--propensity": ("a column", "probability"),
    "--rate": ("a number", "100"),
    "--replications": ("an integer", "100"),
    "--reward": ("a column", "latency_ms"),
    "--scheduler": ("an address", "tcp://10.0.0.5:8786"),
    "--scheduler-file": ("a file", "scheduler.json"),
    "--seed": ("an integer", "1"),
    "--store": ("a location", "sqlite:robandit.db"),
    "--sizes": ("an integer", "1000"),
    "--threads": ("an integer", "4"),
    "--time": ("a column", "ts"),
    "--trials": ("an integer", "1000"),
    "--u": ("a number", "2.0"),
    "--url": ("an address", "http://127.0.0.1:8000"),
    "--v": ("a number", "2.0"),
    "--where": ("a condition", '"ok = true"'),
    "--workers": ("an integer", "4"),
    "FILE": ("a file", "experiment.toml"),
    "FOLDER": ("a run folder", "results"),
    "archive FOLDER": ("a folder", "old-events --days 90"),
    "ID": ("an id", "4f1c22d09ab1"),
    "SOURCE": ("a location", "sqlite:robandit.db"),
    "SPEC": ("a file", "experiment.toml"),
    "TARGET": ("a path", "robandit-backup.db"),
    "migrate-store TARGET": ("a location", "sqlite:robandit.db postgresql://robandit@db.example.org/robandit"),
}
BY_TYPE: dict[Any, tuple[str, str]] = {
    int: ("an integer", "100"),
    float: ("a number", "0.5"),
    Path: ("a path", "results"),
}


def missing_value(argument: cyclopts.Argument, command: Sequence[str]) -> str:
    """Return what an option or a word of a command needs, with an example."""
    kind, example = needed(argument, command)
    name = shown_name(argument)
    words = [name] if name.startswith("--") else ["robandit", *command]
    return f"{name} needs {kind}, for example {' '.join([*words, example])}" if example else f"{name} needs {kind}"


def needed(argument: cyclopts.Argument, command: Sequence[str]) -> tuple[str, str]:
    """Return the kind of value and an example; the example is empty if none is known."""
    name, types = shown_name(argument), _types(argument.hint)
    for key in (f"{' '.join(command)} {name}", name):
        if key in EXAMPLES:
            return EXAMPLES[key]
    choices = next((get_args(each) for each in types if get_origin(each) is Literal), ())
    if len(choices) == 1:
        return "a value", str(choices[0])
    if choices:
        return f"one of {', '.join(map(str, choices))}", str(choices[0])
    return next((BY_TYPE[each] for each in types if each in BY_TYPE), ("a value", ""))


def shown_name(argument: cyclopts.Argument) -> str:
    """Return the name of an option, or the word of a command in capitals."""
    return argument.name.lstrip("-").upper() if argument.field_info.is_positional else argument.name


def _types(hint: Any) -> list[Any]:
    """Return a type and the types inside it, such as those of ``list[int] | None``."""
    if get_origin(hint) is Literal:
        return [hint]
    return [hint, *(inner for each in get_args(hint) for inner in _types(each))]

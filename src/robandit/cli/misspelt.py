"""The message if an option does not exist: the option, the problem or the policy that has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from robandit.hints import PARAMETERS, close, question
from robandit.wording import listed, visible

if TYPE_CHECKING:
    import cyclopts


_NUMBER = re.compile(r"[+-]?(\d{1,20}\.?\d{0,20}|\.\d{1,20})(e[+-]?\d{1,3})?|True|False|None", re.ASCII)
_COMPLETE = {
    "bernoulli": {"means": "[0.5, 0.6]"},
    "changing": {"kind": '"swap"', "problem": '"heavy/latency"'},
    "gaussian": {"means": "[0.5, 0.6]"},
    "lower_bound_family": {"arms": "2", "eps": "0.5", "u": "1.0", "delta": "0.1"},
    "pareto": {"means": "[0.5, 0.6]", "tail": "1.5"},
    "stable": {"means": "[0.5, 0.6]", "alpha": "1.5"},
    "student_t": {"means": "[0.5, 0.6]", "dof": "3.0"},
}
"""Problems that have all parameters between them, with what each needs at least."""


def unknown_option(typed: str, options: Iterable[cyclopts.Argument], words: Sequence[str] = ()) -> str:
    """Return the message about an option as typed, such as ``--tail`` or ``--tail=1.2``, in the words of a command."""
    shown = visible(typed.partition("=")[0])[:80]
    word = shown.lstrip("-").replace("-", "_")
    names = [name for option in options for name in option.names if name not in option.negatives]
    known = [name.removeprefix("--") for name in names if name.startswith("--")]
    meant = close(word, known, PARAMETERS)
    for option in ("problem", "policy"):
        if not meant and option in known and (owners := _owners(option, word)):
            parameter = next(iter(owners))
            example = f"--{option} '{_example(owners[parameter], parameter, _value(typed, words))}'"
            return (
                f"Unknown option: {shown}. {parameter} is a parameter of {listed(owners[parameter])}: write {example}"
            )
    return f"Unknown option: {shown}{question([f'--{each}' for each in meant])}"


def _example(owners: Sequence[str], parameter: str, value: str) -> str:
    """Return a complete problem or policy with this parameter. An empty value is replaced by an example."""
    from robandit.experiments.notation import parameters_of

    owner = next((name for name in owners if name in _COMPLETE), owners[0])
    parameters = dict(_COMPLETE.get(owner, {}))
    default = parameters_of(owner)[parameter]
    example = parameters.get(parameter) or repr(True if default is False else default).replace("'", '"')
    parameters[parameter] = value or example
    return f"{owner}({', '.join(f'{name}={text}' for name, text in parameters.items())})"


def _value(option: str, words: Sequence[str]) -> str:
    """Return the value that was typed for an option, as text for a call; empty if there is none, or it is not a simple one."""
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name == option.partition("=")[0]:
            value = value if equals else following
            return value if _NUMBER.fullmatch(value) else f'"{value}"' if value.isidentifier() else ""
    return ""


def _owners(option: str, word: str) -> dict[str, list[str]]:
    """Return the parameters of problems or policies that a word may mean, closest first, and what has each of them."""
    from robandit.experiments.notation import BUILDERS, parameters_of
    from robandit.policies import policy_names

    parameters = {name: parameters_of(name) for name in (BUILDERS if option == "problem" else policy_names())}
    meant = close(word, dict.fromkeys(each for known in parameters.values() for each in known), PARAMETERS)
    return {each: [name for name, known in parameters.items() if each in known] for each in meant}

"""The message if an option does not exist: the option, the problem or the policy that has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from robandit.hints import PARAMETERS, close, question
from robandit.wording import listed, visible

if TYPE_CHECKING:
    import cyclopts


def unknown_option(typed: str, options: Iterable[cyclopts.Argument]) -> str:
    """Return the message about an option as typed, such as ``--tail`` or ``--tail=1.2``."""
    shown = visible(typed.partition("=")[0])[:80]
    word = shown.lstrip("-").replace("-", "_")
    names = [name for option in options for name in option.names if name not in option.negatives]
    known = [name.removeprefix("--") for name in names if name.startswith("--")]
    meant = close(word, known, PARAMETERS)
    for option in ("problem", "policy"):
        if not meant and option in known and (owners := _owners(option, word)):
            parameter, having = next(iter(owners.items()))
            example = f"--{option} '{having[0]}({parameter}=...)'"
            return f"Unknown option: {shown}. {parameter} is a parameter of {listed(having)}: write {example}"
    return f"Unknown option: {shown}{question([f'--{each}' for each in meant])}"


def _owners(option: str, word: str) -> dict[str, list[str]]:
    """Return the parameters of problems or policies that a word may mean, closest first, and what has each of them."""
    from robandit.experiments.notation import BUILDERS, parameters_of
    from robandit.policies import policy_names

    parameters = {name: parameters_of(name) for name in (BUILDERS if option == "problem" else policy_names())}
    meant = close(word, dict.fromkeys(each for known in parameters.values() for each in known), PARAMETERS)
    return {each: [name for name, known in parameters.items() if each in known] for each in meant}

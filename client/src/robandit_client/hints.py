"""Hints about wrong calls: the closest parameters and methods, and the names that other libraries have for ours."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from robandit_client.wording import joined

LONGEST = 100  # characters of a word that is compared with known words; a comparison takes quadratic time

PARAMETERS = {
    "actions": "arms",
    "algorithm": "policy",
    "algorithms": "policies",
    "api_key": "key",
    "base_url": "url",
    "df": "dof",
    "env": "problem",
    "environment": "problem",
    "n_jobs": "threads",
    "n_rounds": "horizon",
    "n_runs": "replications",
    "random_state": "seed",
    "repetitions": "replications",
    "reps": "replications",
    "rng": "seed",
    "rounds": "horizon",
    "runs": "replications",
    "shape": "tail",
    "sigma": "sd",
    "std": "sd",
    "steps": "horizon",
    "T": "horizon",
    "tail_index": "tail",
    "token": "key",
    "trials": "replications",
    "variance": "v",
}
"""Names of parameters and options in other libraries, and ours with the same meaning."""

_UNRELATED = frozenset({"maximize"})
"""Words that resemble ours, and mean another thing or the opposite."""

CHOOSE = ("choose", "predict", "pull")
LEARN = ("feedback", "observe", "partial_fit")
"""Names in other libraries for choosing an arm, and for learning a reward."""

CLIENT = {
    "experiment(name).decide()": ("decide", "select", *CHOOSE),
    "experiment(name).reward(decision, value)": ("reward", "update", *LEARN),
    "the method of experiment(name)": ("decide_many", "reward_many", "show", "standing", "timed"),
}
EXPERIMENT = {"decide()": ("select", *CHOOSE), "reward(decision, value)": ("update", *LEARN)}

Target = TypeVar("Target", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type[Any])


def close(word: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> list[str]:
    """Return up to 3 known words that start with a word, or else are closest to it, ignoring case and punctuation.

    ``also`` maps other words to known ones. Only the same word, not a similar one, stands for what it is mapped to.

    >>> close("ada-rucb", ["UCB1", "AdaRUCB"]), close("UCB", ["UCBV", "UCB1", "AdaRUCB"])
    (['AdaRUCB'], ['UCB1', 'UCBV'])
    """
    import difflib

    spellings = {_bare(name): name for name in known}
    others = {_bare(other): name for other, name in (also or {}).items() if name in spellings.values()}
    bare = _bare(word)
    exact = (others | spellings).get(bare)
    if exact is not None or len(bare) > LONGEST or bare in _UNRELATED:
        return [] if exact is None else [exact]
    matches = [spelling for spelling in spellings if len(bare) > 1 and spelling.startswith(bare)]
    if not matches:
        near = difflib.get_close_matches(bare, spellings, n=3, cutoff=0.7)
        alike = [difflib.SequenceMatcher(None, each, bare).ratio() for each in near]
        matches = [each for each, ratio in zip(near, alike) if ratio == alike[0]]
    ordered = sorted(matches, key=lambda spelling: (len(spelling), spelling))
    return [spellings[each] for each in ordered][:3]


def _bare(word: str) -> str:
    return "".join(filter(str.isalnum, word.casefold()))


def question(meant: Sequence[str]) -> str:
    """Return the words that may be meant as a question in parentheses, after a space; empty if there are none."""
    return f" (did you mean {' or '.join(meant)}?)" if meant else ""


class _Elsewhere:
    """An attribute that does not exist. Reading it raises `AttributeError` with the method to use."""

    def __init__(self, name: str, instead: str) -> None:
        self.name, self.instead = name, instead

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        # With the name alone, Python adds no suggestion of its own, such as resume_arm for remove_arm.
        error = AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}: use {self.instead}")
        error.name = self.name
        raise error


def other_names(methods: Mapping[str, Sequence[str]]) -> Callable[[Class], Class]:
    """Return a class decorator: reading a method by its name in other libraries names ours.

    `hasattr`, and `dir` of an instance, ignore these names; `dir` of the class lists them. ``__getattr__`` would need no names in
    the class, but makes every attribute slower: a choice of a bandit by half. A metaclass could hide them, but would conflict with
    that of another base class.
    """
    others = {name: instead for instead, names in methods.items() for name in names}

    def public(self: object) -> list[str]:
        return [
            name
            for name in object.__dir__(self)
            if not isinstance(inspect.getattr_static(self, name, None), _Elsewhere)
        ]

    def decorated(cls: Class) -> Class:
        for name, instead in others.items():
            setattr(cls, name, _Elsewhere(name, instead))
        cls.__dir__ = public  # type: ignore[assignment]
        return cls

    return decorated


def guided(target: Target) -> Target:
    """Decorate a function or a class so that a call with wrong parameters raises a `TypeError` that helps.

    The error names the closest parameter, or describes a missing one with the words of the docstring.

    >>> @guided
    ... def simulate(policies, *, seed=None):
    ...     pass
    >>> simulate([], seeds=1)
    Traceback (most recent call last):
    TypeError: simulate() got an unexpected keyword argument 'seeds' (did you mean seed?): it has policies and seed
    """
    if isinstance(target, type):
        target.__init__ = _guided(target.__init__, target)  # type: ignore[misc]
        return target
    function: Target = _guided(target, target)
    return function


def _guided(function: Any, documented: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # raised by the call itself
                error.args = (_explained(str(error), function, documented, len(args), kwargs),)
            raise

    return call


def _explained(message: str, function: Any, documented: Any, positional: int, given: Iterable[str]) -> str:
    """Return Python's message about a wrong call, with a hint."""
    message = message.partition(". Did you mean")[0].replace(".__init__()", "()")
    parameters = list(inspect.signature(function).parameters.values())
    names = [each.name for each in parameters if each.name != "self"]
    wrong = next((name for name in given if name not in names), None)
    former = getattr(documented, "former_parameters", {})
    if wrong in former:
        return f"{message}: {former[wrong]}"
    if wrong is not None:
        return f"{message}{question(close(wrong, names, PARAMETERS))}: it has {joined(names) or 'no parameters'}"
    missing = [
        each.name
        for each in parameters[positional:]
        if " missing " in message  # not a surplus one
        and each.default is each.empty
        and each.name not in given
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if missing:
        meaning = _meaning(documented, missing[0])
        return f"{message}. {missing[0]}: {meaning}" if meaning else message
    return f"{message}: give parameters by name; it has {joined(names) or 'none'}"


def _meaning(documented: Any, name: str) -> str:
    """Return the description of a parameter in a docstring, on one line of at most 250 characters."""
    heading = rf"^(?:\w+, )*{name}(?:, \w+)*\n((?:    .*\n?)+)"
    entry = re.search(heading, inspect.getdoc(documented) or "", re.MULTILINE)
    return textwrap.shorten(entry[1], 250, placeholder=" ...") if entry else ""

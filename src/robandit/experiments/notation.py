"""Policies and problems as text, in Python's own notation: ``AdaRUCB(bonus="tight")``, ``gaussian(means=[1.0, 0.0])``.

Only names and literals are read; nothing is evaluated.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from robandit import policies, problems, suites
from robandit.errors import InvalidInput
from robandit.policies import Policy, all_policies

__all__ = [
    "builder",
    "check_parameters",
    "close",
    "is_plain",
    "parameters_of",
    "policies_from",
    "policy_call",
    "policy_class",
    "policy_made",
    "problem_call",
    "problem_from",
    "problem_made",
    "suite_from",
    "task_from",
    "unknown",
    "written",
]

BUILDERS = (
    "bernoulli",
    "gaussian",
    "lower_bound_family",
    "negated_lomax",
    "negated_pareto",
    "pareto",
    "stable",
    "student_t",
)
_POLICY = "'AdaRUCB' or 'AdaRUCB(bonus=\"tight\")'"
_PROBLEM = "'negated_pareto(means=[-1.0, -1.5], tail=1.5)', or 'heavy/pareto-1.6' for a problem of a suite"
_REQUIRED = inspect.Parameter.empty


def policies_from(text: str) -> list[Policy]:
    """The policies that a text stands for.

    With parentheses it is one. A bare name is the algorithm with default parameters, or several if the class holds several;
    ``all`` is every policy that learns. A name of the tables, such as AdaR-UCB, serves in place of the class's, but takes no
    parameters: tables round them.

    >>> policies_from('AdaRUCB(bonus="tight")')[0].name
    "AdaR-UCB(bonus='tight')"
    >>> len(policies_from("RobustUCB"))
    3
    """
    name, given = policy_call(text)
    if given is not None:
        return [policy_made(name, given)]
    if name == "all":
        return [policy for policy in all_policies() if policy.uses_rewards]
    return list(policy_class(name).variants())


def problem_from(text: str) -> problems.Problem:
    """The problem that a text stands for: a builder of `robandit.problems` with its parameters, or a suite's task.

    >>> problem_from("negated_pareto(means=[-1.0, -1.5], tail=1.5)").means.tolist()
    [-1.0, -1.5]
    >>> problem_from("heavy/pareto-1.6").arms
    2
    """
    task = task_from(text)
    if task is not None:
        return task.problem
    name, given = problem_call(text)
    return problem_made(name, given or {})


def task_from(text: str) -> suites.Task | None:
    """The task that ``suite/task`` names; None for a text of another form."""
    head, slash, tail = text.partition("/")
    if not slash or "(" in head:
        return None
    suite = suite_from(head)
    tasks = {task.name: task for task in suite.tasks}
    if tail not in tasks:
        raise InvalidInput(unknown(f"problem {tail!r} of the suite {suite.name}", tail, tasks))
    return tasks[tail]


def suite_from(name: str) -> suites.Suite:
    """The suite of this name."""
    if name not in suites.NAMES:
        raise InvalidInput(unknown(f"suite {name!r}", name, suites.NAMES))
    return suites.named(name)


def policy_call(text: str) -> tuple[str, dict[str, Any] | None]:
    """The name and the parameters that a text says, not checked; None in place of parameters if there are no parentheses.

    A name of the tables stands for the class, or for the one of its policies that is so called.

    >>> policy_call("AdaKL-UCB"), policy_call("Robust UCB - Catoni")
    (('AdaKLUCB', None), ('RobustUCB', {'estimator': 'catoni'}))
    """
    if (found := _in_tables().get(text.strip())) is not None:
        name, given = found
        return name, None if given is None else dict(given)
    return _call(text, "policy", _POLICY, _policy_names(), _labels())


def problem_call(text: str) -> tuple[str, dict[str, Any] | None]:
    """The same for a problem."""
    return _call(text, "problem", _PROBLEM, BUILDERS, {})


def _call(
    text: str, what: str, example: str, known: Iterable[str], also: Mapping[str, str]
) -> tuple[str, dict[str, Any] | None]:
    source = text.strip()
    try:
        node: Any = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    if isinstance(node, ast.Name):
        return node.id, None
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        meant = close(text.partition("(")[0], known, also)
        raise InvalidInput(f"{what} {text!r} cannot be read{_question(meant)}: write it as {example}")
    name = node.func.id
    if node.args:
        raise InvalidInput(
            f"{what} {text!r}: {ast.get_source_segment(source, node.args[0])} has no name; give parameters by name: {example}"
        )
    given: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise InvalidInput(f"{what} {text!r}: ** has no meaning here; give parameters by name: {example}")
        if keyword.arg in given:
            raise InvalidInput(f"{what} {text!r}: {keyword.arg} is given twice; leave one of them out")
        given[keyword.arg] = _literal(keyword.value, source, f"{what} {text!r}: {keyword.arg}")
    return name, given


def written(name: str, given: Mapping[str, Any]) -> str:
    """The notation of a name with parameters.

    >>> written("gaussian", {"means": [1.0, 0.0], "sd": 2.0})
    'gaussian(means=[1.0, 0.0], sd=2.0)'
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def policy_class(name: str) -> type[Policy]:
    """The class of this name."""
    if name not in (known := _policy_names()):
        raise InvalidInput(unknown(f"policy {name!r}", name, [*known, "all"], _labels()))
    cls: type[Policy] = getattr(policies, name)
    return cls


def policy_made(name: str, given: Mapping[str, Any]) -> Policy:
    """The policy of that class with these parameters."""
    cls = policy_class(name)
    check_parameters(name, given)
    try:
        return Policy.from_dict(
            {"policy": cls.tag(), **given}
        )  # which checks types, and makes 2 a float where one is meant
    except (InvalidInput, ArithmeticError) as error:
        raise InvalidInput(f"{written(name, given)} cannot be made: {_why(cls, given, error)}") from error


def _why(cls: type[Policy], given: Mapping[str, Any], error: Exception) -> str:
    """What is wrong with a parameter: what the policy says of its value, or the types that it may have."""
    refusal = error.__cause__.__cause__ if error.__cause__ is not None else None
    if isinstance(refusal, InvalidInput):
        return str(refusal)
    wrong = re.search(r"`\$\.(\w+)", str(error))
    if wrong is None or wrong[1] not in given:
        return str(error)
    return f"{wrong[1]} = {given[wrong[1]]!r} must be {_kinds(get_type_hints(cls)[wrong[1]])}"


def _kinds(hint: Any) -> str:
    """A type as people read it: ``float or 'paper' or 'tight'``."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_args(hint):
        return " or ".join(map(_kinds, get_args(hint)))
    return "None" if hint is type(None) else str(hint.__name__)


def builder(name: str) -> Callable[..., problems.Problem]:
    """The builder of problems of this name."""
    if name not in BUILDERS:
        said = unknown(f"problem {name!r}", name, BUILDERS)
        raise InvalidInput(f"{said}, and problems of suites, such as heavy/pareto-1.6")
    build: Callable[..., problems.Problem] = getattr(problems, name)
    return build


def problem_made(name: str, given: Mapping[str, Any]) -> problems.Problem:
    """The problem that a builder makes of these parameters."""
    build = builder(name)
    check_parameters(name, given)
    known = parameters_of(name)
    missing = [key for key, default in known.items() if default is _REQUIRED and key not in given]
    if missing:
        raise InvalidInput(f"{written(name, given)} needs {' and '.join(missing)}: {name} has {_listed(known)}")
    try:
        return build(**given)
    except (InvalidInput, ArithmeticError) as error:  # the latter: such as a whole number beyond a double
        raise InvalidInput(f"{written(name, given)} cannot be made: {error}") from error


def parameters_of(name: str) -> dict[str, Any]:
    """The parameters of a policy or a builder, with their defaults; `inspect.Parameter.empty` for those that must be given."""
    if name in BUILDERS:
        return {key: each.default for key, each in inspect.signature(builder(name)).parameters.items()}
    return {field.name: field.default for field in dataclasses.fields(policy_class(name))}


def check_parameters(name: str, given: Iterable[str]) -> None:
    """Raise `InvalidInput` for one that this policy or builder does not have."""
    known = parameters_of(name)
    for key in given:
        if key not in known:
            raise InvalidInput(
                f"{name} has no parameter {key!r}{_question(close(key, known))}: it has {_listed(known) or 'none'}"
            )


def close(word: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> str | None:
    """The known word that was probably meant, whatever its case and signs; ``also`` are other spellings of known words.

    >>> close("ada-rucb", ["UCB1", "AdaRUCB"])
    'AdaRUCB'
    """
    spellings = {_bare(spelling): name for spelling, name in (also or {}).items()} | {
        _bare(name): name for name in known
    }
    found = difflib.get_close_matches(_bare(word), spellings, n=1, cutoff=0.7)
    return spellings[found[0]] if found else None


def _bare(word: str) -> str:
    return "".join(letter for letter in word.casefold() if letter.isalnum())


def _question(meant: str | None) -> str:
    return f" (did you mean {meant}?)" if meant else ""


def unknown(what: str, word: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> str:
    """What to say of a word that is not known: what was probably meant, and what there is."""
    return f"{what} is not known{_question(close(word, known, also))}: there are {', '.join(known)}"


def _listed(parameters: Mapping[str, Any]) -> str:
    return ", ".join(key if default is _REQUIRED else f"{key}={default!r}" for key, default in parameters.items())


def _literal(node: ast.expr, source: str, what: str) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        value = ...
    if not is_plain(value):
        raise InvalidInput(
            f"{what} is {ast.get_source_segment(source, node)}: it must be a number, a text, True, False, None or a list of these"
        )
    return value


def is_plain(value: Any) -> bool:
    """Whether a value can be a parameter: a number, a text, True, False, None or a list of these.

    A whole number of thousands of digits is none: written in hexadecimal it can be read, but no message can show it.
    """
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, int) and value.bit_length() > 10_000:
        return False
    return value is None or isinstance(value, (bool, int, float, str))


def _policy_names() -> list[str]:
    return sorted(policies.policy_names())


def _labels() -> dict[str, str]:
    return {getattr(policies, name).label: name for name in _policy_names()}


@functools.cache
def _in_tables() -> dict[str, tuple[str, dict[str, Any] | None]]:
    """What the names that tables show stand for; those with parameters in parentheses are left out."""
    found: dict[str, tuple[str, dict[str, Any] | None]] = {}
    for policy in all_policies():
        cls = type(policy)
        chosen = {
            field.name: value
            for field in dataclasses.fields(cls)
            if (value := getattr(policy, field.name)) != field.default
        }
        found[cls.label] = cls.__name__, None
        for name in {policy.name, policy.facts.title} - {cls.label, ""}:
            if "(" not in name:
                found[name] = cls.__name__, chosen if len(cls.variants()) > 1 else None
    return found

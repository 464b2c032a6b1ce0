"""Read policies and problems in Python's notation: ``AdaRUCB(bonus="tight")``, ``gaussian(means=[1.0, 0.0])``.

A policy of your own is written with its module, ``mine:CapUCB(cap=3)``. Only names and literals are parsed. No code is evaluated,
and no module is imported.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from robandit import policies, problems, suites
from robandit.errors import InvalidInput, formatted
from robandit.experiments import own_code
from robandit.hints import PARAMETERS, POLICIES, close, question, unknown
from robandit.policies import Policy, all_policies, former
from robandit.policies.base import is_template
from robandit.policies.wrapping import Wrapping

BUILDERS = (
    *("bernoulli", "changing", "delayed", "gaussian", "lower_bound_family"),
    *("negated_lomax", "negated_pareto", "pareto", "stable", "student_t"),
)
LONGEST = {"policy": 1_000, "problem": 200_000}  # characters
MOST_ARMS = 10_000  # of a problem in this notation: to make one takes about 0.1 ms per arm
_REQUIRED = inspect.Parameter.empty
_LISTS_ALL = "`robandit policies` lists all"
# Linear time: a string without an end takes all that follows, and a module begins only at the beginning of a word.
_STRING = r"""'(?:[^'\\]|\\.?)*(?:'|\Z)|"(?:[^"\\]|\\.?)*(?:"|\Z)"""
_OWN = re.compile(rf"{_STRING}|(?<![\w.])(?P<module>[^\W\d][\w.]*):(?P<name>[^\W\d]\w*)", re.DOTALL)


def policies_from(text: str) -> list[Policy]:
    """Return the policies that a text stands for.

    A name with parentheses is one policy. A bare name is the algorithm with default parameters, or all its variants if it has
    several. ``all`` is every policy that learns. Names from tables, such as AdaR-UCB, take no parameters, since tables round them.

    >>> policies_from('AdaRUCB(bonus="tight")')[0].name
    "AdaR-UCB(bonus='tight')"
    >>> len(policies_from("RobustUCB"))
    3
    >>> policies_from("Restarting(UCB1(scale=2.0), delta=0.1)")[0].name
    'UCB1(scale=2.0) with restarts (delta=0.1)'
    """
    name, parameters = policy_call(text)
    if parameters is not None:
        return [policy_made(name, parameters)]
    if name == "all":
        # What is added around a policy is for problems that change, logs or contexts; elsewhere it only adds regret.
        plain = [policy for policy in all_policies() if not isinstance(policy, Wrapping) and not policy.contextual]
        return [policy for policy in plain if policy.uses_rewards]
    return list(policy_class(name).variants())


def problem_from(text: str) -> problems.Problem:
    """Return the problem that a text stands for: a call of a builder in `robandit.problems`, or the name of a suite's task.

    >>> problem_from("negated_pareto(means=[-1.0, -1.5], tail=1.5)").means.tolist()
    [-1.0, -1.5]
    >>> problem_from("heavy/pareto-1.6").arms
    2
    >>> problem_from("changing(kind='swap', problem='heavy/pareto-1.6', at=500)").changes
    (500,)
    >>> problem_from("delayed(problem='heavy/pareto-1.6', delay='pareto(median=300)')").delay
    delays.pareto(median=300.0, tail=1.0)
    """
    task = task_from(text)
    if task is not None:
        return task.problem
    name, parameters = problem_call(text)
    return problem_made(name, parameters or {})


def task_from(text: str) -> suites.Task | None:
    """Return the task with the name ``suite/task``, or None if the text has another form."""
    head, slash, tail = text.partition("/")
    if not slash or "(" in head:
        return None
    suite = suite_from(head)
    tasks = {task.name: task for task in suite.tasks}
    if tail not in tasks:
        raise InvalidInput(unknown(f"problem {formatted(tail)} of the suite {suite.name}", tail, tasks))
    return tasks[tail]


def suite_from(name: str) -> suites.Suite:
    """Return the suite with this name."""
    if name not in suites.NAMES:
        raise InvalidInput(unknown(f"suite {formatted(name)}", name, suites.NAMES))
    return suites.named(name)


def policy_call(text: str) -> tuple[str, dict[str, Any] | None]:
    """Return the name and the parameters in a text, without checking them. Parameters are None if there are no parentheses.

    A name from a table stands for the class, or for the variant with that name.

    >>> policy_call("AdaKL-UCB"), policy_call("Robust UCB - Catoni")
    (('AdaKLUCB', None), ('RobustUCB', {'estimator': 'catoni'}))
    """
    _check_length(text, "policy")
    if (call := _table_names().get(text.strip())) is not None:
        return copy.deepcopy(call)
    return _call(text, "policy", "'AdaRUCB' or 'AdaRUCB(bonus=\"tight\")'", _policy_names(), _labels())


def problem_call(text: str) -> tuple[str, dict[str, Any] | None]:
    """Return the name and the parameters of a problem, as `policy_call` does for policies."""
    _check_length(text, "problem")
    example = "'negated_pareto(means=[-1.0, -1.5], tail=1.5)', or 'heavy/pareto-1.6' for a problem of a suite"
    return _call(text, "problem", example, BUILDERS, {})


def _check_length(text: str, kind: str) -> None:
    if len(text) > LONGEST[kind]:
        shown = f"{text[:60]} ... {text[-10:]}"  # `formatted` would read all of it
        fact = f"{kind} {formatted(shown)} has {len(text):,} characters, and may have at most {LONGEST[kind]:,}"
        raise InvalidInput(f"{fact}: give a name and its parameters, or build it in Python", parameter=kind, value=text)


def _call(
    text: str, kind: str, example: str, known: Iterable[str], also: Mapping[str, str]
) -> tuple[str, dict[str, Any] | None]:
    source = text.strip()
    if kind == "policy":  # mine:CapUCB is not Python, but mine.CapUCB is
        source = _OWN.sub(lambda own: f"{own['module']}.{own['name']}" if own["name"] else own[0], source)
    try:
        node: Any = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    if (name := _name(node, kind)) is not None:
        return name, None
    if not isinstance(node, ast.Call) or (name := _name(node.func, kind)) is None:
        if isinstance(node, ast.Tuple):
            raise InvalidInput(f"{kind} {formatted(text)} is several: give each separately, as {example}")
        meant = close(text.partition("(")[0], known, also)
        raise InvalidInput(f"{kind} {formatted(text)} cannot be read{question(meant)}: write it as {example}")
    call, by_name = f"{kind} {formatted(text)}", f"give parameters by name: {example}"
    if len(node.args) == 1 and kind == "policy" and _names_a_policy(node.args[0]):  # Probing(UCB1(scale=2.0))
        node.keywords.insert(0, ast.keyword("of", node.args.pop()))
    if node.args:
        raise InvalidInput(f"{call}: {str(ast.get_source_segment(source, node.args[0]))[:80]} has no name; {by_name}")
    parameters: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise InvalidInput(f"{call}: ** is not allowed; {by_name}")
        if keyword.arg in parameters:
            raise InvalidInput(f"{call}: {keyword.arg} is given twice; leave one of them out")
        if keyword.arg == "of" and _names_a_policy(keyword.value):
            parameters["of"] = ast.get_source_segment(source, keyword.value)
        else:
            parameters[keyword.arg] = _literal(keyword.value, source, f"{call}: {keyword.arg}")
    return name, parameters


def _name(node: ast.expr | None, kind: str) -> str | None:
    """Return a name, such as ``UCB1``, or for policies ``mine:CapUCB``; None if the node is something else."""
    if isinstance(node, ast.Name):
        return node.id
    if kind == "policy" and isinstance(node, ast.Attribute):
        module = _name(node.value, kind)
        return None if module is None else f"{module.replace(':', '.')}:{node.attr}"
    return None


def _names_a_policy(node: ast.expr) -> bool:
    """Return whether an argument is the policy inside another one: a name or a call."""
    return _name(node.func if isinstance(node, ast.Call) else node, "policy") is not None


def written(name: str, parameters: Mapping[str, Any]) -> str:
    """Write a name with parameters in this notation.

    >>> written("gaussian", {"means": [1.0, 0.0], "sd": 2.0})
    'gaussian(means=[1.0, 0.0], sd=2.0)'
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def policy_class(name: str) -> type[Policy]:
    """Return the policy class with this name: one of Robandit, or one of an imported module, ``mine:CapUCB``."""
    if ":" in name:
        module, _, own_name = name.partition(":")
        return _own_class(module, own_name)
    if name in (known := _policy_names()):
        cls: type[Policy] = getattr(policies, name)
        return cls
    own = own_code.named_policies()
    if name not in own:
        raise InvalidInput(unknown(f"policy {formatted(name)}", name, [*known, "all", *own], _labels(), _LISTS_ALL))
    if len(own[name]) > 1:
        raise InvalidInput(
            f"policy {formatted(name)} is in several modules: write {' or '.join(cls.tag() for cls in own[name])}"
        )
    return own[name][0]


def _own_class(module: str, name: str) -> type[Policy]:
    if module not in sys.modules:
        hint = f'add --import {module}, or imports = ["{module}"] in a spec, or import it in Python; this runs its code'
        raise InvalidInput(f"policy {module}:{name}: the module {module} is not imported. To use it, {hint}")
    cls = getattr(sys.modules[module], name, None)
    if not (isinstance(cls, type) and issubclass(cls, Policy) and not is_template(cls)):
        names = [each.__name__ for each in own_code.policies_of(module)]
        there = (
            unknown(f"policy {formatted(name)} of the module {module}", name, names)
            if names
            else f"{module} has no policies"
        )
        raise InvalidInput(there)
    return cls


def policy_made(name: str, parameters: Mapping[str, Any]) -> Policy:
    """Return the policy of this class with these parameters."""
    cls = policy_class(name)
    check_parameters(name, parameters)
    given = dict(parameters)
    if isinstance(inner := given.get("of"), str):
        variants = policies_from(inner)
        if len(variants) > 1:
            raise InvalidInput(
                f"{inner} stands for {len(variants)} policies: {name} takes one, such as {variants[0]!r}"
            )
        given["of"] = variants[0].to_dict()
    try:  # from_dict checks types, and converts 2 to 2.0 if the parameter is a float
        return Policy.from_dict({"policy": cls.tag(), **given})
    except (InvalidInput, ArithmeticError) as error:
        raise InvalidInput(f"{written(name, parameters)} cannot be made: {_reason(cls, parameters, error)}") from error


def _reason(cls: type[Policy], parameters: Mapping[str, Any], error: Exception) -> str:
    """Return the policy's own error message, or a message with the types that the parameter may have."""
    own_error = error.__cause__.__cause__ if error.__cause__ is not None else None
    if isinstance(own_error, InvalidInput):
        return str(own_error)
    wrong = re.search(r"`\$\.(\w+)", str(error))
    if wrong is None or wrong[1] not in parameters:
        return str(error)
    return f"{wrong[1]} = {parameters[wrong[1]]!r} must be {_kinds(get_type_hints(cls)[wrong[1]])}"


def _kinds(hint: Any) -> str:
    """Return a type in words, such as ``float or 'paper' or 'tight'``."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_args(hint):
        return " or ".join(map(_kinds, get_args(hint)))
    return "None" if hint is type(None) else str(hint.__name__)


def builder(name: str) -> Callable[..., problems.Problem]:
    """Return the builder of problems with this name."""
    if name not in BUILDERS:
        if name in suites.NAMES:
            one = f"{name}/{suites.named(name).tasks[0].name}"
            raise InvalidInput(
                f"problem {formatted(name)} is a suite: name one of its problems, such as {one}, or the suite"
            )
        known = unknown(f"problem {formatted(name)}", name, BUILDERS)
        raise InvalidInput(f"{known}, and problems of suites, such as heavy/pareto-1.6")
    build: Callable[..., problems.Problem] = getattr(problems, name)
    return build


def problem_made(name: str, parameters: Mapping[str, Any]) -> problems.Problem:
    """Return the problem that a builder makes from these parameters."""
    build = builder(name)
    check_parameters(name, parameters)
    known = parameters_of(name)
    missing = [key for key, default in known.items() if default is _REQUIRED and key not in parameters]
    if missing:
        raise InvalidInput(f"{written(name, parameters)} needs {' and '.join(missing)}: {name} has {_listed(known)}")
    for key, value in parameters.items():
        size = len(value) if isinstance(value, (list, tuple)) else value if key == "arms" else 0
        if isinstance(size, int) and size > MOST_ARMS:
            rule = f"{name}: {key} stands for {size:,} arms, and a problem in this notation has at most {MOST_ARMS:,}"
            raise InvalidInput(f"{rule}: use fewer arms, or build the problem in Python", parameter=key, value=value)
    given = dict(parameters)
    if name in ("changing", "delayed") and isinstance(given["problem"], str):
        given["problem"] = problem_from(given["problem"])
    if name == "delayed" and isinstance(given["delay"], str):
        given["delay"] = _delay_from(given["delay"])
    try:
        return build(**given)
    except (InvalidInput, ArithmeticError) as error:  # such as an integer too large for a float
        raise InvalidInput(f"{written(name, parameters)} cannot be made: {error}") from error


def _delay_from(text: str) -> problems.delays.Delay:
    """Return the delay that a text stands for, such as ``pareto(median=300)``."""
    kind, parameters = _call(text, "delay", "'pareto(median=300)'", problems.delays.KINDS, {})
    return problems.delays.Delay.from_dict({"kind": kind, **(parameters or {})})


def parameters_of(name: str) -> dict[str, Any]:
    """Return the parameters of a policy or a builder with their defaults (`inspect.Parameter.empty` if required)."""
    if name in BUILDERS:
        return {key: each.default for key, each in inspect.signature(builder(name)).parameters.items()}
    return {field.name: field.default for field in dataclasses.fields(policy_class(name))}


def check_parameters(name: str, parameters: Iterable[str]) -> None:
    """Raise `InvalidInput` for a parameter that this policy or builder does not have."""
    known = parameters_of(name)
    for key in parameters:
        if key not in known and key not in former.PARAMETERS.get(name, ()):
            meant = question(close(key, known, PARAMETERS))
            raise InvalidInput(f"{name} has no parameter {formatted(key)}{meant}: it has {_listed(known) or 'none'}")


def _listed(parameters: Mapping[str, Any]) -> str:
    return ", ".join(key if default is _REQUIRED else f"{key}={default!r}" for key, default in parameters.items())


def _literal(node: ast.expr, source: str, place: str) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        value = ...
    if isinstance(value, dict) and place.endswith(": arms"):  # Floor(arms={"control": 0.05})
        value = [list(pair) for pair in value.items()]
    if not is_plain(value):
        rule = "a number, a string, True, False, None or a list of these"
        raise InvalidInput(f"{place} is {ast.get_source_segment(source, node)}: it must be {rule}")
    return value


def is_plain(value: Any) -> bool:
    """Return whether a value can be a parameter: a number, a string, True, False, None or a list of these.

    Integers with thousands of digits are rejected, because Python can read them in hexadecimal but cannot print them.
    """
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, int) and value.bit_length() > 10_000:
        return False
    return value is None or isinstance(value, (bool, int, float, str))


def _policy_names() -> list[str]:
    return sorted(policies.policy_names())


def _labels() -> dict[str, str]:
    """Return other spellings of policies: their names in other libraries and in tables."""
    return POLICIES | {getattr(policies, name).label: name for name in _policy_names()}


@functools.cache
def _table_names() -> dict[str, tuple[str, dict[str, Any] | None]]:
    """Return the class and parameters for each name in tables that has no parameters in parentheses."""
    calls: dict[str, tuple[str, dict[str, Any] | None]] = {}
    for policy in all_policies():
        cls = type(policy)
        values = [(field, getattr(policy, field.name)) for field in dataclasses.fields(cls)]
        chosen = {field.name: value for field, value in values if value != field.default}
        calls[cls.label] = cls.__name__, None
        for name in {policy.name, policy.facts.title} - {cls.label, ""}:
            if "(" not in name:
                calls[name] = cls.__name__, chosen if len(cls.variants()) > 1 else None
    return calls

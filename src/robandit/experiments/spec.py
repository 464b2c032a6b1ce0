"""Read and check the description of an experiment in a TOML file: problems x policies x horizons."""

from __future__ import annotations

import os
import pathlib
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import msgspec

from robandit.errors import CorruptFile, FileError, InvalidInput, NewerFile, formatted
from robandit.experiments import spec_entries as entries
from robandit.experiments.plan import MOST_REPLICATIONS, Plan, Played, planned
from robandit.experiments.spec_entries import RULES, VERSION, Misplaced, PolicyEntry, ProblemEntry, misplaced
from robandit.files import named, read, shown
from robandit.policies import Policy
from robandit.problems import Problem
from robandit.simulate.simulation import name_clash
from robandit.validation import LARGEST_INTEGER, items_of, order
from robandit.validation import text as valid_text
from robandit.wording import counted

__all__ = ["EXAMPLE", "PolicyEntry", "ProblemEntry", "Spec", "parse_spec", "read_spec", "summary"]

EXAMPLE = (files("robandit.experiments") / "example.toml").read_text(encoding="utf-8")
LARGEST_SEED = 2**1024 - 1  # seeds are printed, and Python prints at most 4,300 digits


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of an experiment. All values are checked when it is created.

    Parameters
    ----------
    policies
        Strings in the notation of `robandit.experiments.notation`, or entries with a grid.
    problems
        Strings in the same notation, or entries with a name or a grid.
    suites
        Names of suites. Their problems are added with names such as ``heavy/pareto-1.6``.
    horizons
        Pulls in each replication. Every problem is played for each horizon. Empty: problems of suites use their own horizons.
    replications
        Independent runs of each policy.
    seed
        Same seed, same numbers.
    eps
        The value for policies that need the order of the moments. None: the right value for each problem.
    name
        The title of the experiment.
    imports
        Names of modules with policies of your own, which are then written ``mine:CapUCB(cap=3)``. `read_spec` searches them next
        to the spec, and ``Spec`` in the current folder. Importing a module runs its code.
    version
        The version of the format.

    Examples
    --------
    >>> spec = Spec(policies=("UCB1", "RobustUCB"), problems=("bernoulli(means=[0.5, 0.25])",), horizons=(1000,))
    >>> len(spec.plan().cells)
    4
    """

    version: int = VERSION
    name: str = "experiment"
    seed: int = 1
    replications: int = 50
    horizons: tuple[int, ...] = ()
    suites: tuple[str, ...] = ()
    problems: tuple[str | ProblemEntry, ...] = ()
    imports: tuple[str, ...] = ()
    policies: tuple[str | PolicyEntry, ...]
    eps: float | None = None

    def __post_init__(self) -> None:
        """Check everything, and store plain Python values."""
        entries.check_name(("name",), self.name)
        checked: dict[str, Any] = {
            "version": entries.checked_integer(("version",), self.version, VERSION, VERSION),
            "seed": entries.checked_integer(("seed",), self.seed, 0, LARGEST_SEED),
            "replications": entries.checked_integer(("replications",), self.replications, 1, MOST_REPLICATIONS),
        }
        for key in ("imports", "horizons", "suites", "problems", "policies"):
            values = getattr(self, key)
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise misplaced((key,), values)
            checked[key] = items_of(values, key, "entries")
        horizons = enumerate(checked["horizons"])
        checked["horizons"] = tuple(
            entries.checked_integer(("horizons", i), each, 1, LARGEST_INTEGER) for i, each in horizons
        )
        entries.import_all(checked["imports"], imported=True)
        for key in ("imports", "horizons", "suites"):
            for i, value in enumerate(checked[key]):
                if value in checked[key][:i]:
                    raise Misplaced((key, i), f"the {key[:-1]} {value} is given twice: leave one of them out")
        if self.eps is not None:
            try:
                checked["eps"] = order(self.eps)
            except InvalidInput:
                raise misplaced(("eps",), self.eps) from None
        for key, value in checked.items():
            msgspec.structs.force_setattr(self, key, value)
        self._check_policies(max((each.horizon for each in self.played()), default=0))

    def played(self) -> list[Played]:
        """Return the problems with their names and horizons."""
        named = entries.problems_in(self.suites, self.problems)
        if not named:
            needed = f"give problems ({RULES['problems']}) or suites ({RULES['suites']})"
            raise Misplaced((), f"there is nothing to play: {needed}")
        names: set[str] = set()
        seen: dict[Problem, str] = {}
        for one in named:
            if one.name in names:
                raise Misplaced(one.path, f"two problems are named {one.name!r}: rename one, or leave it out")
            if one.path[0] == "problems" and one.problem in seen:  # suites may have problems in common
                raise Misplaced(one.path, f"{one.name} is the same problem as {seen[one.problem]}: leave one out")
            names.add(one.name)
            seen.setdefault(one.problem, one.name)
            if not self.horizons and one.horizon is None:
                raise Misplaced(one.path, f"{one.name} has no horizon of its own: give horizons, {RULES['horizons']}")
        return [Played(one.name, one.problem, t) for one in named for t in self.horizons or (one.horizon or 0,)]

    def chosen(self) -> list[Policy]:
        """Return the policies as they are written, without the parameters that depend on the problem."""
        return [policy for _, policy in entries.policies_in(self.policies)]

    def plan(self) -> Plan:
        """Return the plan: each policy on each problem for each horizon, with exactly the parameters that it must know."""
        return planned(self.played(), self.chosen(), replications=self.replications, seed=self.seed, eps=self.eps)

    def _check_policies(self, horizon: int) -> None:
        if not self.policies:
            raise Misplaced(("policies",), f"there is none: it must be {RULES['policies']}")
        chosen = entries.policies_in(self.policies)
        if (repeated := name_clash([policy for _, policy in chosen])) is not None:
            raise Misplaced(chosen[repeated[0]][0], repeated[1])
        for path, policy in chosen:
            own = getattr(policy, "eps", None)
            if self.eps is not None and "eps" in policy.facts.knows and own not in (None, self.eps):
                raise Misplaced(path, f"{policy!r} has an eps, and the spec has eps = {self.eps!r}: leave one out")
            longest = getattr(policy, "horizon", None)
            if longest is not None and longest < horizon:
                clash = f"{policy!r} is made for {longest} pulls, but a horizon is {horizon}"
                raise Misplaced(path, f"{clash}: remove the policy's horizon")


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Read the spec in a TOML file. This runs the modules that it imports."""
    try:
        content = read(path)
    except FileError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise FileError(f"{error}; `robandit spec init` writes an example") from error.__cause__
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CorruptFile(f"{shown(path)}:{line}: this is not UTF-8, which TOML requires; check the file") from error
    return parse_spec(text, shown(path), folder=named(path).parent)


def parse_spec(text: str, where: str = "spec", *, folder: pathlib.Path | None = None) -> Spec:
    """Parse the spec in a TOML text. Error messages start with ``where``.

    Modules that the spec imports are searched in ``folder``, by default the current one.

    >>> parse_spec("policies = ['UCB1']\\nsuites = ['heavy']\\nreplications = 0")
    Traceback (most recent call last):
    ...
    robandit.errors.InvalidInput: spec: replications = 0 must be an integer from 1 to 1,000,000
    """
    text, where = valid_text(text, "text", "a text in TOML"), shown(valid_text(where, "where"))
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidInput(f"{where}: this is not TOML: {why}; see https://toml.io") from error
    version = data.get("version", VERSION)
    if type(version) is int and version > VERSION:
        raise NewerFile(
            f"{where}: version = {formatted(version)} needs a newer Robandit: this one "
            f"reads version {VERSION}; update Robandit, or write the spec for version {VERSION}"
        )
    try:
        for key in ("suites", "problems", "policies"):
            if data.get(key) == []:
                hint = "give" if key == "policies" else "leave it out, or give"
                raise Misplaced((key,), f"the list is empty: {hint} {RULES[key]}")
        if isinstance(data.get("imports"), list):
            entries.import_all(data["imports"], folder)
        return msgspec.convert(data, Spec)
    except (Misplaced, msgspec.ValidationError) as error:
        wrong = error if isinstance(error, Misplaced) else error.__cause__
        if not isinstance(wrong, Misplaced):  # msgspec's own error
            tables = (("", Spec), ("problems", ProblemEntry), ("policies", PolicyEntry))
            wrong = entries.mistyped(data, str(error), {key: kind.__struct_fields__ for key, kind in tables})
        raise InvalidInput(
            f"{where}: {wrong}", parameter=wrong.parameter, value=wrong.value, rule=wrong.rule
        ) from error


def summary(spec: Spec, plan: Plan) -> str:
    """Return the size of an experiment and the policies that are skipped. `robandit plan` estimates the time.

    >>> spec = Spec(policies=("UCB1",), problems=("bernoulli(means=[0.5, 0.25])",), horizons=(1000, 2000), replications=10)
    >>> print(summary(spec, spec.plan()))
    experiment: 1 problem x 1 policy x 2 horizons, 10 replications
    2 units of work, 30,000 pulls; robandit plan estimates the time
    """
    played = spec.played()
    names = {each.name for each in played}
    horizons = counted(len(spec.horizons), "horizon") if spec.horizons else "their own horizons"
    pulls = sum(cell.played.horizon for cell in plan.cells) * plan.replications
    text = [
        f"{spec.name}: {counted(len(names), 'problem')} x {counted(len(spec.chosen()), 'policy', 'policies')} x {horizons}, "
        f"{counted(spec.replications, 'replication')}",
        f"{counted(len(plan.units), 'unit')} of work, {pulls:,} pulls; robandit plan estimates the time",
    ]
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in plan.left_out:
        reasons.setdefault((each.label, each.reason), []).append(f"{each.played.name} ({each.played.horizon:,} pulls)")
    text += [f"{label} is skipped on {', '.join(on)}: {reason}" for (label, reason), on in reasons.items()]
    return "\n".join(text)

"""Robandit: multi-armed bandits with heavy-tailed rewards.

Start with `Bandit` (live decisions), `simulate` (policies on a problem), `recommend` (which policy), or ``robandit --help``.
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from robandit import (
        checks,
        diagnostics,
        drift,
        errors,
        estimators,
        experiments,
        features,
        laws,
        policies,
        problems,
        recorded,
        report,
        suites,
        theory,
        verify,
    )
    from robandit.diagnostics.recommend import Recommendation, recommend
    from robandit.features import Category, Number
    from robandit.live import events
    from robandit.live.bandit import Bandit
    from robandit.live.guardrails import Guardrail
    from robandit.live.ledger import Decision
    from robandit.policies import *  # noqa: F403  the list of policies is in policies/__init__.py
    from robandit.precompile import precompile
    from robandit.problems import Problem
    from robandit.simulate.result import Result
    from robandit.simulate.simulation import simulate

__version__ = "0.2.0"
__all__ = [
    "Bandit",
    "Category",
    "Decision",
    "Guardrail",
    "Number",
    "Problem",
    "Recommendation",
    "Result",
    "checks",
    "diagnostics",
    "drift",
    "errors",
    "estimators",
    "events",
    "experiments",
    "features",
    "laws",
    "policies",
    "precompile",
    "problems",
    "recommend",
    "recorded",
    "report",
    "simulate",
    "suites",
    "theory",
    "verify",
]

# Names are imported on first use, so that a program imports only what it needs: `robandit.client` works without NumPy.
if not TYPE_CHECKING:  # a type checker must see the imports above, and an error for a name that does not exist
    _WITHOUT_POLICIES = __all__
    del __all__  # `__getattr__` adds the policies, when somebody asks
    _HOMES = {
        "Bandit": "live.bandit",
        "Category": "features",
        "Decision": "live.ledger",
        "Guardrail": "live.guardrails",
        "Number": "features",
        "Problem": "problems",
        "Recommendation": "diagnostics",
        "Result": "simulate.result",
        "precompile": "precompile",
        "recommend": "diagnostics",
        "simulate": "simulate.simulation",
    }

    def __getattr__(name: str) -> _Any:
        """Import a public name. One that is not in the list above may be a policy."""
        if name in _HOMES:
            value = getattr(_import_module(f"robandit.{_HOMES[name]}"), name)
        elif name in _WITHOUT_POLICIES:
            value = _import_module("robandit.live.events" if name == "events" else f"robandit.{name}")
        elif name == "__all__":
            value = [*_WITHOUT_POLICIES, *_import_module("robandit.policies").__all__]
        elif (
            name.startswith("_")
            or not name.isidentifier()  # such as a.b, for which find_spec would import a
            or _find_spec(f"robandit.{name}") is not None  # Python imports a module itself
        ):
            raise AttributeError(f"module 'robandit' has no attribute {name!r}", name=name)
        elif name in _import_module("robandit.policies").__all__:
            value = getattr(_import_module("robandit.policies"), name)
        else:
            hint = _import_module("robandit.hints").name_hint(name, __dir__())
            if _sys._getframe(1).f_code.co_name == "_handle_fromlist":  # "from robandit import ..." would drop the hint
                raise ImportError(f"cannot import name {name!r} from 'robandit'{hint}", name=__name__, path=__file__)
            raise AttributeError(f"module 'robandit' has no attribute {name!r}{hint}", name=name)
        globals()[name] = value
        return value

    class _Package(_ModuleType):
        def __setattr__(self, name: str, value: _Any) -> None:
            """Keep `simulate` and `precompile` free for the functions: Python would put the modules of these names there."""
            if name not in _HOMES or not isinstance(value, _ModuleType):
                super().__setattr__(name, value)

    _sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*_sys.modules[__name__].__all__, "__version__"]

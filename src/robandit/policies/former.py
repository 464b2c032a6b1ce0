"""Policies as versions 0.1 and 0.2 wrote them: what they are called today, and which ones are gone.

Version 0.3 split `AdaKLUCB` and removed what measurements had superseded (docs/explanation/adakl.md):

- ``AdaKLUCB`` had the parameters center, schedule and pulls. ``schedule="adaptive"`` is today's `AdaKLUCB`. ``schedule="proved"``
  with ``center=None`` is `AdaKLProved`. ``schedule="practical"``, the default of 0.1, and centred proved ones are gone.
- ``AdaRUCB`` had the parameter center. None is today's `AdaRUCB`; ``"median"`` is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robandit.errors import InvalidInput

READER = "0.2.0"
"""The last version that reads and plays what is gone."""
PARAMETERS: dict[str, dict[str, Any]] = {
    "AdaKLUCB": {"center": "median", "schedule": "adaptive", "pulls": "single"},
    "AdaRUCB": {"center": None},
}
"""The parameters that are gone, with the defaults of 0.2."""
_VALUES = {"center": (None, "median"), "schedule": ("adaptive", "practical", "proved"), "pulls": ("single", "double")}
_PROVED = {"center": None, "schedule": "proved"}


def renewed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a policy (`Policy.to_dict`) with today's names. Raise `InvalidInput` for a policy that is gone.

    >>> renewed({"policy": "AdaKLUCB", "center": None, "schedule": "proved", "pulls": "double"})
    {'policy': 'AdaKLProved', 'pulls': 'double'}
    """
    current = {name: renewed(value) if _is_policy(value) else value for name, value in data.items()}
    tag = current.get("policy")
    gone = PARAMETERS.get(tag, {}) if isinstance(tag, str) else {}
    given = {name: current[name] for name in gone if name in current}
    if not given or not all(isinstance(value, str | None) and value in _VALUES[name] for name, value in given.items()):
        return current
    for name in given:
        del current[name]
    before = gone | given
    if tag == "AdaKLUCB" and before | _PROVED == before:
        return current | {"policy": "AdaKLProved", "pulls": before["pulls"]}
    if before != gone:
        changed = ", ".join(f"{name}={value!r}" for name, value in given.items() if value != gone[name])
        today = "AdaKLUCB() or AdaKLProved()" if tag == "AdaKLUCB" else "AdaRUCB() or AdaKLUCB()"
        fact = f"{tag}({changed}) is gone since Robandit 0.3: Robandit {READER} still reads and plays it"
        raise InvalidInput(f"{fact}. Today take {today}", parameter="policy", value=dict(data))
    return current


def identity(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a policy as 0.2 wrote them. Run folders name finished units by a hash of these data.

    >>> identity({"policy": "AdaKLUCB"})
    {'policy': 'AdaKLUCB', 'center': 'median', 'schedule': 'adaptive', 'pulls': 'single'}
    """
    earlier: dict[str, Any] = {name: identity(value) if _is_policy(value) else value for name, value in data.items()}
    if earlier["policy"] == "AdaKLProved":
        return earlier | _PROVED | {"policy": "AdaKLUCB"}
    return earlier | PARAMETERS.get(earlier["policy"], {})


def _is_policy(value: Any) -> bool:
    return type(value) is dict and "policy" in value

"""Every error that Robandit raises on purpose.

::

    RobanditError
    ├── InvalidInput (ValueError)    a value breaks a rule; the message names the value, the rule and the way out
    │   ├── AccessDenied             the decision service does not accept the key, or the key does not allow the call
    │   ├── InvalidReward            a reward that is NaN, infinite, not a number, or too large or small to square
    │   ├── MeanUndefined            an arm whose law has no finite mean
    │   ├── NoThresholdError         a sample with too few non-zero values for a trimming threshold
    │   └── NotApplicable            a parameter that the policy needs is infinite or unknown here, or the run is too long
    ├── UnknownArm (KeyError)        the bandit has no such arm
    ├── UnavailableArm               no arm can be chosen, because all are paused or retired
    ├── HorizonReached               more pulls than the policy was made for
    ├── DecisionError                a decision that is unknown, already rewarded or expired
    ├── NotFound                     the decision service has no such experiment, decision or key
    ├── Conflict                     an id or a name was used before with other content, or the state does not allow the call
    ├── Overloaded                   the decision service, or its client, cannot take more work now; try again later
    ├── ServiceUnavailable           the decision service cannot be reached, or did not answer in time
    ├── Undelivered                  a client of the decision service is closed before all its reports are delivered
    ├── BatchError                   the decision service rejected some items of a batch
    ├── StoreError                   the store of the decision service cannot be used
    │   └── StoreUnavailable         its database cannot be reached, or is busy; try again later
    ├── KernelError                  a hook that cannot be compiled, or does not work
    │   └── BrokenState              a hook used an index out of range: the state or the policy is broken
    ├── EngineLost                   the workers of a run cannot be reached, or disappeared
    ├── VersionSkew                  workers and client have different versions of packages
    └── FileError                    a file that cannot be written or read
        ├── CorruptFile              damaged, or not written by Robandit
        └── NewerFile                written by a newer Robandit

Every error but `BrokenState` leaves the object that raised it unchanged. An error about one value has the attributes
``parameter`` (the name), ``value`` and ``rule`` (what the value must be). ``code`` is a word for programs, which does not change
between versions. In other errors they are None.

Live bandits issue five warnings: `AssumptionWarning`, at most once by a bandit and its saved copies together; `DriftWarning`, once
per alarm; `GuardrailWarning`, once per arm that breaks one; `CompilationWarning`, at most once; and `ExpiryWarning`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from robandit_client import errors as _client
from robandit_client.errors import (
    AccessDenied,
    BatchError,
    Conflict,
    InvalidInput,
    InvalidReward,
    NotFound,
    Overloaded,
    RobanditError,
    ServiceUnavailable,
    Undelivered,
)
from robandit_client.errors import formatted as formatted
from robandit_client.wording import visible

__all__ = [
    "AccessDenied",
    "AssumptionWarning",
    "BatchError",
    "BrokenState",
    "CompilationWarning",
    "Conflict",
    "CorruptFile",
    "DecisionError",
    "DriftWarning",
    "EngineLost",
    "ExpiryWarning",
    "FileError",
    "GuardrailWarning",
    "HorizonReached",
    "InvalidInput",
    "InvalidReward",
    "KernelError",
    "MeanUndefined",
    "NewerFile",
    "NoThresholdError",
    "NotApplicable",
    "NotFound",
    "Overloaded",
    "RobanditError",
    "ServiceUnavailable",
    "StoreError",
    "StoreUnavailable",
    "UnavailableArm",
    "Undelivered",
    "UnknownArm",
    "VersionSkew",
]

# Tracebacks, pickles and the documentation name the classes as they always have. Without Robandit, they name the client's module.
for _name in _client.__all__:
    getattr(_client, _name).__module__ = __name__


class MeanUndefined(InvalidInput):
    """A law whose mean does not exist or is infinite, so that regret is undefined."""


class NoThresholdError(InvalidInput):
    """A sample with too few non-zero values: the equation of the trimming threshold has no root."""


class NotApplicable(InvalidInput):
    """A policy needs a parameter that is infinite or unknown on this problem, or cannot make the requested number of pulls."""


class HorizonReached(RobanditError):
    """A policy that must know the number of pulls in advance has made all of them."""

    code = "horizon-reached"


class UnknownArm(RobanditError, KeyError):
    """An arm that the bandit does not have."""

    code = "invalid"

    def __str__(self) -> str:
        """Return the message; KeyError would return its repr."""
        return str(self.args[0]) if self.args else ""


class UnavailableArm(RobanditError):
    """No arm can be chosen: all arms, or all arms that a choice allows, are paused or retired."""

    code = "no-arm"


class DecisionError(RobanditError):
    """A decision that is unknown, already rewarded or expired."""

    code = "conflict"


class StoreError(RobanditError):
    """The store of the decision service cannot be opened, read or written, or another server uses it."""

    code = "unavailable"


class StoreUnavailable(StoreError):
    """The database of the decision service cannot be reached, or is busy. The server goes on, and tries again."""


class KernelError(RobanditError):
    """A hook that cannot be compiled, or does not work."""


class BrokenState(KernelError):
    """The state of a live bandit does not fit its policy, or the policy has a defect. Every later call of the bandit raises it."""

    code = "broken"


class EngineLost(RobanditError):
    """The workers of a run disappeared or cannot be reached. Finished units are kept."""


class VersionSkew(RobanditError):
    """Workers and client have different versions of packages, so their numbers might differ."""


class FileError(RobanditError):
    """A file that cannot be written or read."""


class CorruptFile(FileError):
    """A file that is damaged, or was not written by Robandit."""


class NewerFile(FileError):
    """A file written by a newer version of Robandit."""


class AssumptionWarning(UserWarning):
    """The rewards contradict the assumption of a policy or an estimator, or look like costs that should be minimised.

    A bandit learns the rewards even if warnings are errors.
    """


class DriftWarning(UserWarning):
    """The law of an arm's rewards changed, says the drift detector of a live bandit. The rewards are learned as before."""


class ExpiryWarning(UserWarning):
    """Many decisions of a live bandit expired without a reward: more than 20 % of those that ended, and at least 50 ended."""


class GuardrailWarning(UserWarning):
    """An arm of a live bandit broke a guardrail. It is paused, unless no other arm is active."""


class CompilationWarning(UserWarning):
    """The hooks of a live bandit cannot be compiled. It goes on, with the same decisions, but slowly."""


def excerpt(names: Iterable[Any]) -> str:
    """Return names of the caller for a message, with commas: at most 5 of them, and 160 characters."""
    given = [visible(str(name)) for name in islice(names, 6)]
    text = ", ".join(given[:5]) + (", ..." if len(given) > 5 else "")
    return text if len(text) <= 160 else f"{text[:150]} ..."

"""Every error that Robandit raises on purpose.

::

    RobanditError
    ├── InvalidInput (ValueError)    a value breaks a rule; the message names the value, the rule and the way out
    │   ├── InvalidReward            NaN, infinite, not a number, or too large to square
    │   ├── MeanUndefined            a law without a finite mean was offered as an arm
    │   ├── NoThresholdError         a sample with too few non-zero values for a trimming threshold
    │   └── NotApplicable            a policy cannot be told what it must know here, or cannot play that long
    ├── UnknownArm (KeyError)        an arm that the bandit does not have
    ├── HorizonReached               a policy that was made for a number of pulls is asked for another
    ├── DecisionError                a decision that is unknown, or was already rewarded or expired
    ├── KernelError                  a hook that cannot be compiled
    ├── EngineLost                   the workers of a run cannot be reached, or went away
    ├── VersionSkew                  workers have other versions of packages than the client
    └── FileError                    a saved file that cannot be written or read
        ├── CorruptFile              damaged, or not one of ours
        └── NewerFile                written by a newer Robandit

All of them leave the object they were raised from as it was before the call. And one warning:

::

    AssumptionWarning (UserWarning)  a live bandit's rewards contradict what its policy assumes; said once in its life
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AssumptionWarning",
    "CorruptFile",
    "DecisionError",
    "EngineLost",
    "FileError",
    "HorizonReached",
    "InvalidInput",
    "InvalidReward",
    "KernelError",
    "MeanUndefined",
    "NewerFile",
    "NoThresholdError",
    "NotApplicable",
    "RobanditError",
    "UnknownArm",
    "VersionSkew",
]


class RobanditError(Exception):
    """The root: catch this to catch everything that Robandit raises on purpose."""


class InvalidInput(RobanditError, ValueError):
    """A value breaks a rule."""


class InvalidReward(InvalidInput):
    """A reward that cannot be learned from."""


class MeanUndefined(InvalidInput):
    """A law whose mean does not exist or is infinite, so that regret has no meaning."""


class NoThresholdError(InvalidInput):
    """A sample with too few non-zero values: the equation of the trimming threshold has no root."""


class NotApplicable(InvalidInput):
    """A policy must be told a number that is infinite or unknown on this problem, or is asked for more pulls than it can make."""


class HorizonReached(RobanditError):
    """A policy that must know the number of pulls in advance is asked for one more."""


class UnknownArm(RobanditError, KeyError):
    """An arm that the bandit does not have."""

    def __str__(self) -> str:
        """The message; KeyError would print its repr."""
        return str(self.args[0]) if self.args else ""


class DecisionError(RobanditError):
    """A decision that is unknown, or was already rewarded or expired."""


class KernelError(RobanditError):
    """A hook that cannot be turned into compiled code."""


class EngineLost(RobanditError):
    """Where units are to be played cannot be reached, or went away. What was finished is kept."""


class VersionSkew(RobanditError):
    """Workers have other versions of packages than the client: their numbers might differ."""


class FileError(RobanditError):
    """A file that cannot be written or read."""


class CorruptFile(FileError):
    """A file that is damaged, or is not one of Robandit's."""


class NewerFile(FileError):
    """A file written by a newer version of Robandit."""


class AssumptionWarning(UserWarning):
    """The rewards of a live bandit contradict what its policy assumes.

    Said once in the bandit's life, saved copies included. If it is turned into an error, what led to it is learned all the
    same.
    """


def shown(value: Any) -> str:
    """A value as messages show it: on one line, and not long."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # a whole number of thousands of digits, or lists inside lists without end
        return "a value that is too large to be shown"
    return text if len(text) <= 80 else f"{text[:60]} ... {text[-10:]}"

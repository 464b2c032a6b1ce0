"""A function of Robandit itself that all bandits of a process share. It runs interpreted until it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robandit.kernel.background import in_background
from robandit.kernel.build import Entry, compiled, kernel_of, unchecked
from robandit.kernel.cache import Kernel
from robandit.kernel.interpreted import interpreted


class Shared:
    """A function with example arguments. Its entry takes its arguments as `robandit.kernel.build.flat` returns them."""

    def __init__(self, function: Callable[..., Any], label: str, args: tuple[Any, ...]) -> None:
        """Compile nothing yet."""
        self._function, self._label, self._args = function, label, args
        self._slow = interpreted(function, args=args)
        self._asked = False
        self._fast: Entry | None = None
        self.found: list[Entry] = []
        """The compiled function, as soon as this process has it."""

    def prepare(self, compile: str) -> None:
        """Compile the function before it is used (``"now"``), beside the program (``"background"``), or ``"never"``."""
        if compile == "now":
            self.compiled()
        elif compile == "background" and not (self.found or self._asked):
            self._asked = True
            in_background(self, self._function, label=self._label, args=self._args, then=Shared._keep)

    def _keep(self, result: Entry | Exception) -> None:
        if not isinstance(result, Exception):  # if so, the bandit's own hooks were not compiled either, and it warns
            self.found.append(result)

    def compiled(self) -> Entry:
        """Return the compiled function. The first call compiles it or loads it from the cache."""
        if not self.found:
            self.found.append(compiled(self._function, label=self._label, args=self._args))
        return self.found[0]

    def ready(self) -> Entry:
        """Return the function, compiled if it is, else interpreted."""
        return self.found[0] if self.found else self._slow

    def fast(self) -> Entry:
        """Return `ready` without the check of the argument types, for arguments whose types never change."""
        if self._fast is None and self.found:
            self._fast = unchecked(self.found[0])
        return self._fast or self._slow

    def kernel(self) -> Kernel:
        """Return the kernel of the function, to be compiled by another process."""
        return kernel_of(self._function, self._args)

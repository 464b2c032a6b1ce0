"""HTML pages and figures. `robandit.cli.terminal` formats the output of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robandit.report.page import write as write

__all__ = ["write"]


def __getattr__(name: str) -> Any:
    """Import the page on first use, since it needs SciPy's statistics."""
    if name == "write":
        from robandit.report.page import write

        return write
    raise AttributeError(f"module 'robandit.report' has no attribute {name!r}")

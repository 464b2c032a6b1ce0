"""Turns hooks into compiled, cached kernels; the loops; lazy arg-max; random streams."""

from robandit.kernel.build import compiled
from robandit.kernel.cache import cache_directory

__all__ = ["cache_directory", "compiled"]

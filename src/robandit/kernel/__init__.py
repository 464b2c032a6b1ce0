"""How a policy and a problem become one compiled loop; caching; lazy arg-max; random streams."""

from __future__ import annotations

from robandit.kernel.build import compiled
from robandit.kernel.cache import cache_directory

__all__ = ["cache_directory", "compiled"]

"""`pytest.raises` for errors by what they carry: parameter, value, rule and code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from robandit.errors import RobanditError

Error = TypeVar("Error", bound=RobanditError)


@contextmanager
def raises(kind: type[Error], *, match: str | None = None, **carried: Any) -> Iterator[pytest.ExceptionInfo[Error]]:
    """Expect an error with these attributes; of the rule, a part is enough. ``match`` is for tests of the prose itself."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    for name, expected in carried.items():
        given = getattr(caught.value, name)
        fits = expected in (given or "") if name == "rule" else given == expected
        assert fits, f"{name} is {given!r}, not {expected!r}: {caught.value}"

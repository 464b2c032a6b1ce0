"""Options of the commands about the decision service."""

from __future__ import annotations

import importlib.util
from typing import Annotated

from cyclopts import Parameter

from robandit.errors import InvalidInput

DEFAULT_STORE = "sqlite:robandit.db"
Location = Annotated[
    str,
    Parameter(
        name="--store",
        env_var="ROBANDIT_STORE",
        help="The store: sqlite:PATH, or postgresql://USER@HOST/DATABASE. Set the password with PGPASSWORD or PGPASSFILE.",
    ),
]
SqliteLocation = Annotated[str, Parameter(name="--store", env_var="ROBANDIT_STORE", help="The store, as sqlite:PATH.")]


def check_installed() -> None:
    """Raise `InvalidInput` if a package of the decision service is missing."""
    missing = [name for name in ("httptools", "apsw") if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"the package {missing[0]} is missing: install the decision service with pip install 'robandit[serve]'"
        )

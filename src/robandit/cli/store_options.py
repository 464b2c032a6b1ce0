"""Options of the commands about the decision service."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from robandit.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from robandit.storage import Store

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


def opened_alone(store: str, way_out: str) -> Store:
    """Open a store that no server uses. ``way_out`` says what to do if one does."""
    from robandit.storage import open_store

    try:
        return open_store(store, create=False)
    except StoreError as error:
        if error.code != "store-in-use":
            raise
        raise StoreError(f"a server uses {store}: {way_out}", code=error.code) from None


def check_installed() -> None:
    """Raise `InvalidInput` if a package of the decision service is missing."""
    missing = [name for name in ("httptools", "apsw") if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"the package {missing[0]} is missing: install the decision service with pip install 'robandit[serve]'"
        )

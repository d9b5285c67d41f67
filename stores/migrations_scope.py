"""The change that lets a key be confined to sources and versions."""

from __future__ import annotations

import sqlite3

from stores.migrations import migration


@migration
def m019_key_scope(connection: sqlite3.Connection) -> None:
    """Keep to what a key is confined, as JSON, NULL for nothing; earlier sums stay right."""
    connection.execute("ALTER TABLE api_keys ADD COLUMN scope TEXT")

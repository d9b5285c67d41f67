"""The change that makes ids of documents and chunks unpredictable outside the data directory."""

from __future__ import annotations

import sqlite3
from secrets import token_hex

from stores.migrations import migration

ID_SECRET = "id_secret"  # in `meta`; goes into every key of a document and every id of a chunk
SECRET_BYTES = 16
SECRET = f"coalesce((SELECT value FROM meta WHERE key = '{ID_SECRET}'), '')"  # SQL


def new_secret() -> str:
    """Return a random secret, in hexadecimal."""
    return token_hex(SECRET_BYTES)


@migration
def m018_id_secret(connection: sqlite3.Connection) -> None:
    """Keep a secret that ids are made with: else ids tell who compares them which names are taken.

    What is there already stays as it is named, so a directory in use has an empty secret.
    """
    used = "SELECT EXISTS (SELECT 1 FROM documents) OR EXISTS (SELECT 1 FROM kept_out)"
    secret = "" if connection.execute(used).fetchone()[0] else new_secret()
    connection.execute("INSERT INTO meta VALUES (?, ?)", (ID_SECRET, secret))

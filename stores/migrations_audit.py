"""The change that lets names of documents be struck out of audit rows of earlier versions."""

from __future__ import annotations

import sqlite3

from stores.audit_names import NAMED_UPTO
from stores.migrations import migration


@migration
def m015_audit_names(connection: sqlite3.Connection) -> None:
    """Note up to which row the audit log may name documents; later rows hold pseudonyms."""
    last = connection.execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()[0]
    if last:
        connection.execute("INSERT INTO meta VALUES (?, ?)", (NAMED_UPTO, str(last)))

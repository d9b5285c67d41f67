"""Row ids that are never used again, so that what names a row cannot come to mean another."""

from __future__ import annotations

TABLES = ("collections", "documents", "chunks")


def next_id(table: str) -> str:
    """Return the SQL of the next row id of one of `TABLES`; a trigger notes what was used."""
    assert table in TABLES
    return f"(SELECT value + 1 FROM meta WHERE key = 'last_{table}')"

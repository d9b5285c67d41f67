"""Arrange a collection after its documents have changed: number repeats, link texts to books.

Both are worked out from the truth alone, so that they do not depend on the order of files or on
how often something was ingested; what has not changed since is not looked at again.
"""

from __future__ import annotations

from core.auth import AuthContext
from core.settings import Settings
from ingest.catalogue.keys import book_keys, text_keys
from ingest.catalogue.prints import print_of
from stores.catalogue import Collection
from stores.store import Store
from stores.writer import bump

RULES = 1  # raise it when prints or keys change


def arrange(
    store: Store, collection: Collection, settings: Settings, auth: AuthContext | None = None
) -> list[str]:
    """Bring repeats and links up to date; return notes on what is left out of searches.

    With `auth` they count only what this caller may see.
    """
    mark = f"{RULES}:{settings.drop_repeats:d}{settings.book_links:d}"
    version = store.catalogue.index_version()
    if _arranged(store, collection) != f"{version}:{mark}":
        changed = (
            store.repeats.update(collection, print_of)
            if settings.drop_repeats
            else store.repeats.clear(collection)
        )
        changed += (
            store.books.link(collection, text_keys, book_keys)
            if settings.book_links
            else store.books.clear(collection)
        )
        with store.database.write() as connection:
            if changed:
                bump(connection)
                version += 1
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                (_name(collection), f"{version}:{mark}"),
            )
    return _notes(store, collection, auth)


def _notes(store: Store, collection: Collection, auth: AuthContext | None) -> list[str]:
    annotations, passages = store.repeats.count(collection, auth)
    notes = []
    if annotations:
        notes.append(
            f"{annotations} annotations are those of other records and found there only;"
            " `carrel quality` lists them"
        )
    if passages:
        notes.append(f"{passages} passages repeat others and are found only once")
    return notes


def _arranged(store: Store, collection: Collection) -> str:
    row = (
        store.database.read()
        .execute("SELECT value FROM meta WHERE key = ?", (_name(collection),))
        .fetchone()
    )
    return str(row[0]) if row else ""


def _name(collection: Collection) -> str:
    return f"arranged_{collection.id}"

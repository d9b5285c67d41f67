"""Make the derived indexes anew from the catalogue."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from core.settings import Settings
from ingest.pipeline import Progress
from ingest.vectors import embed_missing
from models.embeddings import Embedder
from stores.catalogue import Catalogue
from stores.database import Database
from stores.fulltext_rebuild import rebuild_fulltext
from stores.store import Store


def rebuild(
    store: Store,
    embedder: Embedder,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
    *,
    words: bool = True,
) -> dict[str, Any]:
    """Rebuild full text and vectors; texts without a vector of these models are embedded first.

    Without `words` the full text stays as it is.
    """
    started = time.monotonic()
    rows = rebuild_words(store.database, progress) if words else 0
    embedded = 0
    for stage, model in (("embed", embedder), ("second", second)):
        if model is not None:
            embedded += embed_missing(store, model, settings.ingest_batch, partial(progress, stage))
    done, total = 0, _count_chunks(store.database)

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("vectors", done, total)

    vectors = store.rebuild_vectors(advance)
    _rebuild_segments(store, progress)
    return {
        "fts_rows": rows,
        "vectors": vectors,
        "embedded": embedded,
        "seconds": round(time.monotonic() - started, 3),
    }


def rebuild_words(database: Database, progress: Progress) -> int:
    """Make the full text of all collections anew; return the number of chunks."""
    return sum(
        rebuild_fulltext(database, one.id, partial(progress, f"text {one.name}"))
        for one in Catalogue(database).collections()
    )


def _count_chunks(database: Database) -> int:
    return int(database.read().execute("SELECT count(*) FROM chunks").fetchone()[0])


def _rebuild_segments(store: Store, progress: Progress) -> None:
    for collection in store.catalogue.collections():
        stage = f"segment {collection.name}"
        store.hot.rebuild(collection, partial(progress, stage))

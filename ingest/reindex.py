"""Make the derived indexes anew from the catalogue."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from core.settings import Settings
from ingest.pipeline import Progress
from ingest.vectors import embed_missing
from models.embeddings import Embedder
from stores.fulltext_rebuild import rebuild_fulltext
from stores.store import Store


def rebuild(
    store: Store,
    embedder: Embedder,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
) -> dict[str, Any]:
    """Rebuild full text and vectors; texts without a vector of these models are embedded first."""
    started = time.monotonic()
    rows = _rebuild_fulltext(store, progress)
    embedded = 0
    for stage, model in (("embed", embedder), ("second", second)):
        if model is not None:
            embedded += embed_missing(store, model, settings.ingest_batch, partial(progress, stage))
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("vectors", done, rows)

    vectors = store.rebuild_vectors(advance)
    _rebuild_segments(store, progress)
    return {
        "fts_rows": rows,
        "vectors": vectors,
        "embedded": embedded,
        "seconds": round(time.monotonic() - started, 3),
    }


def _rebuild_fulltext(store: Store, progress: Progress) -> int:
    return sum(
        rebuild_fulltext(store.database, one.id, partial(progress, f"text {one.name}"))
        for one in store.catalogue.collections()
    )


def _rebuild_segments(store: Store, progress: Progress) -> None:
    for collection in store.catalogue.collections():
        stage = f"segment {collection.name}"
        store.hot.rebuild(collection, partial(progress, stage))

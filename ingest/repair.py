"""Repair what is derived from the truth, and embed again only what has no sound vector."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from core.faults import fault
from core.settings import Settings
from ingest.pipeline import Progress
from ingest.vectors import embed_missing
from models.embeddings import Embedder
from stores.store import Store


def repair(
    store: Store,
    embedder: Embedder | None,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
) -> list[str]:
    """Repair the directory and return what was done; what is damaged in the truth stays so."""

    def embed() -> list[str]:
        shown = partial(progress, "embed")
        models = [one for one in (embedder, second) if one is not None]
        counts = [embed_missing(store.intake, one, settings.ingest.batch, shown) for one in models]
        return [f"{n} texts without a sound vector were embedded again" for n in counts if n]

    maintenance = store.maintenance
    return maintenance.repair(embed, progress)


def rebuild(
    store: Store,
    embedder: Embedder,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
    *,
    words: bool = True,
    switched: bool = False,
) -> dict[str, Any]:
    """Rebuild full text and vectors; texts without a vector of these models are embedded first.

    Without `words` the full text stays as it is. An index that was `switched` to is made already,
    but for what it does not have yet.
    """
    started = time.monotonic()
    intake, catalogue = store.intake, store.catalogue
    rows = intake.rebuild_words(progress) if words else 0
    embedded = 0
    for stage, model in (("embed", embedder), ("second", second)):
        if model is not None:
            embedded += embed_missing(
                intake, model, settings.ingest.batch, partial(progress, stage)
            )
    search = store.search
    fault("rebuild.before")
    for collection in catalogue.collections():
        made = search.refresh if switched else search.rebuild
        made(collection, partial(progress, f"index {collection.name}"))
    fault("rebuild.after")
    return {
        "fts_rows": rows,
        "vectors": intake.count_vectors(embedder.model_id),
        "embedded": embedded,
        "seconds": round(time.monotonic() - started, 3),
    }

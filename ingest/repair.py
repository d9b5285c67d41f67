"""Repair what is derived from the truth, and embed again only what has no sound vector."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from core.faults import fault
from core.settings import Settings
from ingest.pipeline import Progress
from ingest.vectors import embed_missing
from models.embeddings import Embedder
from stores.index.port import SearchIndex
from stores.ports import Maintenance
from stores.sqlite.catalogue import Collection
from stores.store import Store


def repair(
    store: Store,
    embedder: Embedder | None,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
) -> list[str]:
    """Repair the directory and return what was done; what is damaged in the truth stays so."""
    maintenance, catalogue = store.maintenance, store.catalogue
    collections = catalogue.collections()
    done = [*_vectors(maintenance), *_documents(maintenance), *_fulltext(maintenance, collections)]
    for model in (embedder, second):
        if model is None:
            continue
        count = embed_missing(
            store.intake, model, settings.ingest.batch, partial(progress, "embed")
        )
        if count:
            done.append(f"{count} texts without a sound vector were embedded again")
    done += _index(store.search, collections, progress)
    done += [f"{name} was removed" for name in maintenance.remove_orphans()]
    maintenance.check_rows()
    maintenance.check_sample()
    maintenance.clear_repairs()
    return done


def _vectors(maintenance: Maintenance) -> list[str]:
    """Drop damaged vectors, so that they are computed again."""
    dropped = maintenance.drop_damaged_vectors()
    return [f"{dropped} damaged vectors were dropped"] if dropped else []


def _documents(maintenance: Maintenance) -> list[str]:
    """Let the next ingest of their files read damaged documents again."""
    count = maintenance.read_damaged_again()
    if not count:
        return []
    return [f"{count} damaged documents are read anew when their files are ingested again"]


def _fulltext(maintenance: Maintenance, collections: Sequence[Collection]) -> list[str]:
    done = []
    for collection in collections:
        if problem := maintenance.fulltext_problem(collection):
            maintenance.rebuild_fulltext(collection)
            done.append(f"full text of '{collection.name}' was rebuilt ({problem})")
    return done


def _index(search: SearchIndex, collections: Sequence[Collection], progress: Progress) -> list[str]:
    done = []
    for collection in collections:
        if problems := search.problems([collection]):
            search.rebuild(collection, partial(progress, f"index {collection.name}"))
            done.append(f"the search index of '{collection.name}' was rebuilt ({problems[0]})")
    return done


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
        search.rebuild(collection, partial(progress, f"index {collection.name}"))
    fault("rebuild.after")
    return {
        "fts_rows": rows,
        "vectors": intake.count_vectors(embedder.model_id),
        "embedded": embedded,
        "seconds": round(time.monotonic() - started, 3),
    }

"""Repair what is derived from the truth, and embed again only what has no sound vector."""

from __future__ import annotations

import shutil
from functools import partial

from core.settings import Settings
from ingest.pipeline import Progress
from ingest.vectors import embed_missing
from models.embeddings import Embedder
from stores.findings import fulltext_findings
from stores.fulltext_rebuild import rebuild_fulltext
from stores.health import vector_sets
from stores.inventory import orphan_files
from stores.mending import drop_vectors, read_anew
from stores.store import Store


def repair(
    store: Store,
    embedder: Embedder | None,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
) -> list[str]:
    """Repair the directory and return what was done; what is damaged in the truth stays so."""
    done = [*_vectors(store), *_documents(store), *_fulltext(store)]
    for model in (embedder, second):
        if model is None:
            continue
        count = embed_missing(store, model, settings.ingest_batch, partial(progress, "embed"))
        if count:
            done.append(f"{count} texts without a sound vector were embedded again")
    done += [*_index(store, progress), *_segments(store), *_orphans(store)]
    store.checkup.parts.rows()
    store.checkup.sample()
    store.checkup.settled()
    return done


def _vectors(store: Store) -> list[str]:
    """Drop damaged vectors, so that they are made anew."""
    damaged = store.checkup.parts.rows().vectors
    if not damaged:
        return []
    with store.database.write() as connection:
        dropped = drop_vectors(connection)
    return [f"{dropped} damaged vectors were dropped"]


def _documents(store: Store) -> list[str]:
    """Let the next ingest of their files read damaged documents anew."""
    count = read_anew(store.database)
    if not count:
        return []
    return [f"{count} damaged documents are read anew when their files are ingested again"]


def _fulltext(store: Store) -> list[str]:
    done = []
    for collection in store.catalogue.collections():
        problem = fulltext_findings(store.database, collection.id).problem()
        if problem:
            rebuild_fulltext(store.database, collection.id)
            done.append(f"full text of '{collection.name}' was made anew ({problem})")
    return done


def _index(store: Store, progress: Progress) -> list[str]:
    """Drain the outbox into a sound vector index, or make the index anew."""
    pending = store.outbox.pending()

    def advance(count: int) -> None:
        progress("vectors", count, count)

    if store.chroma.unsound() or vector_sets(store)[0]:
        made = store.rebuild_vectors(advance)
        store.chroma.close()
        return [f"the vector index was made anew from {made} stored vectors"]
    if pending:
        store.outbox.drain(advance)
        store.chroma.close()
        return [f"{pending} pending changes reached the vector index"]
    return []


def _segments(store: Store) -> list[str]:
    done = []
    for collection in store.catalogue.collections():
        if problems := store.hot.problems([collection]):
            store.hot.rebuild(collection)
            done.append(f"the search segment of '{collection.name}' was made anew ({problems[0]})")
    return done


def _orphans(store: Store) -> list[str]:
    found = orphan_files(store)
    for name in found:
        path = store.folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return [f"{name} was removed" for name in found]

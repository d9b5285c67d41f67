"""The search indexes by name. A new place for vectors is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from core.distribution import require_extra
from core.errors import CarrelError, OperatorError
from core.settings import Settings
from stores.folder import CHROMA, FOLDERS, MEMMAP, MILVUS
from stores.index.place import (
    IndexPlace,
    checked_place,
    forget_index,
    record_place,
    recorded_place,
    remove_files,
    wanted_place,
)
from stores.index.port import VectorIndex
from stores.index.tracking import TrackedVectors, keep_mark
from stores.segments.search import SegmentSearch
from stores.sqlite.catalogue import VisiblePassages
from stores.sqlite.database import Database
from stores.sqlite.fulltext import FullText
from stores.sqlite.implementation import SqliteIntake, opened_record

Opener = Callable[[Database, IndexPlace, str, Settings], VectorIndex]
StageProgress = Callable[[str, int, int], None]


def _loaded(index: str, extra: str) -> ModuleType:
    """Import what speaks to a place for vectors: nothing of it is loaded where it is not chosen."""
    require_extra(extra, f"index '{index}'", otherwise="`carrel reindex --index memmap`")
    return import_module(f"stores.index.{index}")


def _chroma(database: Database, place: IndexPlace, model: str, settings: Settings) -> VectorIndex:
    made: VectorIndex = _loaded(CHROMA, "chroma").ChromaVectors(
        database.path.parent / CHROMA,
        place.url,
        place.key,
        model,
        batch=settings.ingest.vector_batch,
        timeout_s=settings.chroma.timeout_s,
    )
    return made


def _milvus(database: Database, place: IndexPlace, model: str, settings: Settings) -> VectorIndex:
    def tenant_of(collection_id: int) -> str:
        query = "SELECT tenant FROM collections WHERE id = ?"
        row = database.read().execute(query, (collection_id,)).fetchone()
        return str(row[0]) if row else ""

    made: VectorIndex = _loaded(MILVUS, "scale").MilvusVectors(
        place.url,
        database.path.parent / MILVUS,
        place.key,
        model,
        tenant_of=tenant_of,
        batch=settings.ingest.vector_batch,
        timeout_s=settings.chroma.timeout_s,
    )
    return made


# What keeps the vectors of each index; None for the arrays of the segments themselves.
VECTORS: dict[str, Opener | None] = {MEMMAP: None, CHROMA: _chroma, MILVUS: _milvus}


def open_index(
    folder: Path, database: Database, fulltext: FullText, model: str, settings: Settings
) -> SegmentSearch:
    """Return the search index that a data directory has; nothing of it is opened yet.

    A new directory gets the one that the settings say, unless something of that is not installed.
    Raises OperatorError where they say another than the directory has.
    """
    kept = recorded_place(database)
    place = checked_place(kept, settings).with_key()
    opener, tracked = VECTORS[place.name], None
    if opener is not None:
        index = opener(database, place, model, settings)
        tracked = TrackedVectors(database, index, model)
    if kept is None and not database.condition.read_only:
        with database.write() as connection:
            record_place(connection, place)
    return SegmentSearch(folder, FOLDERS[place.name], database, fulltext, model, settings, tracked)


def switch_index(
    settings: Settings,
    model: str,
    progress: StageProgress,
    embed: Callable[[SqliteIntake], object] = lambda intake: None,
) -> str | None:
    """Give the directory the index that the settings ask for, with the vectors of `model`.

    It is recorded when it has all of them; what fails before leaves everything as it was. Words are
    left to `refresh`. `embed` makes vectors that are missing. Returns a note, None where the index
    is that one already. The directory must be owned and not open.
    """
    with opened_record(settings, alone=True) as record:
        database, folder = record.database, record.folder
        before = recorded_place(database)
        wanted = wanted_place(settings, before.record if before else "").with_key()
        if before is None or before.record == wanted.record:
            return None
        embed(record.intake)
        marks = _built(database, wanted, model, settings, progress)
        with database.write() as connection:
            forget_index(connection)
            for collection_id, mark in marks.items():
                keep_mark(connection, collection_id, model, mark)
            record_place(connection, wanted)
        note = _left_behind(database, before, settings)
        own = "" if wanted.url or VECTORS[wanted.name] is None else FOLDERS[wanted.name][-1]
        remove_files(folder, own)
        return note


def _built(
    database: Database, place: IndexPlace, model: str, settings: Settings, progress: StageProgress
) -> dict[int, int]:
    """Write all vectors to a place; return how far that is, by collection."""
    opener = VECTORS[place.name]
    if opener is None:
        return {}
    index, marks = opener(database, place, model, settings), {}
    tracked = TrackedVectors(database, index, model)
    try:
        index.clear()  # of a build that was ended; a server that is away says so here
        for one in VisiblePassages(database).collections():
            shown = partial(progress, f"vectors {one.name}")
            for mark in tracked.written(one.id, progress=shown):
                marks[one.id] = mark
    except BaseException:
        with suppress(CarrelError):
            index.clear()
        raise
    finally:
        index.close()
    return marks


def _left_behind(database: Database, before: IndexPlace, settings: Settings) -> str:
    """Remove what a server had of the index before; say why that cannot be."""
    opener = VECTORS[before.name]
    if opener is None or not before.url:
        return ""
    try:
        with closing(opener(database, before, "", settings)) as index:
            index.clear()
    except OperatorError as error:
        return f"what {before.url} has of this directory stays there: {error.rule}"
    return ""

"""The search indexes by name. A new place for vectors is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from core.distribution import require_extra
from core.settings import Settings
from stores.folder import CATALOGUE as FILE
from stores.folder import data_folder
from stores.index.folders import CHROMA, FOLDERS, MEMMAP
from stores.index.place import IndexPlace, place_of, recorded_place, switch_place, wanted_place
from stores.index.port import IndexUnavailableError, VectorIndex
from stores.index.tracking import TrackedVectors
from stores.integrity.file_manifest import FileManifest
from stores.segments.search import SegmentSearch
from stores.sqlite.database import Database, explained
from stores.sqlite.fulltext import FullText

Opener = Callable[[Path, IndexPlace, str, Settings], VectorIndex]


def _chroma(folder: Path, place: IndexPlace, model: str, settings: Settings) -> VectorIndex:
    require_extra("chroma", "index 'chroma'", otherwise="`carrel reindex --index memmap`")
    from stores.index import chroma  # late: nothing of Chroma is loaded where it is not chosen

    return chroma.ChromaVectors(
        folder / chroma.FOLDER,
        place.url,
        place.key,
        model,
        batch=settings.ingest.vector_batch,
        timeout_s=settings.chroma.timeout_s,
    )


# What keeps the vectors of each index; None for the arrays of the segments themselves.
VECTORS: dict[str, Opener | None] = {MEMMAP: None, CHROMA: _chroma}


def open_index(
    folder: Path, database: Database, fulltext: FullText, model: str, settings: Settings
) -> SegmentSearch:
    """Return the search index that a data directory has; nothing of it is opened yet."""
    place = place_of(database, settings)
    opener, tracked = VECTORS[place.name], None
    if opener is not None:
        index = opener(folder, place, model, settings)
        tracked = TrackedVectors(database, index, model)
    return SegmentSearch(folder, FOLDERS[place.name], database, fulltext, model, settings, tracked)


def switch_index(settings: Settings) -> str:
    """Record the index that the settings ask for, and drop the one before; return a note.

    The catalogue keeps all that the new one is made of. Nothing changes where it is there already.
    The directory must be owned and not open.
    """
    folder = data_folder(settings)
    manifest = FileManifest(folder)
    before = manifest.open()  # a kill in between is no change by others
    with explained(folder / FILE), closing(Database(folder / FILE)) as database:
        note = _switch(folder, database, settings)
    if before.state == "equal":
        manifest.write(before.left_out)
    return note


def _switch(folder: Path, database: Database, settings: Settings) -> str:
    before = recorded_place(database)
    wanted = wanted_place(settings, before.record if before else "")
    if before is None or before.record == wanted.record:
        return ""
    note, opener = "", VECTORS[wanted.name]
    if opener is not None:
        opener(folder, wanted, "", settings).close()  # which says what is not installed
    opener = VECTORS[before.name]
    if opener is not None and before.url:
        index = opener(folder, before, "", settings)
        try:
            index.clear()
        except IndexUnavailableError:
            note = f"what {before.url} has of this directory stays there: it does not answer"
        index.close()
    switch_place(database, folder, wanted)
    return note

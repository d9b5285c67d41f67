"""Move the catalogue of a data directory into PostgreSQL, or back into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from core.errors import OperatorError
from core.settings import Settings
from stores.folder import CATALOGUE, MOVED, POSTGRES, SQLITE, data_folder
from stores.integrity.file_manifest import FileManifest
from stores.integrity.witness import NAME as WITNESS
from stores.postgres.database import PostgresDatabase, shown
from stores.postgres.migration import (
    MIGRATION,
    Copy,
    Progress,
    drop_triggers,
    make_triggers,
    switch_triggers,
)
from stores.runlog.conversations import THREADS, states_of
from stores.segments.rows import snapshot
from stores.sqlite.connections import connect
from stores.sqlite.database import Database
from stores.sqlite.schema import make_schema
from stores.sqlite.sums import register

NEW = ".new"  # of the file that is being written
LOGS = ("-wal", "-shm")


States = Callable[[Mapping[str, str]], object]


def migrate(
    settings: Settings, to: str, progress: Progress, copy_states: States = lambda named: None
) -> dict[str, int]:
    """Copy the catalogue to where `to` says, as the setting does; return the rows of each table.

    The directory is owned. `copy_states` copies what conversations go on from, ids by thread. When
    all is verified, the directory names its new place; what it had stays beside it, or on the
    server. Raises OperatorError; the next call goes on.
    """
    if settings.catalogue == to or to == SQLITE == settings.catalogue:
        raise OperatorError(
            "the catalogue is moved to another place than it has",
            value=to if to == SQLITE else shown(to),
            hint="CARREL_CATALOGUE says where it is, --to where it goes",
        )
    path = data_folder(settings) / CATALOGUE
    with FileManifest(path.parent).sealed_again():
        if settings.catalogue == SQLITE:
            return _to_postgres(path, to, progress, copy_states)
        if to == SQLITE:
            return _to_sqlite(path, settings.catalogue, progress, copy_states)
    raise OperatorError(
        "a catalogue moves between SQLite and PostgreSQL",
        value=shown(to),
        hint="between two servers, pg_dump and pg_restore do that",
    )


def _to_postgres(path: Path, url: str, progress: Progress, copy_states: States) -> dict[str, int]:
    with closing(Database(path)) as source:
        source.check_writable()
        source.checkpoint()
        with closing(PostgresDatabase(path, url, migrating=True)) as made, snapshot(source) as read:
            switch_triggers(made.own, on=False)
            counts = Copy(read, made.own, progress).run()
            switch_triggers(made.own, on=True)
            copy_states(states_of(read))
            with made.write() as connection:
                connection.execute("DELETE FROM meta WHERE key = ?", (MIGRATION,))
                made.adopt(connection)
    for name, end in product((CATALOGUE, THREADS), ("", *LOGS)):
        if (old := path.with_name(name + end)).exists():
            old.rename(path.with_name(name + MOVED + end))
    path.with_name(WITNESS).unlink(missing_ok=True)
    return counts


def _to_sqlite(path: Path, url: str, progress: Progress, copy_states: States) -> dict[str, int]:
    new = path.with_name(path.name + NEW)
    with closing(PostgresDatabase(path, url)) as source, snapshot(source) as read:
        counts = write_file(read, new, progress)
        copy_states(states_of(read))
    new.rename(path)
    path.with_name(POSTGRES).unlink()
    return counts


def write_file(
    source: Any,  # noqa: ANN401 - a connection in a transaction
    new: Path,
    progress: Progress,
    **left_out: Any,  # noqa: ANN401 - as for Copy
) -> dict[str, int]:
    """Copy a catalogue into a file of SQLite, which may have a part of it."""
    with _target(new) as target:
        counts = Copy(source, target, progress, **left_out).run()
        make_triggers(target)
    return counts


@contextmanager
def _target(new: Path) -> Iterator[Any]:
    with closing(connect(new)) as target:
        make_schema(target)
        drop_triggers(target)
        register(target)
        yield target

"""Which search index a data directory has, as its catalogue records it."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import CallerError, OperatorError
from core.settings import Settings
from stores.folder import ALL_FOLDERS, CATALOGUE, CHROMA, FOLDERS, MILVUS, data_folder
from stores.sqlite.database import Database

INDEX, INDEX_ID = "index", "index_id"  # in `meta`
PORTS = {CHROMA: 8000, MILVUS: 19530}  # usual ones, for an example
# The setting that says where the vectors of an index are, if not in the data directory.
ADDRESS = {CHROMA: "chroma.url", MILVUS: "milvus.uri"}


@dataclass(frozen=True)
class IndexPlace:
    """Say which index it is, where if not in the data directory, and what sets it apart there."""

    name: str
    url: str = ""
    key: str = ""

    @property
    def record(self) -> str:
        """Return what the catalogue says of it."""
        return f"{self.name} {self.url}".strip()

    def with_key(self) -> IndexPlace:
        """Return the place with what sets it apart, new where it has none yet."""
        return self if self.key else replace(self, key=secrets.token_hex(6))


def wanted_place(settings: Settings, recorded: str = "") -> IndexPlace:
    """Return the index that settings ask for; what they leave open is as recorded.

    Raises CallerError for an unknown index or an address that is none.
    """
    name, _, url = recorded.partition(" ")
    given = settings.given()
    wanted = settings.index if "index" in given or not name else name
    if wanted not in FOLDERS:
        raise CallerError("unknown index", value=wanted, hint=f"there are {', '.join(FOLDERS)}")
    if (setting := ADDRESS.get(wanted, "")) and (setting in given or wanted != name):
        url = settings.value(setting).rstrip("/")
    return IndexPlace(wanted, _checked_address(wanted, url) if setting else "")


def _checked_address(index: str, url: str) -> str:
    """Return the address of a server, or the absolute path of a file for Milvus."""
    parts = urlsplit(url)
    if url and index == MILVUS and "://" not in url:
        return str(Path(url).expanduser().absolute())
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        raise CallerError(
            f"{ADDRESS[index]} must be the address of a {index.capitalize()} server",
            value=parts.hostname or url,
            hint=f"such as http://localhost:{PORTS[index]}, without a name or password",
        )
    return url


def checked_place(kept: IndexPlace | None, settings: Settings) -> IndexPlace:
    """Return the place that is kept, or what settings ask for; raise where they disagree."""
    wanted = wanted_place(settings, kept.record if kept else "")
    if kept is not None and wanted.record != kept.record:
        raise OperatorError(
            f"this data directory has the search index '{kept.record}'",
            value=f"asked for '{wanted.record}'",
            hint=f"`carrel reindex --index {wanted.name}` makes that one, or leave `index` and"
            f" `{ADDRESS.get(wanted.name) or ADDRESS.get(kept.name, 'chroma.url')}` unset",
        )
    return kept or wanted


def recorded_place(database: Database) -> IndexPlace | None:
    """Return the index that the catalogue records, None before it does."""
    return _place_in(database.read())


def _place_in(connection: sqlite3.Connection) -> IndexPlace | None:
    rows = connection.execute("SELECT key, value FROM meta WHERE key IN (?, ?)", (INDEX, INDEX_ID))
    kept = dict(rows.fetchall())
    if INDEX not in kept:
        return None
    name, _, url = kept[INDEX].partition(" ")
    return IndexPlace(name, url, kept.get(INDEX_ID, ""))


def recorded_settings(settings: Settings) -> dict[str, str]:
    """Return the settings that the data directory decides where nobody gave them.

    Nothing is written or waited for, as nobody need own the directory: it is as last checkpointed.
    """
    catalogue = data_folder(settings) / CATALOGUE
    with suppress(sqlite3.Error):
        uri = f"{catalogue.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            place = _place_in(connection)
        if place is not None:
            found = {"index": place.name} | {
                setting: place.url for index, setting in ADDRESS.items() if index == place.name
            }
            return {key: one for key, one in found.items() if key not in settings.given()}
    return {}


def forget_index(connection: sqlite3.Connection) -> None:
    """Forget how far the index has come that another takes the place of."""
    for table in ("segments", "dead_chunks", "indexed_vectors"):
        connection.execute(f"DELETE FROM {table}")


def remove_files(folder: Path, kept: str) -> None:
    """Remove the files of the index before, all but the folder of vectors that is `kept`."""
    for name in ALL_FOLDERS:
        if name == kept:
            continue
        shutil.rmtree(folder / name, ignore_errors=True)
        if (folder / name).is_symlink() or (folder / name).is_file():
            (folder / name).unlink()


def record_place(connection: sqlite3.Connection, place: IndexPlace) -> None:
    """Record which index the directory has from now on."""
    connection.executemany(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(INDEX, place.record), (INDEX_ID, place.key)]
    )

"""The catalogue: its schema is made whole or not at all; a reading connection per thread."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from commands import change

from core.errors import OperatorError
from stores.folder import CATALOGUE
from stores.sqlite import schema as made
from stores.sqlite.database import Database
from stores.sqlite.implementation import opened_catalogue
from stores.sqlite.schema import FORMAT, ID_SECRET, SCHEMA, format_of, make_schema
from stores.store import Store, parts

SCHEMA_TEXT = """
meta: key value
collections: id tenant name profile created_at sum
files: collection_id relative path fingerprint failures sum
documents: id key collection_id tenant document_id file source title format language is_record
    is_open version updated_at content_hash metadata indexed_at sum body_hash
document_acl: document principal
chunks: id chunk_id document collection_id ordinal text kind section page tokens content_hash
    context sum
record_fields: document collection_id name value folded number
embeddings: content_hash model vector sum
journal: collection_id document_id file stage chunks
indexed_vectors: collection_id model high
sentence_vectors: content_hash model vectors sum
segments: collection_id name
dead_chunks: collection_id id
runs: run_id tenant user collection question pipeline created_at index_version result trail sum
api_keys: id digest tenant user roles created_at expires_at revoked_at rate tokens_per_day sum
    scope
audit: seq at kind tenant user facts previous hash
spending: tenant user hour tokens
feedback: id run_id tenant user rating comment created_at sum
jobs: number id kind tenant user collection name roles bytes state error attempts documents
    chunks notes created_at updated_at sum caller
sources: id tenant user name collection address options acl every caller state message synced sum
source_items: source key collection_id file path mark hash
conversations: id tenant user collection title created_at updated_at checkpoint_id waiting sum
conversation_turns: id conversation run_id question created_at clarification reply sum
notes: id note_id tenant owner content context keywords tags language subject value replaces
    importance provenance conversation run_id documents observed_at created_at changed_at model
    vector length sum
note_terms: tenant owner term note frequency length
note_links: note other kind strength
erasures: id collection_id documents at
erasure_leftovers: kind name
kept_out: key at
left_out: collection_id file source document_id reason
chunk_prints: chunk collection_id print place
book_texts: text book collection_id rule sum
quarantine: document reason
aliases: collection_id kind stored alias sum
embedders: model dimension
tree_documents: document collection_id recipe shape vectors centre tokens sum
tree_members: collection_id node child document
"""
TABLES = {  # a table and its columns, some of which stand in the next line
    name: columns.split()
    for name, columns in re.findall(r"^(\w+):((?:.|\n )+)", SCHEMA_TEXT, re.MULTILINE)
}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(tmp_path / "catalogue.sqlite3", isolation_level=None)
    yield opened
    opened.close()


def schema(connection: sqlite3.Connection) -> dict[str, list[str]]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        for (name,) in tables
    }


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_fresh_catalogue_has_exactly_these_tables_and_counters(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    make_schema(connection)
    assert schema(connection) == TABLES
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    assert len(meta.pop(ID_SECRET)) == 32
    last = {f"last_{table}": "0" for table in ("collections", "documents", "chunks")}
    assert meta == {"index_version": "0", "unswept": "1", "notes_version": "0", **last}
    assert format_of(tmp_path / CATALOGUE) == FORMAT


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / CATALOGUE
    Database(path).close()
    before = path.read_bytes()
    Database(path).close()
    assert path.read_bytes() == before


def test_a_schema_that_cannot_be_made_leaves_nothing_behind(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(made, "SCHEMA", (*SCHEMA, "CREATE TABLE chunks (a)"))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        make_schema(connection)
    assert not connection.in_transaction and schema(connection) == {}
    monkeypatch.undo()
    make_schema(connection)
    assert schema(connection) == TABLES


@pytest.mark.parametrize(
    ("number", "why"),
    [(0, "earlier format: format 0.*ingest"), (1, "earlier format"), (FORMAT + 1, "newer.*pgrade")],
)
def test_another_format_is_refused_and_left_as_it_is(
    store: Store, open_store: Callable[..., Store], number: int, why: str
) -> None:
    store.close()
    change(store.folder, f"PRAGMA user_version = {number}")
    before = contents(store.folder)
    with pytest.raises(OperatorError, match=why) as caught:
        open_store()
    assert "othing was changed" in str(caught.value) and str(store.folder) in str(caught.value)
    with pytest.raises(OperatorError, match=why):
        Database(store.folder / CATALOGUE)
    with pytest.raises(OperatorError, match=why), opened_catalogue(store.folder):
        pass
    assert contents(store.folder) == before
    change(store.folder, f"PRAGMA user_version = {FORMAT}")
    open_store()


def test_what_has_tables_and_no_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / CATALOGUE
    with sqlite3.connect(path) as direct:
        direct.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY)")
    direct.close()
    before = contents(tmp_path)
    with pytest.raises(OperatorError, match="earlier format"):
        Database(path)
    assert contents(tmp_path) == before


def test_a_file_that_is_no_catalogue_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / CATALOGUE
    path.write_bytes(b"not a database at all, but long enough to be read" * 30)
    before = contents(tmp_path)
    with pytest.raises(OperatorError, match="damaged.*backup") as caught:
        Database(path)
    assert "\n" not in str(caught.value)
    assert contents(tmp_path) == before


def test_the_connection_of_a_thread_ends_with_it(store: Store) -> None:
    mine = parts(store).database.read()
    seen: list[sqlite3.Connection] = []

    def work() -> None:
        connection = parts(store).database.read()
        assert connection is parts(store).database.read()
        connection.execute("SELECT count(*) FROM chunks").fetchone()
        seen.append(connection)

    for _ in range(3):
        thread = Thread(target=work)
        thread.start()
        thread.join(60)
    assert len(seen) == 3
    assert mine not in seen
    for connection in seen:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert parts(store).database.read() is mine
    assert mine.execute("SELECT 1").fetchone()[0] == 1


def test_a_reader_cannot_write(store: Store) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        parts(store).database.read().execute("DELETE FROM chunks")

"""Ids cannot be computed elsewhere, so that they do not tell whether a name is taken."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commands import change, query
from fakes import FakeEmbedder

from core.settings import Settings
from ingest.pipeline import Pipeline
from stores import migrations_ids
from stores.migrations import MIGRATIONS, apply_migrations
from stores.rows import digest
from stores.store import Store

NEW_SECRET = migrations_ids.new_secret  # of the product, before a fixture sets another
Ids = Callable[[Path], list[tuple[object, ...]]]


@pytest.fixture
def ids(
    open_store: Callable[..., Store],
    embedder: FakeEmbedder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Ids:
    """Ingest one and the same file into a data directory and return its key and chunk id."""
    monkeypatch.setattr(migrations_ids, "new_secret", NEW_SECRET)
    (tmp_path / "note.txt").write_text("A harmless note about the garden.", encoding="utf-8")

    def ingested(data: Path) -> list[tuple[object, ...]]:
        with open_store(data=data) as store:
            target = store.writer.open_collection("acme", "main", None)
            assert target == store.catalogue.collection("acme", "main")
            assert target in store.catalogue.collections() and repr(target).count("secret") == 0
            Pipeline(store, embedder, Settings(data=data), target).run([tmp_path / "note.txt"])
        return query(
            data, "SELECT d.key, c.chunk_id FROM documents d JOIN chunks c ON c.document = d.id"
        )

    return ingested


def forget_documents(data: Path) -> None:
    change(data, "UPDATE documents SET content_hash = ''", "UPDATE files SET fingerprint = ''")


def test_two_directories_give_other_ids_and_one_the_same(ids: Ids, tmp_path: Path) -> None:
    first, other = ids(tmp_path / "one"), ids(tmp_path / "two")
    assert len({*first[0], *other[0]}) == 4
    forget_documents(tmp_path / "one")
    assert ids(tmp_path / "one") == first


def test_a_directory_of_an_earlier_version_keeps_its_ids(ids: Ids, tmp_path: Path) -> None:
    data = tmp_path / "old"
    ids(data)
    change(data, "UPDATE meta SET value = '' WHERE key = 'id_secret'")
    forget_documents(data)
    before = ids(data)
    assert before[0][0] == digest("acme", "main", "note.txt")
    change(
        data,
        "DELETE FROM meta WHERE key = 'id_secret'",
        "DELETE FROM migrations WHERE name = 'm018_id_secret'",
    )
    forget_documents(data)
    assert ids(data) == before
    assert query(data, "SELECT value FROM meta WHERE key = 'id_secret'") == [("",)]


@pytest.mark.parametrize("kept_out", [False, True])
def test_a_directory_without_documents_gets_a_secret_unless_it_keeps_some_out(
    kept_out: bool,
) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        steps = [step.__name__ for step in MIGRATIONS]
        apply_migrations(connection, steps[: steps.index("m018_id_secret")])
        if kept_out:
            connection.execute("INSERT INTO kept_out VALUES ('key', '')")
        apply_migrations(connection)
        found = connection.execute(f"SELECT {migrations_ids.SECRET}").fetchone()[0]
        assert len(found) == (0 if kept_out else 2 * migrations_ids.SECRET_BYTES)

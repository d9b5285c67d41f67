"""Several processes over one catalogue in PostgreSQL: owners, locks, leases, counts, segments."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder, Shelf
from postgres_server import new_catalogue

from core.auth import AuthContext
from core.errors import DataLockedError, OperatorError
from core.settings import load_settings
from stores.coordination import INGEST, JobLease, SharedCoordination
from stores.folder import POSTGRES
from stores.index.registry import switch_index
from stores.lock import OWNER_FILE, OwnedError, is_shared, locked
from stores.runlog.jobs import new_ingest
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann")


class Pair:
    """Hold two stores over one catalogue, as two processes have them."""

    def __init__(self, folder: Path, **changes: object) -> None:
        given = {"data": folder / "data", "catalogue": new_catalogue(), "lock_wait_s": 0}
        given |= changes
        self.settings = load_settings(given)[0]
        self.stores = [Store(self.settings, "fake", create=True) for _ in range(2)]
        one, other = (store.maintenance.coordination for store in self.stores)
        assert isinstance(one, SharedCoordination) and isinstance(other, SharedCoordination)
        self.one, self.other = one, other

    def run(self, statement: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self.settings.catalogue, autocommit=True) as connection:
            found = connection.execute(statement)  # type: ignore[arg-type]
            return found.fetchall() if found.description else []

    def shelf(self, number: int) -> Shelf:
        store = self.stores[number]
        return Shelf(store, store.intake.open_collection("acme", "main", None), FakeEmbedder())

    def job(self) -> str:
        row = new_ingest("acme", "main", [Path("a.md")], frozenset(), None, prune=False)
        self.stores[0].accounts.jobs(10).save(row)
        return row.id


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("shared"))
    yield made
    for store in made.stores:
        store.close()


@pytest.fixture
def pair(kept: Pair) -> Pair:
    kept.run("DELETE FROM jobs")
    kept.run("DELETE FROM shared_values WHERE kind IN ('lease', 'rate')")
    return kept


def test_the_directory_is_shared_and_nobody_s_note_is_in_it(pair: Pair) -> None:
    assert not (pair.settings.data / OWNER_FILE).exists()
    Store(pair.settings, "fake").close()  # a third one
    with pytest.raises(OwnedError, match="in use by another process"):
        locked(pair.settings, alone=True)
    with pytest.raises(OperatorError, match="in use by another process"):
        switch_index(pair.settings.model_copy(update={"index": "chroma"}), "fake", lambda *_: None)


def test_a_copy_of_the_directory_does_not_join(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir(mode=0o700)
    shutil.copy(pair.settings.data / POSTGRES, tmp_path / "copy")
    copy = pair.settings.model_copy(update={"data": tmp_path / "copy"})
    with pytest.raises(DataLockedError, match="another copy of the data directory"):
        Store(copy, "fake")


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        ({}, True),
        ({"index": "chroma"}, False),
        ({"index": "chroma", "chroma_url": "http://localhost:8000"}, True),
        ({"index": "milvus", "milvus_uri": "m.db"}, False),
        ({"index": "milvus", "milvus_uri": "http://localhost:19530"}, True),
        ({"catalogue": "sqlite"}, False),
    ],
)
def test_local_files_have_one_process(
    tmp_path: Path, changes: dict[str, str], shared: bool
) -> None:
    given = {"catalogue": "postgresql://db/x", "data": tmp_path / "data", **changes}
    assert is_shared(load_settings(given)[0]) is shared
    (tmp_path / "data" / "chroma").mkdir(parents=True)
    assert not is_shared(load_settings(given)[0])


def test_a_lock_is_one_process_s_and_ends_with_it(pair: Pair) -> None:
    assert pair.one.acquire("talk") and not pair.other.acquire("talk")
    pair.run(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    )
    assert pair.other.acquire("talk")
    assert pair.one.versions() == {}  # connected again, and one of the owners
    with pytest.raises(OwnedError):
        locked(pair.settings, alone=True)


def test_who_ingests_keeps_others_from_tidying(pair: Pair) -> None:
    writer = pair.stores[1].intake
    shelf = pair.shelf(0)
    with pair.one.lock(INGEST, shared=True), pair.other.lock(INGEST, shared=True):
        shelf.intake.store_vectors("fake", {"ab" * 32: FakeEmbedder().embed_query("x")})
        pair.run("UPDATE meta SET value = '1' WHERE key = 'unswept'")
        assert writer.sweep_vectors() == 0
        writer.drop_collection_if_empty(shelf.collection)
        assert shelf.catalogue.collections()
    assert writer.sweep_vectors() == 1
    writer.drop_collection_if_empty(shelf.collection)
    assert shelf.catalogue.collections() == []
    assert pair.shelf(0).collection.id != shelf.collection.id


def test_a_job_has_one_worker(pair: Pair) -> None:
    jobs = {pair.job() for _ in range(2)}
    found = [pair.one.claim("a", syncs=False), pair.other.claim("b", syncs=False)]
    assert {one.job for one in found if one} == jobs
    assert pair.one.claim("a", syncs=False) is None and pair.one.claim("a", syncs=True) is None
    mine, theirs = (one for one in found if one)
    assert pair.one.renew("a", JobLease(mine.job, "files", 3, 9)) is False
    assert pair.one.renew("a", theirs) is None
    assert pair.other.leases(list(jobs))[mine.job] == JobLease(mine.job, "files", 3, 9)
    pair.other.cancel(mine.job)
    assert pair.one.renew("a", mine) is True
    pair.one.drop("a", mine.job)
    taken = pair.other.claim("b", syncs=False)
    assert taken is not None and taken.job == mine.job


@pytest.mark.parametrize("hangs", [True, False])
def test_a_worker_without_a_sign_of_life_loses_its_job(pair: Pair, hangs: bool) -> None:
    job = pair.job()
    worker = f"a{hangs}"
    if hangs:  # of one that has ended the lock is gone
        pair.one.acquire(f"worker.{worker}")
    assert pair.one.claim(worker, syncs=False)
    pair.run("UPDATE shared_values SET until = until - interval '4 s' WHERE kind = 'lease'")
    taken = pair.other.claim("b", syncs=False)
    assert (taken is None) is hangs
    pair.run("UPDATE shared_values SET until = until - interval '17 s' WHERE value @> '{}'")
    assert taken or pair.other.claim("b", syncs=False)
    assert pair.one.renew(worker, JobLease(job)) is None


def test_what_is_cancelled_before_it_begins_is_found_cancelled(pair: Pair) -> None:
    pair.other.cancel(pair.job())
    found = pair.one.claim("a", syncs=False)
    assert found is not None and found.cancelled


def test_calls_and_values_are_counted_together(pair: Pair) -> None:
    counted = [one.hit("k", 3, count=True) for one in (pair.one, pair.other, pair.one, pair.other)]
    assert [one.allowed for one in counted] == [True, True, True, False]
    assert counted[-1].used == 3 and 0 < counted[-1].reset_s <= 60
    pair.run("UPDATE shared_values SET value = '[1.5, 2.5, 3.5]' WHERE kind = 'rate'")  # long ago
    assert pair.one.hit("k", 3, count=False).allowed
    assert pair.one.agreed("way", "a") == pair.other.agreed("way", "b") == "a"
    pair.one.put("session", "s", {"tenant": "acme", "user": "ann"}, 60)
    pair.one.put("session", "t", {"tenant": "acme", "user": "bob"}, 60)
    assert pair.other.get("session", "s") == {"tenant": "acme", "user": "ann"}
    assert len(pair.other.remove("session", tenant="acme", user="ann")) == 1
    assert pair.one.get("session", "s") is None and pair.one.get("session", "t")
    pair.one.put("session", "t", {}, -1)
    pair.one.sweep()
    assert pair.run("SELECT count(*) FROM shared_values WHERE kind = 'session'") == [(0,)]


def test_tokens_that_others_have_spent_count(pair: Pair) -> None:
    one, other = (store.accounts.spending for store in pair.stores)
    one.add("acme", "ann", 70)
    assert other.spent("acme", "ann") == 70
    assert other.seconds_until("acme", "ann", 50) > 0


def test_a_search_finds_what_another_process_has_written(pair: Pair) -> None:
    shelf, other = pair.shelf(0), pair.shelf(1)
    for number in range(3):
        shelf.write(shelf.row(f"d{number}", f"heron {number}"))
        found = other.store.search.candidates(
            ANN, other.collection.id, terms=[{"heron"}], vector=None, pool=9
        )
        assert found.visible == number + 1


def test_a_segment_in_use_elsewhere_stays_until_the_next(tmp_path: Path) -> None:
    pair = Pair(tmp_path, segment_min_rows=2)
    shelf, home = pair.shelf(0), pair.settings.data / "segments"
    names = []
    for number in range(3):
        shelf.write(*(shelf.row(f"d{number}.{one}", f"heron {number} {one}") for one in range(4)))
        parts(shelf.store).search._builder._rebuild(shelf.collection.id, None, None)
        names.append({path.name for path in home.glob("*/*")})
    assert [len(one) for one in names] == [1, 2, 2] and len(names[2] & names[1]) == 1
    assert pair.stores[1].maintenance.examine()["problems"] == []
    shelf.store.search.erase(shelf.collection)
    assert len(list(home.glob("*/*"))) == 1  # deleted text is in none
    for store in pair.stores:
        store.close()


def test_an_arrangement_is_noted_of_what_was_arranged(pair: Pair) -> None:
    shelf, other = pair.shelf(0), pair.shelf(1)
    version = shelf.catalogue.index_version()
    other.write(other.row("late", "text"))
    shelf.intake.note_arrangement(shelf.collection, "rules", version, changed=False)
    assert shelf.intake.arrangement(shelf.collection) == ""


def test_a_catalogue_of_before_gets_its_table(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    for store in pair.stores:
        store.close()
    pair.run("DROP TABLE shared_values")
    Store(pair.settings, "fake").close()
    assert pair.run("SELECT kind FROM shared_values") == [("place",)]
    (tmp_path / "moved").mkdir(mode=0o700)
    shutil.copy(pair.settings.data / POSTGRES, tmp_path / "moved")
    Store(pair.settings.model_copy(update={"data": tmp_path / "moved"}), "fake").close()

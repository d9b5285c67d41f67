"""Rows that were committed and are gone are noticed at the opening, before the first answer.

A child process writes documents, a conversation and audit rows into a data directory and is killed;
its log or its file is damaged as a disk, a hand or a crash may do it. Then nothing is written any
more, every answer says so, and `carrel doctor --repair --accept-loss` goes on.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import change
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.errors import CallerError, OperatorError
from core.settings import Settings
from stores.accounts.audit import AuditEntry, AuditLog
from stores.accounts.keys import Keys
from stores.integrity.witness import NAME, SLOT, Witness
from stores.sqlite.database import Database
from stores.store import Store, parts

ROOT = Path(__file__).parents[2]
ANN = AuthContext(tenant="acme", user="ann")
UPLOADS = 6
BEFORE = 30
CATALOGUE = "catalogue.sqlite3"
LOW = {"segment_min_rows": 10}
FLIPS = int(os.environ.get("LOST_ROWS_FLIPS", "6"))

CHILD = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {root!r}]
from test_lost_rows import fill, upload
from core.settings import Settings
from stores.store import Store
folder = Path(sys.argv[1])
settings = Settings(data=folder, segment_min_rows=10)
with Store(settings, "fake", create=True) as store:
    fill(store)
before = folder.parent / "before"
os.makedirs(before)
for name in ("catalogue.sqlite3", "catalogue.commits"):
    (before / name).write_bytes((folder / name).read_bytes())
store = Store(settings, "fake")
upload(store, settings)
os.kill(os.getpid(), signal.SIGKILL)
"""


def fill(store: Store) -> None:
    """Write what a closed directory holds."""
    collection = store.intake.open_collection("acme", "main", None)
    rows = [document(collection, f"d{n:02}", f"harbour tide{n}") for n in range(BEFORE)]
    write(store, collection, rows, FakeEmbedder())
    store.search.refresh(collection)


def upload(store: Store, settings: Settings) -> None:
    """Write, each in commits of its own, what is acknowledged before the process is killed."""
    collection = store.catalogue.collection("acme", "main")
    log = AuditLog(parts(store).database, settings)
    conversation = store.runs.create_conversation("acme", "ann", "main")
    for number in range(UPLOADS):
        row = document(collection, f"u{number}", f"upload mark{number} " + "filling " * 400)
        write(store, collection, [row], FakeEmbedder())
        log.append([AuditEntry("upload", ANN, {"number": number})])
    store.runs.rename_conversation(conversation, "kept")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold a directory as a killed process left it, with an older copy of its file beside it."""
    folder = tmp_path_factory.mktemp("killed") / "data"
    script = CHILD.format(tests=str(ROOT / "tests"), root=str(Path(__file__).parent))
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script, str(folder)], env=variables, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (folder / f"{CATALOGUE}-wal").stat().st_size > 32 * 4096
    return folder


@pytest.fixture
def folder(killed: Path, tmp_path: Path) -> Path:
    shutil.copytree(killed, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def reopened(folder: Path) -> Iterator[Callable[[], Store]]:
    opened: list[Store] = []

    def open_it() -> Store:
        opened.append(Store(settings_of(folder), "fake", create=True))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


def settings_of(folder: Path) -> Settings:
    return Settings(data=folder, **LOW)


def wal(folder: Path) -> Path:
    return folder / f"{CATALOGUE}-wal"


def flip(path: Path, place: int, bit: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        [value] = file.read(1)
        file.seek(place)
        file.write(bytes([value ^ bit]))


def zeroed(path: Path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes(4096))


def older(folder: Path) -> None:
    wal(folder).unlink()
    (folder / f"{CATALOGUE}-shm").unlink(missing_ok=True)
    shutil.copy(folder.parent / "older", folder / CATALOGUE)


LOG: dict[str, Callable[[Path], object]] = {
    "removed": lambda folder: wal(folder).unlink(),
    "emptied": lambda folder: os.truncate(wal(folder), 0),
    "cut to half": lambda folder: os.truncate(wal(folder), wal(folder).stat().st_size // 2),
    "its last frame cut": lambda folder: os.truncate(
        wal(folder), wal(folder).stat().st_size - 4096
    ),
    "4 KB zeroed": lambda folder: zeroed(wal(folder), wal(folder).stat().st_size // 3),
    "file replaced by an older copy": older,
    "file and log removed": lambda folder: [one.unlink() for one in folder.glob(f"{CATALOGUE}*")],
    **{
        f"one bit flipped, {share:.2f} in": lambda folder, share=share: flip(
            wal(folder), int(share * wal(folder).stat().st_size), 1 << int(8 * share)
        )
        for share in [0.002, *(random.Random(7).uniform(0, 0.999) for _ in range(FLIPS))]
    },
}


def found(store: Store) -> set[str]:
    """Return which uploads a search by their own words finds."""
    seen: set[str] = set()
    for number in range(UPLOADS):
        words = f"upload mark{number}"
        vector = FakeEmbedder().embed_query(words)
        terms = [{word} for word in words.split()]
        for collection in store.catalogue.collections():
            ids = store.search.candidates(
                ANN, collection.id, terms=terms, vector=vector, pool=5
            ).chunk_ids
            evidence = store.catalogue.evidence(ANN, collection.id, ids)
            seen |= {one.document_id for one in evidence.values()}
    return {name for name in seen if name.startswith("u")}


def test_a_killed_process_alone_loses_nothing(reopened: Callable[[], Store]) -> None:
    store = reopened()
    assert store.warnings() == []
    assert len(found(store)) == UPLOADS
    assert AuditLog(parts(store).database, settings_of(store.folder)).verify().problem == ""


@pytest.mark.parametrize("case", LOG)
def test_lost_commits_are_noticed_and_accepted(
    folder: Path, killed: Path, reopened: Callable[[], Store], case: str
) -> None:
    shutil.copy(killed.parent / "before" / CATALOGUE, folder.parent / "older")
    LOG[case](folder)
    store = reopened()
    assert "commits are gone" in store.maintenance.condition.lost
    assert store.warnings()[0].startswith("rows of the catalogue are missing")
    _reads_go_on_and_writes_do_not(store)
    [line] = [one for one in store.maintenance.examine()["problems"] if "--accept-loss" in one]
    assert "commits are gone" in line
    seen, version = found(store), store.catalogue.index_version()
    store.close()

    store = reopened()  # it is not forgotten by being seen once
    assert store.maintenance.condition.lost
    [done] = store.maintenance.accept_loss(settings_of(folder))
    assert "commits are gone" in done
    assert not store.maintenance.condition.lost
    assert found(store) == seen
    assert store.catalogue.index_version() > version
    log = AuditLog(parts(store).database, settings_of(folder))
    assert log.verify().problem == ""
    kinds = [(row["kind"], row["user"]) for row in log.rows()]
    assert kinds[-2:] == [("answer", "ann"), ("loss_accepted", "")]  # in the order they came
    store.close()
    store = reopened()
    assert not store.maintenance.condition.lost
    collection = store.intake.open_collection("acme", "main", None)
    write(store, collection, [document(collection, "again", "upload mark0")], FakeEmbedder())
    store.close()
    assert not reopened().maintenance.condition.lost


def _reads_go_on_and_writes_do_not(store: Store) -> None:
    with pytest.raises(OperatorError, match="accept-loss"):
        store.intake.open_collection("acme", "new", None)
    with pytest.raises(OperatorError, match="nothing is written"):
        Keys(parts(store).database).create("acme", user="ann")
    log = AuditLog(parts(store).database, settings_of(store.folder))
    log.append([AuditEntry("answer", ANN, {"kept": "aside"})])
    assert (store.folder / "audit.aside").stat().st_mode & 0o777 == 0o600
    assert (store.folder / "audit.aside").read_text().count("\n") >= 1


def test_the_count_itself_may_be_damaged(folder: Path, reopened: Callable[[], Store]) -> None:
    path = folder / NAME
    count = Witness(folder).read()
    assert count
    for place in (3, SLOT + 3):
        copy = path.read_bytes()
        flip(path, place)
        one = Witness(folder)
        assert one.read() in (count, count - 1)
        one.close()
        path.write_bytes(copy)
    for place in (3, SLOT + 3):
        flip(path, place)
    store = reopened()
    assert "gone or damaged" in store.maintenance.condition.lost
    assert store.maintenance.accept_loss(settings_of(folder))
    store.close()
    path.unlink()
    store = reopened()
    assert "gone or damaged" in store.maintenance.condition.lost


def test_rows_kept_aside_and_changed_are_not_believed(
    folder: Path, reopened: Callable[[], Store]
) -> None:
    LOG["cut to half"](folder)
    store = reopened()
    log = AuditLog(parts(store).database, settings_of(folder))
    for number in range(3):
        log.append([AuditEntry("answer", ANN, {"number": number})])
    aside = folder / "audit.aside"
    aside.write_text(aside.read_text().replace('\\"number\\":1', '\\"number\\":7'))
    store.maintenance.accept_loss(settings_of(folder))
    rows = [(row["kind"], json.loads(row["facts"])) for row in log.rows()]
    assert ("answer", {"number": 0}) in rows
    assert not any(facts.get("number") in (1, 7, 2) for kind, facts in rows if kind == "answer")
    assert any(kind == "lost" and "changed" in facts["why"] for kind, facts in rows)


def test_a_directory_that_was_restored_begins_to_count(
    folder: Path, reopened: Callable[[], Store]
) -> None:
    reopened().close()
    change(folder, "DELETE FROM meta WHERE key = 'commits'")
    (folder / NAME).unlink()
    store = reopened()
    assert not store.maintenance.condition.lost
    store.intake.open_collection("acme", "new", None)
    assert parts(store).database.commits() == Witness(folder).read() == 1


@pytest.mark.parametrize("what", ["audit", "segment"])
def test_other_witnesses_are_asked_as_well(
    folder: Path, reopened: Callable[[], Store], what: str
) -> None:
    reopened().close()
    if what == "segment":
        (folder / "segments" / "1" / "000000000999-0123abcd").mkdir()
    else:
        change(folder, "DROP TRIGGER audit_kept", "DELETE FROM audit WHERE seq > 4")
    store = reopened()
    assert what in store.maintenance.condition.lost
    assert store.maintenance.accept_loss(settings_of(folder))
    for path in (folder / "segments" / "1").glob("000000000999-*"):
        path.rmdir()
    store.close()
    assert not reopened().maintenance.condition.lost


@pytest.mark.parametrize("name", [f"{CATALOGUE}-wal", CATALOGUE])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_taken_away_under_an_open_store_stops_writing(
    folder: Path, reopened: Callable[[], Store], name: str, how: str
) -> None:
    store = reopened()
    path = folder / name
    copy = path.read_bytes()
    path.unlink()
    if how == "replaced":
        path.write_bytes(copy)
    with pytest.raises(OperatorError, match="removed or replaced"):
        store.intake.open_collection("acme", "unacknowledged", None)
    assert any("removed or replaced" in one for one in store.maintenance.check_again())
    assert "removed or replaced" in store.warnings()[0]
    assert len(found(store)) == UPLOADS  # what is open answers on
    with pytest.raises(OperatorError, match="taken away"):
        store.maintenance.accept_loss(settings_of(folder))


def test_accepting_goes_with_repair() -> None:
    from cli.upkeep.doctor import doctor

    with pytest.raises(CallerError, match="goes with --repair"):
        doctor(accept_loss=True)


def test_a_key_is_not_made_beside_missing_rows(folder: Path) -> None:
    LOG["removed"](folder)
    database = Database(folder / CATALOGUE)
    with pytest.raises(OperatorError, match="accept-loss"):
        Keys(database).create("acme", user="ann")
    database.close()


def test_commits_that_go_missing_under_an_open_catalogue_are_noticed(
    open_store: Callable[..., Store], tmp_path: Path
) -> None:
    with open_store(data=tmp_path / "data") as store:
        store.intake.open_collection("acme", "main", None)
        store.intake.open_collection("acme", "more", None)
        with parts(store).database._write_lock:  # as an older copy in its place would leave it
            parts(store).database._writer.execute("UPDATE meta SET value = 1 WHERE key = 'commits'")
        with pytest.raises(OperatorError, match="rows of the catalogue are missing"):
            store.intake.open_collection("acme", "third", None)
        with pytest.raises(OperatorError, match="perhaps those of this collection"):
            store.catalogue.collection("acme", "fourth")


def test_the_self_check_compares_commits_and_writes_a_count_that_was_removed(
    open_store: Callable[..., Store], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with open_store(data=data) as store:
        store.intake.open_collection("acme", "main", None)
        (data / "catalogue.commits").unlink()
        parts(store).database.check_commits()
        assert (data / "catalogue.commits").exists() and not store.maintenance.condition.lost
        store.intake.open_collection("acme", "more", None)
    with open_store(data=data) as store:
        assert not store.maintenance.condition.lost
        with parts(store).database._write_lock:
            parts(store).database._writer.execute("UPDATE meta SET value = 1 WHERE key = 'commits'")
        parts(store).database.check_commits()
        assert "commits are gone" in store.maintenance.condition.lost

"""A source is synced: what changed is read, what is gone is forgotten, nothing is doubled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from syncs import ANN, Room

from core.errors import CallerError, CarrelError, InUseError
from stores.store import parts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "papers"
    (made / "deep").mkdir(parents=True)
    for name in ("a.md", "b.txt", "deep/c.md"):
        (made / name).write_text(f"The heron of {name} waits.", encoding="utf-8")
    return made


def test_a_folder_follows_its_files(room: Room, folder: Path) -> None:
    row = room.add(str(folder))
    assert room.counts(row) == (3, 0, 0, 0)
    assert room.names() == ["src/a.md", "src/b.txt", "src/deep/c.md"]
    assert room.counts(row) == (0, 0, 3, 0)
    (folder / "a.md").write_text("The heron flies.", encoding="utf-8")
    (folder / "b.txt").unlink()
    (folder / "d.md").write_text("A new heron.", encoding="utf-8")
    report = room.sync(row)
    assert (report.new, report.changed, report.unchanged, report.removed) == (1, 1, 1, 1)
    assert report.bytes == len("The heron flies.A new heron.")
    assert room.names() == ["src/a.md", "src/d.md", "src/deep/c.md"]
    assert "flies" in room.text("src/a.md")
    assert row.state == "ok" and row.synced > 0
    assert not list((room.session.store.folder / "sources").iterdir())


def test_only_what_a_source_brought_is_removed(room: Room, folder: Path) -> None:
    target = room.session.intake.open_collection("acme", "main", None)
    room.session.ingest(target, [folder])
    row = room.add(str(folder))
    room.sync(row)
    assert len(room.names()) == 6
    (folder / "a.md").unlink()
    assert room.counts(row)[3] == 1
    assert "a.md" in room.names() and "src/a.md" not in room.names()


def test_the_readers_of_a_source_are_those_of_its_documents(room: Room, folder: Path) -> None:
    row = room.add(str(folder), acl=frozenset({"board"}))
    room.sync(row)
    assert room.names() == []
    board = ANN.model_copy(update={"roles": frozenset({"board"})})
    found = room.session.catalogue.visible_collection(board, "main")
    assert room.session.catalogue.count_documents(board, found) == 3


def test_what_was_forgotten_is_new_again(room: Room, folder: Path) -> None:
    row = room.add(str(folder))
    room.sync(row)
    target = room.session.catalogue.collection("acme", "main")
    gone = room.session.maintenance.documents_of(target, ["src/a.md"])
    room.session.maintenance.forget(target, gone)
    assert len(room.rows.items(row)) == 2
    assert room.counts(row) == (1, 0, 2, 0)


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_sync_that_is_broken_off_converges(
    room: Room, folder: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Whatever vanishes at the source meanwhile is forgotten all the same."""
    row, real = room.add(str(folder)), room.session.ingest

    def broken(*given: object, **values: object) -> object:
        if point == "after":
            real(*given, **values)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(room.session, "ingest", broken)
        with pytest.raises(KeyboardInterrupt):
            room.sync(row)
    (folder / "a.md").unlink()
    assert room.counts(row)[3] == (1 if point == "after" else 0)
    assert room.names() == ["src/b.txt", "src/deep/c.md"]
    assert room.counts(row) == (0, 0, 2, 0)


def test_a_source_that_is_away_removes_nothing(room: Room, folder: Path) -> None:
    row = room.add(str(folder))
    room.sync(row)
    os.rename(folder, folder.with_name("elsewhere"))
    with pytest.raises(CarrelError, match="must exist"):
        room.sync(row)
    assert len(room.names()) == 3 and row.state == "failed"


def test_a_source_is_synced_once_at_a_time(room: Room, folder: Path) -> None:
    row = room.add(str(folder))

    def progress(stage: str, done: int, total: int) -> None:
        with pytest.raises(InUseError):
            room.sync(row)

    room.sync(row, progress=progress)
    with pytest.raises(CallerError, match="source of this name"):
        room.add(str(folder))


def test_a_removed_source_added_again_doubles_nothing(room: Room, folder: Path) -> None:
    row = room.add(str(folder))
    room.sync(row)
    room.rows.remove(row)
    assert room.counts(room.add(str(folder))) == (3, 0, 0, 0)
    assert len(room.names()) == 3
    count = "SELECT count(*) FROM files"
    assert parts(room.session.store).database.read().execute(count).fetchone()[0] == 3

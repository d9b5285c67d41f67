"""A backup holds one moment of the truth, and only a genuine one is restored."""

from __future__ import annotations

import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from fakes import FakeEmbedder, Shelf, document, write
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.errors import InUseError, OperatorError
from stores.backup import archive
from stores.backup.archive import make_backup, placed, unpack
from stores.backup.format import (
    BLOCK,
    CATALOGUE,
    MANIFEST,
    BackupManifest,
    SealedReader,
    SealingWriter,
    read_key,
)
from stores.runlog.conversations import THREADS
from stores.sqlite.catalogue import Collection
from stores.sqlite.schema import FORMAT
from stores.store import Store
from stores.store import parts as store_parts

KEY = b"k" * 32


def quiet(stage: str, done: int, total: int) -> None:
    """Show nothing."""


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Store:
    names = [document(collection, f"d{n}", f"Text number {n}.", f"More {n}.") for n in range(5)]
    write(store, collection, names, embedder)
    return store


def backup_of(store: Store, target: Path, key: bytes | None = None) -> BackupManifest:
    return make_backup(store_parts(store).database, target, quiet, key=key)


def restored(backup: Path, folder: Path, key: bytes | None = None) -> BackupManifest:
    folder.mkdir()
    return unpack(backup, folder, key=key, max_gb=1)


@pytest.mark.parametrize("key", [None, KEY])
def test_all_of_the_truth_comes_back(filled: Store, tmp_path: Path, key: bytes | None) -> None:
    with closing(sqlite3.connect(filled.folder / THREADS)) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id TEXT, value BLOB)")
        connection.execute("INSERT INTO checkpoints VALUES ('t', x'00ff')")
        connection.commit()
    made = backup_of(filled, tmp_path / "b", key)
    assert (made.documents, made.chunks, made.models) == (5, 10, ["fake"])
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert not (filled.folder / "backup.work").exists()
    assert restored(tmp_path / "b", tmp_path / "r", key) == made
    there = tmp_path / "r" / CATALOGUE
    wanted = store_parts(filled).database.read()
    for table in (
        "documents",
        "chunks",
        "embeddings",
        "collections",
        "meta WHERE key NOT IN ('commits', 'index', 'index_id')",  # the copy has its own
        "files",
    ):
        query = f"SELECT * FROM {table} ORDER BY 1, 2"
        assert rows(there, query) == [tuple(row) for row in wanted.execute(query)]
    assert rows(there, "SELECT 1 FROM sqlite_schema WHERE name LIKE 'fts_%'") == []
    assert rows(tmp_path / "r" / THREADS, "SELECT * FROM checkpoints") == [("t", b"\x00\xff")]
    with closing(sqlite3.connect(there)) as connection:
        connection.execute("INSERT INTO audit VALUES (1, '', '', '', '', '', '', '')")
        with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
            connection.execute("DELETE FROM audit")
    if key:
        assert b"Text number" not in (tmp_path / "b").read_bytes()


def test_every_backup_under_writes_is_a_prefix_of_what_was_acknowledged(
    shelf: Shelf, tmp_path: Path
) -> None:
    acknowledged, ended = [0], threading.Event()

    def ingest() -> None:
        number = 0
        while not ended.is_set():
            shelf.write(shelf.row(f"d{number:05}", f"t {number}"))
            number += 1
            acknowledged[0] = number

    thread = threading.Thread(target=ingest)
    thread.start()
    try:
        counts = []
        for number in range(5):
            before = acknowledged[0]
            backup_of(shelf.store, tmp_path / f"b{number}")
            counts.append((before, acknowledged[0]))
    finally:
        ended.set()
        thread.join()
    for number, (before, after) in enumerate(counts):
        made = restored(tmp_path / f"b{number}", tmp_path / f"r{number}")
        found = rows(
            tmp_path / f"r{number}" / CATALOGUE,
            "SELECT d.document_id FROM documents d JOIN chunks c ON c.document = d.id"
            " JOIN embeddings e ON e.content_hash = c.content_hash ORDER BY 1",
        )
        assert found == [(f"d{one:05}",) for one in range(made.documents)]
        assert before <= made.documents <= after + 1
    assert counts[-1][1] > counts[0][0]


def edited(backup: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Write a backup again with other contents, and sums that fit them."""
    import hashlib

    parts = {}
    with tarfile.open(backup) as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            changed = change(entry.name, content.read())
            if changed is not None:
                parts[entry.name] = changed
    manifest = json.loads(parts.pop(MANIFEST))
    for part in manifest["parts"]:
        if part["name"] in parts:
            content_of = parts[part["name"]]
            part |= {"bytes": len(content_of), "sha256": hashlib.sha256(content_of).hexdigest()}
    with tarfile.open(target, "w") as archive:
        for name, data in (*parts.items(), (MANIFEST, json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return target


def with_sql(content: bytes, folder: Path, *statements: str) -> bytes:
    path = folder / "changed.sqlite3"
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM audit; END", "not as Carrel"),
        ("CREATE VIEW v AS SELECT 1", "not as Carrel"),
        ("DROP TRIGGER audit_kept", "not as Carrel"),
        ("CREATE VIRTUAL TABLE x USING fts5(a)", "not as Carrel"),
        (f"PRAGMA user_version = {FORMAT + 1}", "not of the format"),
        ("INSERT INTO document_acl VALUES (77, 'x')", "do not belong together"),
    ],
)
def test_a_catalogue_with_anything_of_its_own_is_refused(
    filled: Store, tmp_path: Path, statement: str, why: str
) -> None:
    backup_of(filled, tmp_path / "b")
    fake = edited(
        tmp_path / "b",
        tmp_path / "fake",
        lambda name, data: with_sql(data, tmp_path, statement) if name == CATALOGUE else data,
    )
    with pytest.raises(OperatorError, match=why):
        restored(fake, tmp_path / "r")


def test_what_is_cut_changed_or_of_another_kind_is_refused(filled: Store, tmp_path: Path) -> None:
    backup_of(filled, tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    middle = whole.index(b"Text number 3")
    changed = whole[:middle] + b"Lies" + whole[middle + 4 :]
    for number, data in enumerate((b"", b"x", whole[:5000], whole[:-12_000], changed)):
        (tmp_path / "bad").write_bytes(data)
        with pytest.raises(OperatorError, match="damaged or was not made by Carrel"):
            restored(tmp_path / "bad", tmp_path / f"r{number}")
    with pytest.raises(OperatorError, match="backup must be readable"):
        restored(tmp_path / "none", tmp_path / "r none")


@pytest.mark.parametrize(
    "entry",
    [
        tarfile.TarInfo("../catalogue.sqlite3"),
        tarfile.TarInfo("/etc/passwd"),
        tarfile.TarInfo("index_metadata.pickle"),
        tarfile.TarInfo("catalogue.sqlite3"),
    ],
)
@pytest.mark.parametrize(
    "kind", [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE]
)
def test_no_other_member_is_written(tmp_path: Path, entry: tarfile.TarInfo, kind: bytes) -> None:
    entry.type, entry.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "b", "w") as archive:
        archive.addfile(entry, io.BytesIO())
    with pytest.raises(OperatorError, match="damaged or was not made"):
        restored(tmp_path / "b", tmp_path / "r")
    assert [path.name for path in (tmp_path / "r").iterdir()] in ([], [CATALOGUE])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": FORMAT + 1, "more": 1}, r"backup was written by a newer Carrel: format 4"),
        ({"format": 1, "migrations": ["m001_catalogue"]}, "backup has an earlier format: format 1"),
        ({"format": None}, "manifest of the backup is damaged: format"),
        ({"more": 1}, "manifest of the backup is damaged: more"),
    ],
)
def test_a_backup_of_another_format_is_refused(
    filled: Store, tmp_path: Path, change: dict[str, object], why: str
) -> None:
    assert backup_of(filled, tmp_path / "b").format == FORMAT

    def other(name: str, data: bytes) -> bytes:
        return json.dumps(json.loads(data) | change).encode() if name == MANIFEST else data

    edited(tmp_path / "b", tmp_path / "other", other)
    with pytest.raises(OperatorError, match=why):
        restored(tmp_path / "other", tmp_path / "r")


def test_what_is_left_out_of_a_copy_is_made_again_in_its_place() -> None:
    sql = "CREATE UNIQUE INDEX i ON t (a)"
    assert placed("index", sql) == "CREATE UNIQUE INDEX copied.i ON t (a)"


def test_a_sealed_backup_opens_with_its_key_alone(filled: Store, tmp_path: Path) -> None:
    backup_of(filled, tmp_path / "b", KEY)
    backup_of(filled, tmp_path / "plain")
    sealed = (tmp_path / "b").read_bytes()
    cases = [(sealed, None, "is sealed"), (sealed, b"x" * 32, "another key")]
    cases += [(sealed[:-1], KEY, "another key"), (sealed[:30], KEY, "another key")]
    changed = bytes([sealed[300] ^ 1])
    cases += [(sealed[:300] + changed + sealed[301:], KEY, "another key")]
    cases += [((tmp_path / "plain").read_bytes(), KEY, "only a sealed backup")]
    for number, (data, key, why) in enumerate(cases):
        (tmp_path / "bad").write_bytes(data)
        with pytest.raises(OperatorError, match=why):
            restored(tmp_path / "bad", tmp_path / f"r{number}", key)


@settings(max_examples=examples(10, quick=3))  # each derives a key, slowly by design
@given(st.lists(st.integers(0, 2 * BLOCK + 3), max_size=4), st.integers(1, BLOCK + 1))
def test_sealing_gives_back_what_was_written(sizes: list[int], step: int) -> None:
    file = io.BytesIO()
    writer = SealingWriter(file, KEY)
    pieces = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    for piece in pieces:
        writer.write(piece)
    writer.close()
    file.seek(0)
    reader = SealedReader(file, KEY)
    found = bytearray()
    while part := reader.read(step):
        found += part
    assert found == b"".join(pieces)


def test_blocks_cannot_be_left_out_or_change_places() -> None:
    file = io.BytesIO()
    writer = SealingWriter(file, KEY)
    writer.write(b"".join(bytes([number]) * BLOCK for number in range(3)))
    writer.close()
    data, size, head = file.getvalue(), BLOCK + 16, 16 + 16 + 7
    blocks = [data[head + n * size : head + (n + 1) * size] for n in range(3)]
    for order in ((0, 1), (1, 0, 2), (0, 2), (0, 1, 2, 2), (2,)):
        changed = io.BytesIO(data[:head] + b"".join(blocks[number] for number in order))
        with pytest.raises(OperatorError, match="changed or cut"):
            SealedReader(changed, KEY).read(4 * BLOCK)


def test_a_target_or_key_that_does_not_do_is_named(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").write_text("precious", encoding="utf-8")
    with pytest.raises(OperatorError, match="does not overwrite"):
        backup_of(filled, tmp_path / "there")
    with pytest.raises(OperatorError, match="folder of the backup must exist"):
        backup_of(filled, tmp_path / "no" / "b")
    with pytest.raises(OperatorError, match="needs .* MB of free disk"):
        make_backup(store_parts(filled).database, tmp_path / "b", quiet, min_free_mb=10**9)
    with pytest.raises(OperatorError, match="at least 16 bytes"):
        read_key(tmp_path / "there")
    with pytest.raises(OperatorError, match="key file must be readable"):
        read_key(tmp_path / "none")
    with archive.BACKING_UP, pytest.raises(InUseError, match="one backup at a time"):
        backup_of(filled, tmp_path / "b")
    monkeypatch.setattr(archive.tarfile, "open", _full)
    with pytest.raises(OperatorError, match="could not be written"):
        make_backup(store_parts(filled).database, tmp_path / "there", quiet, force=True)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["there"]
    assert (tmp_path / "there").read_text(encoding="utf-8") == "precious"


def _full(*given: object, **more: object) -> None:
    raise OSError(28, "No space left on device")

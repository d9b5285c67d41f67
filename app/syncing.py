"""Bring a collection up to date with a source: read what changed, forget what is gone."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.session import Session
from core.auth import AuthContext
from core.errors import AbsentError, CallerError, CarrelError, DocumentError, InUseError
from ingest.connectors.address import find_credential, parse_address, variable
from ingest.connectors.opening import open_connector
from ingest.connectors.types import (
    Access,
    Connector,
    Credential,
    GoneError,
    Item,
    LeftOutError,
    SourceError,
    UnreachableError,
)
from ingest.discover import SourceFile
from ingest.loaders.formats import DOCSET, format_of, refusal
from ingest.types import LoadFailure
from retrievers.tree.building import Progress, silent
from stores.runlog.sources import ItemRow, SourceRow
from stores.sqlite.permissions import WriteAccess

FOLDER = "sources"  # of the data directory, where what is fetched waits for its ingest
BATCH_ITEMS, BATCH_BYTES = 1000, 256 * 2**20  # of one ingest; chosen, not measured
KEPT = "what was read before is kept; the next sync goes on"
FAILURES = 5  # one after the other, after which a source counts as away; chosen, not measured

Record = Callable[..., None]


@dataclass
class SyncReport:
    """Say what a sync has done; `bytes` were read of the source, `removed` counts documents."""

    source: str
    collection: str
    items: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    bytes: int = 0
    seconds: float = 0.0
    failed: list[LoadFailure] = field(default_factory=list)
    left_out: list[LoadFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def describe(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        lists = ("failed", "left_out")
        return {
            **vars(self),
            **{name: [one.model_dump() for one in getattr(self, name)] for name in lists},
        }


def sync_source(
    session: Session,
    row: SourceRow,
    progress: Progress = silent,
    *,
    auth: AuthContext | None = None,
    record: Record = lambda kind, **facts: None,
    fresh: bool = False,
) -> SyncReport:
    """Sync one source and note how it ended; raises a CarrelError that says why it cannot be.

    `auth` is its owner with the rights of now, None for the operator; `record` writes to the audit
    log. With `fresh` everything is read again. Killed, it is made good by the next one.
    """
    started = time.monotonic()
    folder = _folder(session, row)
    with _alone(session, folder):
        sync = _Sync(session, row, folder, progress, auth, fresh)
        try:
            sync.run()
        except CarrelError as error:
            _note(session, row, "failed", str(error))
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            _record(row, sync.report, record)
        report = sync.report
        report.seconds = round(time.monotonic() - started, 3)
        state = "partial" if report.failed or report.notes else "ok"
        first = f"{report.failed[0].path}: {report.failed[0].reason}" if report.failed else ""
        _note(session, row, state, first or " ".join(report.notes))
        return report


def forget_source(
    session: Session, row: SourceRow, *, documents: bool, auth: AuthContext | None = None
) -> int:
    """Remove a source, with `documents` also those it has brought; return how many went."""
    folder = _folder(session, row)
    with _alone(session, folder):
        gone = 0
        if documents:
            access = WriteAccess(auth, str(folder.resolve())) if auth else WriteAccess()
            keys = list(session.accounts.sources().items(row))
            gone = _forget(session, row, keys, access)
        session.accounts.sources().remove(row)
        shutil.rmtree(folder, ignore_errors=True)
        return gone


def is_syncing(session: Session, row: SourceRow) -> bool:
    """Tell whether a sync of this source is at work in this process."""
    return _folder(session, row) in _active


def note_failure(session: Session, row: SourceRow, message: str) -> None:
    """Note that a source could not be synced, and why."""
    _note(session, row, "failed", message)


def _folder(session: Session, row: SourceRow) -> Path:
    return session.store.folder / FOLDER / _digest(row.tenant, row.user, row.name)


_active: set[Path] = set()
_changes = threading.Lock()


@contextmanager
def _alone(session: Session, folder: Path) -> Iterator[None]:
    """Hold a source; raises InUseError while another sync of it is at work."""
    busy = InUseError("this source is being synced", hint="wait until that has ended")
    with _changes:
        if folder in _active:
            raise busy
        _active.add(folder)
    lock = session.maintenance.coordination.lock
    try:
        with lock(f"source.{folder.name}", wait=False) as taken:
            if not taken:
                raise busy
            yield
    finally:
        with _changes:
            _active.discard(folder)


def _note(session: Session, row: SourceRow, state: str, message: str) -> None:
    row.state, row.message, row.synced = state, message, time.time()
    session.accounts.sources().note(row)


def _record(row: SourceRow, report: SyncReport, record: Record) -> None:
    if written := report.new + report.changed:
        facts = {"collection": row.collection, "source": row.name, "files": written}
        record("upload", **facts, readers=sorted(row.acl))
    if report.removed:
        record("deletion", collection=row.collection, documents=report.removed)


def _forget(session: Session, row: SourceRow, keys: Sequence[str], access: WriteAccess) -> int:
    """Forget what a source has brought under these keys; return how many documents."""
    files = session.accounts.sources().files(row, keys)
    return _forget_files(session, row, files, access)


def _forget_files(
    session: Session, row: SourceRow, files: Sequence[str], access: WriteAccess
) -> int:
    if not files:
        return 0
    try:
        target = session.catalogue.collection(row.tenant, row.collection)
    except AbsentError:
        return 0
    maintenance = session.maintenance
    with maintenance.changing():
        found = maintenance.documents_in(target, files)
        removed = maintenance.forget(target, found, access=access)["documents"]
        session.intake.forget_files(target, files, access)  # those that could not be read
    maintenance.tidy()
    return removed


class _Sync:
    """One sync of one source: a batch is read, noted as on its way, ingested and noted as there."""

    def __init__(
        self,
        session: Session,
        row: SourceRow,
        folder: Path,
        progress: Progress,
        auth: AuthContext | None,
        fresh: bool,
    ) -> None:
        self._session, self._row, self._folder = session, row, folder
        self._progress, self._fresh = progress, fresh
        self._rows = session.accounts.sources()
        self._access = WriteAccess(auth, str(folder.resolve())) if auth else WriteAccess()
        self._is_operator = auth is None
        self.report = SyncReport(row.name, row.collection)
        self._pending: list[ItemRow] = []
        self._bytes = 0
        self._gone: list[str] = []
        self._renamed: list[str] = []
        self._failing = 0

    def run(self) -> None:
        """Do it; raises a CarrelError."""
        self._session.maintenance.check_writable()
        shutil.rmtree(self._folder, ignore_errors=True)  # of a sync that was killed
        self._folder.mkdir(parents=True, mode=0o700)
        connector = self._connector()
        try:
            self._sync(connector)
        finally:
            self.report.bytes = connector.bytes_read
            connector.close()

    def _connector(self) -> Connector:
        row = self._row
        address = parse_address(row.name, row.address)
        # Whoever may choose a name over HTTP must not get the secrets of that name.
        secret = find_credential(row.name, address.user) if self._is_operator else Credential()
        access = Access(
            self._session.settings,
            secret,
            bool(row.options.get("private")),
            self._folder,
            lambda: self._progress("source", self.report.items, 0),
            variable(row.name),
        )
        return open_connector(address, access, row.options.get("parameters") or {})

    def _sync(self, connector: Connector) -> None:
        known = self._rows.items(self._row)
        marks = {} if self._fresh else {key: one.mark for key, one in known.items()}
        seen: set[str] = set()
        complete = True
        for item in self._listed(connector, marks, known):
            if item.key in seen:
                continue
            if len(seen) >= self._session.settings.sources.max_items:
                complete = False
                self.report.notes.append(
                    f"more than {len(seen)} items (sources.max_items); the rest was left out"
                )
                break
            seen.add(item.key)
            self.report.items += 1
            self._progress("source", self.report.items, 0)
            self._take(connector, item, known.get(item.key), marks.get(item.key, ""))
            if len(self._pending) >= BATCH_ITEMS or self._bytes >= BATCH_BYTES:
                self._ingest(known)
        self._ingest(known)
        self.report.failed = [*connector.failed, *self.report.failed]
        if complete and connector.complete:
            self._gone += [key for key in known if key not in seen]
            if known and set(known) <= set(self._gone):
                self.report.notes.append(
                    f"it has nothing any more of what it had: {len(known)} items are removed"
                )
        files = [*self._rows.files(self._row, self._gone), *self._renamed]
        self.report.removed = _forget_files(self._session, self._row, files, self._access)
        self._rows.drop_items(self._row, self._gone)

    def _listed(
        self, connector: Connector, marks: dict[str, str], known: dict[str, ItemRow]
    ) -> Iterator[Item]:
        """Yield the items; where the source fails, what was read before it is kept."""
        try:
            yield from connector.items(marks)
        except CarrelError:
            self._ingest(known)
            raise

    def _take(self, connector: Connector, item: Item, kept: ItemRow | None, mark: str) -> None:
        """Read an item unless it is as it was."""
        if mark and item.mark == mark:
            self.report.unchanged += 1
            return
        target = self._folder / _digest(item.key)
        try:
            received = connector.read(item, mark, target)
        except GoneError as error:
            if kept is None:
                self._fail(item.key, error)
            else:
                self._gone.append(item.key)
            return
        except LeftOutError as error:
            self.report.left_out.append(LoadFailure(path=item.key, reason=str(error)))
            return
        except (DocumentError, CallerError) as error:
            self._fail(item.key, error)
            self._failing = self._failing + 1 if isinstance(error, UnreachableError) else 0
            if self._failing >= FAILURES:
                rule = f"the source fails {FAILURES} times in a row"
                raise SourceError(rule, value=str(error), hint=KEPT) from None
            return
        self._failing = 0
        if received is None:
            self.report.unchanged += 1
            return
        name = f"{self._row.name}/{item.name}{received.suffix}"
        if format_of(name) is None and not name.lower().endswith(DOCSET):
            self.report.failed.append(LoadFailure(path=item.key, reason=refusal(name)))
            target.unlink(missing_ok=True)
            return
        hashed, path = "", received.path
        if path is None:
            path = target.rename(f"{target}{_ending(name)}")
            hashed = _hash(path)
            self._bytes += path.stat().st_size
        self._keep(ItemRow(item.key, name, str(path.resolve()), received.mark, hashed), kept)

    def _keep(self, found: ItemRow, kept: ItemRow | None) -> None:
        same = kept is not None and (kept.hash, kept.file) == (found.hash, found.file)
        if same and found.hash and not self._fresh:
            self.report.unchanged += 1
            Path(found.path).unlink()
            if kept is not None and kept.mark != found.mark:
                target = self._session.intake.open_collection(
                    self._row.tenant, self._row.collection, None
                )
                self._rows.save_items(self._row, target.id, [found])
            return
        if kept is not None and kept.file != found.file:
            self._renamed += self._rows.files(self._row, [found.key])
        self._pending.append(found)

    def _fail(self, key: str, error: CarrelError) -> None:
        self.report.failed.append(LoadFailure(path=key, reason=str(error)))

    def _ingest(self, known: dict[str, ItemRow]) -> None:
        if not self._pending:
            return
        session, row, batch = self._session, self._row, self._pending
        target = session.intake.open_collection(row.tenant, row.collection, None)
        self._rows.save_items(row, target.id, [replace(one, mark="", hash="") for one in batch])
        summary = session.ingest(
            target,
            [SourceFile(Path(one.path), one.file) for one in batch],
            acl=row.acl,
            progress=self._progress,
            renames=False,
            access=self._access,
        )
        self._rows.save_items(row, target.id, batch)
        lost = {one.path for one in summary.failed}
        for one in batch:
            if one.file not in lost:
                self.report.changed += one.key in known
                self.report.new += one.key not in known
            if one.hash:
                Path(one.path).unlink(missing_ok=True)
        self.report.failed += [*summary.failed, *summary.left_out]
        self._pending, self._bytes = [], 0


def _ending(name: str) -> str:
    """Return what decides of a file's name how it is read."""
    return "".join(Path(name).suffixes[-2:]) if name.lower().endswith(".gz") else Path(name).suffix


def _digest(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:32]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

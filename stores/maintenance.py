"""Everything that keeps a data directory sound: turns, checks, repairs, erasure, backups."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.settings import Settings
from stores.backup.pack import make_backup
from stores.erasure.documents import Gone
from stores.erasure.erase import Erasure
from stores.erasure.targets import documents_of, named_document
from stores.integrity import health, loss, verify
from stores.integrity.checkup import Checkup
from stores.integrity.findings import fulltext_findings
from stores.integrity.health import orphan_files
from stores.segments.truth import snapshot
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import explained
from stores.sqlite.fulltext_rebuild import rebuild_fulltext
from stores.sqlite.quality import QualityCounts

if TYPE_CHECKING:
    from stores.backup.manifest import BackupManifest
    from stores.parts import StoreParts


class LocalMaintenance(Checkup, Erasure):
    """Maintain one open data directory."""

    def __init__(self, parts: StoreParts, settings: Settings, *, later: bool = False) -> None:
        """Maintain what `parts` hold."""
        Checkup.__init__(self, parts, settings, later=later)
        wait_s = settings.storage.erase_wait_s
        Erasure.__init__(self, parts.folder, parts.database, parts.search, wait_s)
        self.condition = parts.database.condition
        self.lock = parts.lock

    def explained(self) -> AbstractContextManager[None]:
        """Turn the database errors of a block into one that says what the operator must do."""
        return explained(self._database.path)

    def check_writable(self) -> None:
        """Raise OperatorError where writing would make things worse: malformed, or rows lost."""
        self._database.check_writable()

    def turn(self, work: str, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold the directory for a long work of this name.

        While another is at work, `waiting` is called with its name again and again; what it raises
        ends the wait.
        """
        return self._parts.ingesting.turn(work, waiting)

    def changing(self) -> AbstractContextManager[object]:
        """Hold the directory for work that changes many documents, waiting as long as it takes."""
        return self._parts.ingesting

    def named_document(self, collection: Collection, name: str) -> Gone:
        """Return the document of this id, source, file or key; raises AbsentError."""
        return named_document(self._database.read(), collection, name)

    def documents_of(self, collection: Collection, patterns: Sequence[str]) -> list[Gone]:
        """Return the documents whose file or source fits any of the patterns (shell globs).

        Raises AbsentError for a pattern that nothing fits.
        """
        return documents_of(self._database.read(), collection, patterns)

    def examine(self) -> dict[str, Any]:
        """Compare the derived indexes with the record, and report; see `health.examine`."""
        return health.examine(self._parts)

    def accept_loss(self, settings: Settings) -> list[str]:
        """Go on without rows that are missing, noted in the audit log; return what was done."""
        return loss.accept_loss(self._parts, settings)

    def back_up(
        self,
        target: Path,
        progress: Callable[[str, int, int], None],
        *,
        key: bytes | None = None,
        force: bool = False,
        min_free_mb: int = 0,
    ) -> BackupManifest:
        """Back up into one file, which is there whole or not at all; sealed with a `key`."""
        return make_backup(
            self._database, target, progress, key=key, force=force, min_free_mb=min_free_mb
        )

    @contextmanager
    def quality_counts(self, collection: Collection, examples: int) -> Iterator[QualityCounts]:
        """Give what a report on a collection counts, of one moment, with so many examples."""
        with snapshot(self._database):
            yield QualityCounts(self._database, collection, examples)

    def drop_damaged_vectors(self) -> int:
        """Delete the vectors that are damaged, so that they are made again; return how many."""
        if not self.check_rows().vectors:
            return 0
        with self._database.write() as connection:
            return verify.drop_vectors(connection)

    def read_damaged_again(self) -> int:
        """Let the next ingest read the files of damaged documents; return how many these are."""
        return verify.read_anew(self._database)

    def fulltext_problem(self, collection: Collection) -> str:
        """Say how the full text of a collection differs from its chunks, "" for not at all."""
        return fulltext_findings(self._database, collection.id).problem()

    def rebuild_fulltext(
        self, collection: Collection, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Rebuild the full text of a collection, and return the number of its chunks."""
        return rebuild_fulltext(self._database, collection.id, progress)

    def missing(self, collection_id: int, documents: Sequence[str]) -> dict[str, str]:
        """Read documents back from every index; say by id what each lacks that is not complete."""
        return self._parts.verifier.missing(collection_id, documents)

    def index_words_again(self, collection_id: int, documents: Sequence[str]) -> None:
        """Write the full text of documents once more."""
        with self._database.write() as connection:
            verify.index_words_again(connection, collection_id, documents)

    def remove_orphans(self) -> list[str]:
        """Remove what lies in the directory and belongs to nothing; return their names."""
        found = orphan_files(self._parts)
        for name in found:
            path = self._parts.folder / name
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return found
